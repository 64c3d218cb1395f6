package pool_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/pool"
)

// trier is a connection of somebody else's making that can try a write; exact is what it says of its Write.
type trier struct {
	net.Conn
	exact bool
	tried []byte
	n     int
	err   error
}

func (c *trier) ExactWrite() bool { return c.exact }

func (c *trier) TryWrite(b []byte) (int, error) {
	c.tried = append(c.tried, b...)
	return c.n, c.err
}

// unsure can try a write, and says nothing about its Write.
type unsure struct{ net.Conn }

func (unsure) TryWrite([]byte) (int, error) { panic("nobody may ask") }

func TestAWriteMayBeTriedOnlyWhereItsCountIsToBeBelieved(t *testing.T) {
	near, far := net.Pipe()
	defer func() { _, _ = near.Close(), far.Close() }()
	exact := &trier{Conn: near, exact: true}
	for name, tc := range map[string]struct {
		stream, raw net.Conn
		can         bool
	}{
		"exact":                     {exact, exact, true},
		"not exact":                 {&trier{Conn: near}, nil, false},
		"does not say":              {unsure{near}, nil, false},
		"exact, but has no method":  {exactPipe{near}, nil, false},
		"neither":                   {near, nil, false},
		"a layer over the socket":   {exact, near, false},
		"an exact one over another": {exact, &trier{Conn: near, exact: true}, false},
		"a socket without a number": {new(net.TCPConn), nil, false},
		"a socket in a wrapper":     {struct{ *net.TCPConn }{new(net.TCPConn)}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.raw == nil {
				tc.raw = tc.stream
			}
			require.Equal(t, tc.can, pool.NewConn(tc.stream, tc.raw, time.Now()).CanTryWrite())
		})
	}
}

func TestATriedWriteIsTheForeignConnectionsOwn(t *testing.T) {
	near, far := net.Pipe()
	defer func() { _, _ = near.Close(), far.Close() }()
	f := &trier{Conn: near, exact: true, n: 2}
	c := pool.NewConn(f, f, time.Now())
	n, err := c.TryWrite([]byte("abc"))
	require.NoError(t, err)
	require.Equal(t, 2, n)
	f.n, f.err = 1, errBoom
	n, err = c.TryWrite([]byte("c"))
	require.Equal(t, errBoom, err, "as it is")
	require.Equal(t, 1, n)
	require.Equal(t, "abcc", string(f.tried))
}
