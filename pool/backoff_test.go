package pool_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/pool"
)

// Covers: E-11
func TestFailedDialsAreSpacedByAGrowingRandomBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lo, hi = 10 * time.Millisecond, 200 * time.Millisecond
		s := &peer{}
		s.failWith(errBoom)
		p := newPool(t, pool.Options{DialFunc: s.dial, BackoffMin: lo, BackoffMax: hi})
		var waited time.Duration
		for n := range 200 {
			start := time.Now()
			_, err := p.Lease(context.Background())
			gap := time.Since(start)
			require.ErrorIs(t, err, errBoom)
			if n == 0 {
				require.Zero(t, gap, "the first dial waits for nothing")
				continue
			}
			bound := hi
			if n <= 4 {
				bound = lo << n
			}
			require.LessOrEqual(t, gap, bound, "after %d failures", n)
			waited += gap
		}
		require.Equal(t, 200, s.dials())
		// The mean of the 195 capped gaps is hi/2, with a standard deviation of about 4 ms.
		require.InDelta(t, float64(hi/2), float64(waited/199), float64(40*time.Millisecond))
	})
}

// Covers: E-11
func TestASuccessfulDialEndsTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &peer{}
		s.failWith(errBoom)
		p := newPool(t, pool.Options{DialFunc: s.dial, BackoffMin: time.Hour, BackoffMax: 2 * time.Hour})
		_, err := p.Lease(context.Background())
		require.ErrorIs(t, err, errBoom)
		require.Equal(t, 1, p.Stats().FailedRounds)
		s.failWith(nil)
		p.Remove(lease(t, p), nil)
		require.Zero(t, p.Stats().FailedRounds)
		start := time.Now()
		p.Remove(lease(t, p), nil)
		require.Zero(t, time.Since(start))
	})
}

func TestAFailedHandshakeClosesTheConnectionAndBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, o := range map[string]pool.Options{
			"handshake": {Handshake: func(context.Context, *pool.Dial) error { return errBoom }},
			"onconnect": {OnConnect: func(context.Context, *pool.Conn) error { return errBoom }},
			"credentials": {
				Handshake:   func(context.Context, *pool.Dial) error { return nil },
				Credentials: func(context.Context) (string, string, error) { return "", "", errBoom },
			},
		} {
			s := &peer{}
			o.DialFunc = s.dial
			p := newPool(t, o)
			for n := range 20 {
				_, err := p.Lease(context.Background())
				require.ErrorIs(t, err, errBoom)
				var de *pool.DialError
				require.ErrorAs(t, err, &de)
				require.Equal(t, name, de.Phase.String())
				require.Equal(t, "peer.test:1", de.Addr)
				require.Equal(t, n+1, p.Stats().FailedRounds, "an open connection alone must not reset the backoff")
			}
			require.Zero(t, s.open())
			require.Zero(t, p.Stats().Open)
		}
	})
}

// Covers: E-11
func TestTheBackoffWaitEndsWithItsCtxWithCloseAndWithASuccessElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &peer{}
		s.failWith(errBoom)
		gate := make(chan struct{})
		dial := func(ctx context.Context, network, addr string) (c conn, err error) {
			if ctx.Value(gateKey{}) != nil {
				<-gate
			}
			return s.dial(ctx, network, addr)
		}
		p := newPool(t, pool.Options{DialFunc: dial, BackoffMin: 1000 * time.Hour, BackoffMax: 2000 * time.Hour})
		ctx := context.Background()
		gated := leaseAsync(context.WithValue(ctx, gateKey{}, true), p) // dials before the failure, ends after it
		synctest.Wait()
		_, err := p.Lease(ctx)
		require.ErrorIs(t, err, errBoom)
		s.failWith(nil)
		start := time.Now()

		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		_, err = p.Lease(short)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Millisecond, time.Since(start))
		require.Equal(t, 1, p.Stats().Open, "only the gated dial holds a place")

		other := leaseAsync(ctx, p)
		synctest.Wait()
		require.Empty(t, other, "it must sleep")
		close(gate)
		synctest.Wait()
		first, second := <-gated, <-other
		require.NoError(t, first.err)
		require.NoError(t, second.err)
		require.Equal(t, time.Millisecond, time.Since(start))

		s.failWith(errBoom)
		_, err = p.Lease(ctx)
		require.ErrorIs(t, err, errBoom)
		asleep := leaseAsync(ctx, p)
		synctest.Wait()
		require.NoError(t, p.Close())
		require.ErrorIs(t, (<-asleep).err, pool.ErrClosed)
		<-p.Done()
		p.Put(first.c)
		p.Put(second.c)
		require.Zero(t, s.open())
		require.Zero(t, p.Stats().Open)
	})
}

func TestALeaseThatBacksOffTakesAConnectionThatBecomesIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &peer{}
		p := newPool(t, pool.Options{DialFunc: s.dial, Size: 2, BackoffMin: time.Hour, BackoffMax: 2 * time.Hour})
		held := lease(t, p)
		s.failWith(errBoom)
		_, err := p.Lease(context.Background())
		require.ErrorIs(t, err, errBoom)
		sleeper := leaseAsync(context.Background(), p)
		synctest.Wait()
		waiter := leaseAsync(context.Background(), p)
		synctest.Wait()
		require.Equal(t, 1, p.Stats().Waiting)
		p.Put(held)
		got := <-sleeper
		require.NoError(t, got.err)
		require.Equal(t, held.Conn, got.c.Conn)
		synctest.Wait()
		require.Zero(t, p.Stats().Waiting, "the sleeper's place went to the waiter")
		p.Put(got.c)
		require.NoError(t, (<-waiter).err)
	})
}

// Ten dials failing at once are one round: without that ten callers would jump to the longest backoff together.
func TestDialsThatFailSideBySideCountAsOneRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		dial := func(context.Context, string, string) (conn, error) { <-gate; return nil, errBoom }
		p := newPool(t, pool.Options{DialFunc: dial})
		var all []<-chan leased
		for range 10 {
			all = append(all, leaseAsync(context.Background(), p))
		}
		synctest.Wait()
		require.Equal(t, uint64(10), p.Stats().Dials, "no dial waits for another")
		close(gate)
		for _, ch := range all {
			require.ErrorIs(t, (<-ch).err, errBoom)
		}
		require.Equal(t, 1, p.Stats().FailedRounds)
		require.Equal(t, map[pool.Phase]uint64{pool.PhaseConnect: 10}, p.Stats().DialFailures)
	})
}
