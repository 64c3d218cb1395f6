package pool_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/pool"
)

// Covers: S4-2
func TestPutKeepsAConnectionAndRemoveNeverLendsItAgain(t *testing.T) {
	s := &peer{}
	p := newPool(t, pool.Options{DialFunc: s.dial})
	a := lease(t, p)
	p.Put(a)
	b := lease(t, p)
	require.Equal(t, a.Conn, b.Conn)
	require.Equal(t, uint64(1), p.Stats().Reuses)
	p.Remove(b, errBoom)
	require.Zero(t, s.open(), "before the write, which would wait for ever on a pipe that is still open")
	_, err := b.Write([]byte("x"))
	require.Error(t, err)
	c := lease(t, p)
	require.NotEqual(t, a.Conn, c.Conn)
	require.Equal(t, 2, s.dials())
	p.Put(c)
}

// An earlier holder that returns its loan a second time must not take the connection from the next one.
func TestReturningALoanTwiceIsIgnored(t *testing.T) {
	s := &peer{}
	p := newPool(t, pool.Options{DialFunc: s.dial, Size: 1, FailWhenFull: true})
	a := lease(t, p)
	p.Put(a)
	b := lease(t, p)
	require.Equal(t, a.Conn, b.Conn)
	p.Put(a)
	p.Remove(a, errBoom)
	_, err := p.Lease(context.Background())
	require.ErrorIs(t, err, pool.ErrFull, "b is still out")
	require.Equal(t, 1, s.open())
	p.Remove(b, nil)
	p.Remove(b, nil)
	p.Put(b)
	st := p.Stats()
	require.Equal(t, uint64(4), st.Ignored)
	require.Zero(t, st.Open)
	p.Put(lease(t, p))
}

// Covers: S4-2, E-29
func TestAHandoffIsServedByOnPutOnce(t *testing.T) {
	s := &peer{}
	var seen []bool
	p := newPool(t, pool.Options{DialFunc: s.dial, OnPut: func(c *pool.Conn) error {
		seen = append(seen, c.ShouldHandoff())
		return nil
	}})
	a := lease(t, p)
	p.Put(a)
	b := lease(t, p)
	a.MarkHandoff() // by a watcher that knows the connection from an earlier loan
	require.True(t, b.ShouldHandoff())
	p.Put(b)
	c := lease(t, p)
	require.False(t, c.ShouldHandoff())
	p.Put(c)
	require.Equal(t, []bool{false, true, false}, seen)
	require.Equal(t, uint64(1), p.Stats().Handoffs)
	require.Equal(t, 1, s.dials())
}

// Covers: E-29
func TestAHandoffWithoutAHookClosesTheConnection(t *testing.T) {
	s := &peer{}
	p := newPool(t, pool.Options{DialFunc: s.dial})
	a := lease(t, p)
	a.MarkHandoff()
	p.Put(a) // kept, the next holder would have to hand it off at once, and so on
	require.Zero(t, s.open())
	require.Equal(t, map[pool.Reason]uint64{pool.ReasonHandoff: 1}, p.Stats().Removed)
	b := lease(t, p)
	require.False(t, b.ShouldHandoff())
	p.Put(b)
}

func TestOnPutIsCutOffByTheDialTimeoutAndByClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &peer{}
		p := newPool(t, pool.Options{DialFunc: s.dial, OnPut: func(c *pool.Conn) error {
			_, err := c.Read(make([]byte, 1))
			return err
		}})
		start := time.Now()
		p.Put(lease(t, p))
		require.Equal(t, 5*time.Second, time.Since(start))
		require.Zero(t, s.open())
		require.Equal(t, map[pool.Reason]uint64{pool.ReasonOnPut: 1}, p.Stats().Removed)

		c := lease(t, p)
		start = time.Now()
		put := make(chan struct{})
		go func() { p.Put(c); close(put) }()
		synctest.Wait()
		require.NoError(t, p.Close())
		<-put
		require.Zero(t, time.Since(start))
		require.Zero(t, s.open())
		require.Zero(t, p.Stats().Open)
	})
}

func TestUnparsedBytesKeepAConnectionFromBeingLent(t *testing.T) {
	s := &peer{}
	p := newPool(t, pool.Options{DialFunc: s.dial})
	c := lease(t, p)
	c.Unread = []byte("+OK")
	p.Put(c)
	require.Zero(t, s.open())
	require.Equal(t, map[pool.Reason]uint64{pool.ReasonStray: 1}, p.Stats().Removed)
}

func TestAnAbortedConnectionIsNotKept(t *testing.T) {
	s := &peer{}
	p := newPool(t, pool.Options{DialFunc: s.dial})
	c := lease(t, p)
	require.NoError(t, c.Abort())
	p.Put(c)
	require.Zero(t, p.Stats().Idle)
	require.Zero(t, p.Stats().Open)
}

func TestMoreThanMaxIdleAreClosedOldestFirst(t *testing.T) {
	s := &peer{}
	p := newPool(t, pool.Options{DialFunc: s.dial, MaxIdle: 1})
	a, b := lease(t, p), lease(t, p)
	p.Put(a)
	p.Put(b)
	require.Equal(t, 1, s.open())
	require.Equal(t, map[pool.Reason]uint64{pool.ReasonExcess: 1}, p.Stats().Removed)
	c := lease(t, p)
	require.Equal(t, b.Conn, c.Conn)
	p.Put(c)

	p = newPool(t, pool.Options{DialFunc: s.dial, MaxIdle: -1})
	p.Put(lease(t, p))
	require.Zero(t, p.Stats().Open, "negative = none")
}

// A TLS Close writes an alert, which blocks while the peer does not read. Abort must close what is below.
func TestRemoveClosesTheRawSocketBelowALayer(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	layered := &stuckClose{Conn: near}
	c := pool.NewConn(layered, near, time.Now())
	require.NoError(t, c.Abort())
	_, err := layered.Write([]byte("x"))
	require.Error(t, err)
	require.False(t, layered.closed)
}

type stuckClose struct {
	net.Conn
	closed bool
}

func (s *stuckClose) Close() error { s.closed = true; return nil }
