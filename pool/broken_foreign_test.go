package pool_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/pool"
)

// typedNil is an error that is not nil, and whose Unwrap and Timeout panic: what a hook returns that declared its
// error with the type of it.
func typedNil() error { return (*net.OpError)(nil) }

// A hook or a holder handed the pool a typed nil error. Classing it for the statistics called its methods, which
// panicked, and the connection's place was never given back.
//
// Covers: S4-14
func TestAnErrorWhoseMethodsPanicStillGivesThePlaceBack(t *testing.T) {
	for _, c := range []struct {
		name   string
		give   func(p *pool.Pool, c *pool.Conn)
		reason pool.Reason
	}{
		{"OnPut", func(p *pool.Pool, c *pool.Conn) { p.Put(c) }, pool.ReasonOnPut},
		{"Remove", func(p *pool.Pool, c *pool.Conn) { p.Remove(c, typedNil()) }, pool.ReasonOther},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, n := &peer{}, &numbered{}
			p := newPool(t, pool.Options{
				DialFunc: s.dial, Handshake: n.handshake, Size: 1,
				OnPut: func(*pool.Conn) error { return typedNil() },
			})
			c.give(p, lease(t, p))
			require.Zero(t, s.open())
			require.Zero(t, p.Stats().Open)
			require.Equal(t, map[pool.Reason]uint64{c.reason: 1}, p.Stats().Removed)
			again := lease(t, p)
			require.Equal(t, []any{1}, n.lastFence(), "an error that says nothing does not say that the peer closed")
			p.Remove(again, nil)
		})
	}
}

// A DialFunc returned a typed nil error. Asking whether it is permanent panicked in whoever leased.
//
// Covers: S4-14
func TestADialErrorWhoseMethodsPanicIsNotPermanent(t *testing.T) {
	s := &peer{}
	s.failWith(typedNil())
	p := newPool(t, pool.Options{DialFunc: s.dial, Size: 1})
	_, err := p.Lease(context.Background())
	require.Error(t, err)
	require.False(t, pool.IsPermanent(err))
	require.False(t, pool.IsPermanent(typedNil()))
	s.failWith(nil)
	p.Put(lease(t, p))
	require.Equal(t, 1, p.Stats().Idle)
}
