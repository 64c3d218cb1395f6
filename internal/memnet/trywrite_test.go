package memnet_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/memnet"
)

// mustTry tries to write text, of which n bytes are to be accepted, without an error.
func mustTry(t *testing.T, c *memnet.Conn, text string, n int) {
	t.Helper()
	got, err := c.TryWrite([]byte(text))
	require.NoError(t, err)
	require.Equal(t, n, got)
}

// mustFailTry tries to write text, of which n bytes are to be accepted before the error.
func mustFailTry(t *testing.T, c *memnet.Conn, text string, n int, want error) {
	t.Helper()
	got, err := c.TryWrite([]byte(text))
	require.ErrorIs(t, err, want)
	var op *net.OpError
	require.ErrorAs(t, err, &op)
	require.Equal(t, "write", op.Op)
	require.Equal(t, n, got)
}

func TestATriedWriteTakesWhatTheBufferHoldsAndDoesNotWait(t *testing.T) {
	bubble(t, memnet.Options{ToServer: 4}, func(t *testing.T, c, s *memnet.Conn) {
		mustTry(t, c, "ab", 2)
		mustTry(t, c, "cdef", 2)
		mustTry(t, c, "ef", 0)
		require.EqualValues(t, 4, c.Out().Accepted())
		mustRead(t, s, "abcd")
		mustTry(t, c, "ef", 2)
		mustRead(t, s, "ef")
		require.Equal(t, 4, c.Out().Writes())
	})
}

func TestWithoutABufferATriedWriteGivesAReaderWhatItWaitsFor(t *testing.T) {
	bubble(t, memnet.Options{ToServer: -1}, func(t *testing.T, c, s *memnet.Conn) {
		mustTry(t, c, "abc", 0)
		got := make([]byte, 2)
		r := async(func() (int, error) { return io.ReadFull(s, got) })
		pending(t, r)
		mustTry(t, c, "abc", 2)
		mustTry(t, c, "c", 0)
		require.Equal(t, result{2, nil}, done(t, r))
		require.Equal(t, "ab", string(got))
	})
}

func TestATriedWriteBesideAWriteTakesNothingAlsoWhenThereIsRoom(t *testing.T) {
	bubble(t, memnet.Options{ToServer: 4}, func(t *testing.T, c, s *memnet.Conn) {
		const size = 500
		w := async(func() (int, error) { return c.Write(bytes.Repeat([]byte("w"), size)) })
		pending(t, w)
		mustTry(t, c, "x", 0)
		for range size - 4 {
			mustRead(t, s, "w")
			mustTry(t, c, "x", 0) // the room is for the Write, which need not know of it yet
		}
		require.Equal(t, result{size, nil}, done(t, w))
		mustRead(t, s, "wwww")
		mustTry(t, c, "x", 1)
		mustRead(t, s, "x")
	})
}

func TestATriedWriteBesideAWriteIsToldThatTheConnectionIsOver(t *testing.T) {
	bubble(t, memnet.Options{ToServer: 4}, func(t *testing.T, c, s *memnet.Conn) {
		w := async(func() (int, error) { return c.Write([]byte("abcdef")) })
		pending(t, w)
		require.NoError(t, c.Close())
		mustFailTry(t, c, "x", 0, net.ErrClosed) // whether or not the Write has left
		require.ErrorIs(t, done(t, w).err, net.ErrClosed)
	})
}

// The deadline was left out of the error and not of the decision: with one that had passed nothing was accepted, and the end of
// the connection was not told.
func TestATriedWriteDoesNotHeedTheDeadline(t *testing.T) {
	bubble(t, memnet.Options{ToServer: 4}, func(t *testing.T, c, s *memnet.Conn) {
		require.NoError(t, c.SetWriteDeadline(time.Unix(1, 0)))
		mustTry(t, c, "abcdef", 4)
		_, err := c.Write([]byte("x"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "nor does it move it")
		mustRead(t, s, "abcd")
		require.NoError(t, s.Close())
		mustFailTry(t, c, "x", 0, syscall.EPIPE)
	})
	bubble(t, memnet.Options{}, func(t *testing.T, c, s *memnet.Conn) {
		c.Out().ShortWrites(1, os.ErrDeadlineExceeded) // the error of a fault is what it is
		mustFailTry(t, c, "ab", 1, os.ErrDeadlineExceeded)
		mustRead(t, s, "a")
	})
}

func TestFaultsOfATriedWriteAreThoseOfAWrite(t *testing.T) {
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		spoil func(c, s *memnet.Conn)
		n     int
		want  error
	}{
		"short":             {func(c, _ *memnet.Conn) { c.Out().ShortWrites(2, boom) }, 2, boom},
		"short of anything": {func(c, _ *memnet.Conn) { c.Out().ShortWrites(0, boom) }, 0, boom},
		"cut at a byte":     {func(c, _ *memnet.Conn) { c.Out().CutAt(3, memnet.Cut{}) }, 3, syscall.EPIPE},
		"reset at a byte":   {func(c, _ *memnet.Conn) { c.Out().CutAt(3, memnet.Cut{Reset: true}) }, 3, syscall.ECONNRESET},
		"closed":            {func(c, _ *memnet.Conn) { _ = c.Close() }, 0, net.ErrClosed},
		"half closed":       {func(c, _ *memnet.Conn) { _ = c.CloseWrite() }, 0, syscall.EPIPE},
		"closed there":      {func(_, s *memnet.Conn) { _ = s.Close() }, 0, syscall.EPIPE},
		"reset there":       {func(_, s *memnet.Conn) { _ = s.Reset() }, 0, syscall.ECONNRESET},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, memnet.Options{}, func(t *testing.T, c, s *memnet.Conn) {
				tc.spoil(c, s)
				mustFailTry(t, c, "abcde", tc.n, tc.want)
				require.EqualValues(t, tc.n, c.Out().Accepted())
			})
		})
	}
}

func TestATriedWriteThatFillsTheBufferBeforeItsFaultIsAPart(t *testing.T) {
	bubble(t, memnet.Options{ToServer: 2}, func(t *testing.T, c, s *memnet.Conn) {
		c.Out().ShortWrites(3, io.ErrShortWrite)
		mustTry(t, c, "abcde", 2)
		mustRead(t, s, "ab")
		c.Out().CutAt(5, memnet.Cut{})
		mustTry(t, c, "cde", 2)
		mustRead(t, s, "cd")
		mustTry(t, c, "e", 1) // its last byte is the one that is reached
		mustFailTry(t, c, "f", 0, syscall.EPIPE)
		mustRead(t, s, "e")
	})
}

func TestATriedWriteOfNothingDoesNothing(t *testing.T) {
	bubble(t, memnet.Options{}, func(t *testing.T, c, s *memnet.Conn) {
		mustTry(t, c, "", 0)
		require.Zero(t, c.Out().Writes())
		require.NoError(t, c.Close())
		mustFailTry(t, c, "", 0, net.ErrClosed)
	})
}
