package pool_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/pool"
)

// spill leases from first, and from second when first is full or cannot be dialed.
type spill struct{ first, second *pool.Pool }

func (s spill) Lease(ctx context.Context) (*pool.Conn, error) {
	c, err := s.first.Lease(ctx)
	if err == nil || errors.Is(err, pool.ErrClosed) || ctx.Err() != nil {
		return c, err
	}
	return s.second.Lease(ctx)
}
func (s spill) Put(c *pool.Conn)               { c.Owner().Put(c) }
func (s spill) Remove(c *pool.Conn, why error) { c.Owner().Remove(c, why) }

var _ pool.Leaser = spill{}

// Covers: E-28
func Example_spill() {
	near, far := &peer{}, &peer{}
	first, _ := pool.New(pool.Options{Addr: "near.test:1", DialFunc: near.dial, Size: 1, FailWhenFull: true})
	second, _ := pool.New(pool.Options{Addr: "far.test:1", DialFunc: far.dial})
	defer second.Close()
	defer first.Close()

	s := spill{first, second}
	a, _ := s.Lease(context.Background())
	b, _ := s.Lease(context.Background())
	fmt.Println("leased:", first.Stats().Leased, second.Stats().Leased)
	s.Put(a)
	s.Remove(b, nil)
	fmt.Println("open:", first.Stats().Open, second.Stats().Open)
	// Output:
	// leased: 1 1
	// open: 1 0
}

// Covers: E-28
func TestSpillGoesToTheSecondPoolOnFullFailureAndTimeoutOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := &peer{}, &peer{}
		second := newPool(t, pool.Options{DialFunc: far.dial})
		with := func(o pool.Options) spill {
			o.FailWhenFull = true
			return spill{newPool(t, o), second}
		}
		ctx := context.Background()
		take := func(s spill) *pool.Pool {
			c, err := s.Lease(ctx)
			require.NoError(t, err)
			defer s.Remove(c, nil)
			return c.Owner().(*pool.Pool)
		}
		s := with(pool.Options{DialFunc: near.dial, Size: 1})
		require.Same(t, s.first, take(s))
		held, err := s.Lease(ctx)
		require.NoError(t, err)
		require.Same(t, second, take(s), "full")
		s.Put(held)
		require.Same(t, s.first, take(s))

		near.failWith(errBoom)
		require.Same(t, second, take(s), "refused")

		start := time.Now()
		require.Same(t, second, take(with(pool.Options{DialFunc: blackHole})), "timeout")
		require.Equal(t, 5*time.Second, time.Since(start))

		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err = with(pool.Options{DialFunc: blackHole}).Lease(short)
		require.ErrorIs(t, err, context.DeadlineExceeded, "the caller is gone: no second dial")
		require.NoError(t, s.first.Close())
		_, err = s.Lease(ctx)
		require.ErrorIs(t, err, pool.ErrClosed)
		require.Equal(t, 3, far.dials())
	})
}
