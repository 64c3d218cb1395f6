package pool_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/pool"
)

func TestWaitingLeasesAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, giveBack := range map[string]func(*pool.Pool, *pool.Conn){
			"put":    (*pool.Pool).Put,
			"remove": func(p *pool.Pool, c *pool.Conn) { p.Remove(c, errBoom) },
		} {
			s := &peer{}
			p := newPool(t, pool.Options{DialFunc: s.dial, Size: 1})
			held := lease(t, p)
			var queue []<-chan leased
			for range 5 {
				queue = append(queue, leaseAsync(context.Background(), p))
				synctest.Wait()
			}
			require.Equal(t, 5, p.Stats().Waiting, name)
			for i, ch := range queue {
				giveBack(p, held)
				got := <-ch
				require.NoError(t, got.err)
				held = got.c
				synctest.Wait()
				require.Equal(t, 4-i, p.Stats().Waiting, "%s: one at a time", name)
			}
			giveBack(p, held)
			require.Equal(t, 1, s.most(), name)
		}
	})
}

func TestACancelledWaiterLeavesItsPlaceInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &peer{}
		p := newPool(t, pool.Options{DialFunc: s.dial, Size: 1})
		held := lease(t, p)
		ctx, cancel := context.WithCancel(context.Background())
		first := leaseAsync(ctx, p)
		synctest.Wait()
		second := leaseAsync(context.Background(), p)
		synctest.Wait()
		cancel()
		require.ErrorIs(t, (<-first).err, context.Canceled)
		require.Equal(t, 1, p.Stats().Waiting)
		p.Put(held)
		got := <-second
		require.NoError(t, got.err)
		p.Put(got.c)

		_, err := p.Lease(ctx)
		require.ErrorIs(t, err, context.Canceled, "an ended ctx gets nothing, not even what is idle")
	})
}

// Covers: E-11, E-13
func TestCloseFailsWaitersAndClosesWhatComesBackLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &peer{}
		hooks := 0
		p := newPool(t, pool.Options{
			DialFunc: s.dial, Size: 3, OnPut: func(*pool.Conn) error { hooks++; return nil },
		})
		a, b, idle := lease(t, p), lease(t, p), lease(t, p)
		p.Put(idle)
		c := lease(t, p)
		waiting := leaseAsync(context.Background(), p)
		synctest.Wait()
		p.Put(c) // to the waiter
		served := <-waiting
		require.NoError(t, served.err)
		waiting = leaseAsync(context.Background(), p)
		synctest.Wait()

		require.NoError(t, p.Close())
		require.ErrorIs(t, (<-waiting).err, pool.ErrClosed)
		_, err := p.Lease(context.Background())
		require.ErrorIs(t, err, pool.ErrClosed)
		_, ok := p.TryLease()
		require.False(t, ok)
		<-p.Done()

		require.Equal(t, 3, s.open(), "leased connections stay usable until they come back")
		before := hooks
		p.Put(a)
		p.Remove(b, errBoom)
		p.Put(served.c)
		require.Equal(t, before, hooks, "no OnPut after Close")
		require.Zero(t, s.open())
		require.Zero(t, p.Stats().Open)
		require.Equal(t, uint64(2), p.Stats().Removed[pool.ReasonClosed])
		require.NoError(t, p.Close(), "a second time")
		require.Equal(t, 3, s.dials(), "no dial after Close")
	})
}

func TestCloseTenTimesAtOnce(t *testing.T) {
	s := &peer{}
	p := newPool(t, pool.Options{DialFunc: s.dial})
	p.Put(lease(t, p))
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { _ = p.Close() })
	}
	wg.Wait()
	<-p.Done()
	require.Zero(t, s.open())
}

func TestFailWhenFullRefusesAtTheLimitAtOnce(t *testing.T) {
	s := &peer{}
	p := newPool(t, pool.Options{DialFunc: s.dial, Size: 2, FailWhenFull: true})
	a, b := lease(t, p), lease(t, p)
	_, err := p.Lease(context.Background())
	require.ErrorIs(t, err, pool.ErrFull)
	p.Put(a)
	c := lease(t, p)
	p.Remove(b, nil)
	p.Put(c)
	require.Equal(t, 0, p.Stats().Waiting)
}

