//go:build linux && (amd64 || arm64 || riscv64 || loong64)

package pool_test

import (
	"bytes"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/pool"
)

// cuttings are ways to cut b into parts.
func cuttings(b []byte) map[string][][]byte {
	return map[string][][]byte{
		"none":                nil,
		"one":                 {b},
		"two":                 {b[:1], b[1:]},
		"with empty ones":     {nil, b[:10], {}, b[10:2000], b[2000:], nil},
		"all empty":           {nil, {}},
		"more than a call":    slices.Collect(slices.Chunk(b, len(b)/40)),
		"larger than sixteen": slices.Collect(slices.Chunk(b, len(b)/17)),
	}
}

// from is parts without their first n bytes.
func from(parts [][]byte, n int) [][]byte {
	for len(parts) > 0 && n >= len(parts[0]) {
		n -= len(parts[0])
		parts = parts[1:]
	}
	if len(parts) == 0 {
		return nil
	}
	return append([][]byte{parts[0][n:]}, parts[1:]...)
}

// Covers: E-26, E-36
func TestPartsArriveOneBehindTheOther(t *testing.T) {
	for name, parts := range cuttings(noise(3 << 20)) {
		t.Run(name, func(t *testing.T) {
			eachSocket(t, func(t *testing.T, near *pool.Conn, far stream) {
				want := slices.Concat(parts...)
				var got []byte
				var wg sync.WaitGroup
				wg.Go(func() { got, _ = io.ReadAll(far) })
				n := 0
				for n < len(want) {
					m, err := near.TryWriteParts(from(parts, n))
					require.NoError(t, err)
					if n += m; m == 0 { // it takes no more: wait with the next byte
						_, err = near.Write(want[n : n+1])
						require.NoError(t, err)
						n++
					}
				}
				n, err := near.Write([]byte("and one"))
				require.NoError(t, err)
				require.Equal(t, 7, n)
				require.NoError(t, near.Conn.(stream).CloseWrite())
				wg.Wait()
				require.True(t, bytes.Equal(append(want, "and one"...), got))
			})
		})
	}
}

// Covers: E-26
func TestTriedPartsSayExactlyWhatTheKernelTook(t *testing.T) {
	for name, parts := range cuttings(noise(8 << 20)) {
		t.Run(name, func(t *testing.T) {
			eachSocket(t, func(t *testing.T, near *pool.Conn, far stream) {
				want := slices.Concat(parts...)
				n, err := near.TryWriteParts(parts)
				require.NoError(t, err)
				require.True(t, len(want) == 0 || n > 0 && n < len(want), "the peer does not read")
				got := make([]byte, n)
				_, err = io.ReadFull(far, got)
				require.NoError(t, err)
				require.True(t, bytes.Equal(want[:n], got))
				require.NoError(t, far.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
				more, err := far.Read(make([]byte, 1))
				require.Zero(t, more, "no more than that has left")
				require.Error(t, err)
			})
		})
	}
}

func TestTriedPartsAreAllTakenWhenThereIsRoom(t *testing.T) {
	for name, parts := range cuttings(noise(5000)) {
		t.Run(name, func(t *testing.T) {
			eachSocket(t, func(t *testing.T, near *pool.Conn, far stream) {
				n, err := near.TryWriteParts(parts)
				require.NoError(t, err)
				want := slices.Concat(parts...)
				require.Equal(t, len(want), n)
				got := make([]byte, n)
				_, err = io.ReadFull(far, got)
				require.NoError(t, err)
				require.True(t, bytes.Equal(want, got))
			})
		})
	}
}

func TestPartsGoOneByOneIntoAConnectionThatIsNoSocket(t *testing.T) {
	near, far := net.Pipe()
	defer func() { _, _ = near.Close(), far.Close() }()
	f := &trier{Conn: near, exact: true, n: 3}
	c := pool.NewConn(f, f, time.Now())
	n, err := c.TryWriteParts([][]byte{[]byte("abc"), []byte("def"), []byte("ghij"), []byte("klm")})
	require.NoError(t, err)
	require.Equal(t, 9, n, "the third one was not taken whole")
	require.Equal(t, "abcdefghij", string(f.tried))
	f.err = errBoom
	n, err = c.TryWriteParts([][]byte{[]byte("xyz"), []byte("!")})
	require.Equal(t, errBoom, err)
	require.Equal(t, 3, n)
}

func TestTriedPartsIntoAClosedSocketAreAnError(t *testing.T) {
	eachSocket(t, func(t *testing.T, near *pool.Conn, _ stream) {
		require.NoError(t, near.Abort())
		n, err := near.TryWriteParts([][]byte{[]byte("a"), []byte("b")})
		require.Zero(t, n)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}