func TestTryLeaseTakesTheIdleAndNeverDials(t *testing.T) {
	s := &peer{}
	p := newPool(t, pool.Options{DialFunc: s.dial})
	_, ok := p.TryLease()
	require.False(t, ok)
	require.Zero(t, s.dials())
	c := lease(t, p)
	p.Put(c)
	d, ok := p.TryLease()
	require.True(t, ok)
	require.Equal(t, c.Conn, d.Conn)
	_, ok = p.TryLease()
	require.False(t, ok, "lent to one holder at a time")
	p.Put(d)
}

func TestTheConnectionUsedLastIsLentFirst(t *testing.T) {
	s := &peer{}
	p := newPool(t, pool.Options{DialFunc: s.dial})
	a, b := lease(t, p), lease(t, p)
	p.Put(b)
	p.Put(a)
	again := lease(t, p)
	require.Equal(t, a.Conn, again.Conn)
	p.Put(again)
}

// Put (or Remove) and the end of the waiter's ctx at the same moment: whatever the waiter makes of it, the
// connection or the place must not be lost.
func TestWhatACancelledWaiterWasServedGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &peer{}
		p := newPool(t, pool.Options{DialFunc: s.dial, Size: 1})
		served := 0
		for i := range 2000 {
			held := lease(t, p)
			ctx, cancel := context.WithCancel(context.Background())
			got := leaseAsync(ctx, p)
			synctest.Wait()
			if i%4 > 0 { // mostly: served while it is on its way out
				cancel()
			}
			if i%2 == 0 {
				p.Put(held)
			} else {
				p.Remove(held, nil)
			}
			cancel()
			if r := <-got; r.err == nil {
				served++
				p.Put(r.c)
			} else {
				require.ErrorIs(t, r.err, context.Canceled)
			}
			synctest.Wait()
			st := p.Stats()
			require.Equal(t, st.Idle, st.Open, "round %d: nothing may be out", i)
		}
		require.Positive(t, served)
		require.Less(t, served, 2000)
	})
}

// A pool whose limit drifts when a Lease is cancelled at the moment it is served ends up refusing everything, or
// opening too much. Eight callers cancel at random moments, and give things back twice.
//
// Covers: E-13
func TestTheLimitIsExactAfterTenThousandRacyRounds(t *testing.T) {
	const size, callers, rounds = 3, 8, 10_000
	s := &peer{}
	p := newPool(t, pool.Options{DialFunc: s.dial, Size: size, MaxIdle: 2})
	var left, got, out atomic.Int64
	left.Store(rounds)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				ctx, cancel := context.WithCancel(context.Background())
				if rand.N(2) == 0 {
					go cancel()
				}
				c, err := p.Lease(ctx)
				cancel()
				if err != nil {
					continue
				}
				got.Add(1)
				if n := out.Add(1); n > size {
					t.Errorf("%d connections lent at once", n)
				}
				out.Add(-1)
				switch rand.N(4) {
				case 0:
					p.Put(c)
				case 1:
					p.Put(c)
					p.Put(c)
				default:
					p.Remove(c, nil)
					p.Remove(c, errBoom)
				}
			}
		})
	}
	wg.Wait()
	require.Positive(t, got.Load())
	require.LessOrEqual(t, s.most(), size)

	var held []*pool.Conn
	for range size {
		held = append(held, lease(t, p)) // would hang if places were lost
	}
	st := p.Stats()
	require.Equal(t, size, st.Open)
	require.Equal(t, size, st.Leased)
	require.Zero(t, st.Idle+st.Dialing+st.Waiting)
	require.Positive(t, st.Ignored)
	ctx, cancel := context.WithCancel(context.Background())
	more := leaseAsync(ctx, p)
	cancel()
	require.ErrorIs(t, (<-more).err, context.Canceled, "a place too many")
	for _, c := range held {
		p.Remove(c, nil)
	}
	require.Zero(t, s.open())
	require.NoError(t, p.Close())
	<-p.Done()
}
