package pool_test

import (
	"context"
	"fmt"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/pool"
)

func TestEachPhaseAndReasonHasAName(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{
		pool.PhaseConnect.String(), pool.PhaseTLS.String(), pool.PhaseCredentials.String(), pool.PhaseHandshake.String(),
		pool.PhaseOnConnect.String(), pool.Phase(99).String(), pool.Reason(99).String(),
	} {
		require.False(t, seen[name], name)
		seen[name] = true
	}
	for r := pool.ReasonOther; r <= pool.ReasonClosed; r++ {
		name := r.String()
		require.NotContains(t, name, "Reason(")
		require.False(t, seen[name], name)
		seen[name] = true
	}
	require.Equal(t, "Phase(99)", pool.Phase(99).String())
	require.Equal(t, "Reason(99)", fmt.Sprint(pool.Reason(99)))
}

// late is a context whose deadline has passed and whose timer has not fired yet.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now().Add(-time.Second), true }

// A socket may see the caller's deadline before the context's own timer does. The error is the caller's then, and the
// server is not blamed for it.
func TestADeadlineThatHasPassedIsTheCallersAlthoughItsTimerHasNotFired(t *testing.T) {
	s := &peer{}
	s.failWith(errBoom)
	p := newPool(t, pool.Options{DialFunc: s.dial})
	_, err := p.Lease(late{context.Background()})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Zero(t, p.Stats().FailedRounds)
	require.Equal(t, uint64(1), p.Stats().DialsCanceled)
}

func TestASocketThatTakesNoOptionsIsAFailedDial(t *testing.T) {
	addr := listen(t, drain)
	closed := func(ctx context.Context, n, a string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, n, a)
		if err == nil {
			err = c.Close()
		}
		return c, err
	}
	empty := func(context.Context, string, string) (net.Conn, error) { return new(net.TCPConn), nil }
	for _, alive := range []time.Duration{0, -1} {
		for name, tc := range map[string]struct {
			dial func(context.Context, string, string) (net.Conn, error)
			want error
		}{"closed": {closed, net.ErrClosed}, "without a descriptor": {empty, syscall.EINVAL}} {
			p := newPool(t, pool.Options{Addr: addr, DialFunc: tc.dial, KeepAlive: alive})
			_, err := p.Lease(context.Background())
			var de *pool.DialError
			require.ErrorAs(t, err, &de, name)
			require.Equal(t, pool.PhaseConnect, de.Phase)
			require.ErrorIs(t, err, tc.want)
			require.Zero(t, p.Stats().Open)
		}
	}
}

// The timer that reaps may be late, as on a machine that was suspended.
func TestAnIdleConnectionWhoseTimeHasComeIsNotLentAlthoughNobodyReapedIt(t *testing.T) {
	for name, c := range map[string]struct {
		o      pool.Options
		reason pool.Reason
	}{
		"age":  {pool.Options{MaxAge: time.Minute, IdleTimeout: -1}, pool.ReasonAge},
		"idle": {pool.Options{IdleTimeout: time.Minute}, pool.ReasonIdle},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &peer{}
				c.o.DialFunc = s.dial
				p := newPool(t, c.o)
				p.Put(lease(t, p))
				require.False(t, p.ReapTimerStopped(), "it was armed")
				time.Sleep(2 * time.Minute)
				p.Put(lease(t, p))
				require.Equal(t, uint64(2), p.Stats().Dials)
				require.Equal(t, map[pool.Reason]uint64{c.reason: 1}, p.Stats().Removed)
				require.NoError(t, p.Close())
			})
		})
	}
}

func TestAHookIsNotAskedAboutAConnectionThatTakesNoDeadline(t *testing.T) {
	s, asked := &peer{}, false
	p := newPool(t, pool.Options{DialFunc: s.dial, OnPut: func(*pool.Conn) error { asked = true; return nil }})
	c := lease(t, p)
	require.NoError(t, c.Abort())
	p.Put(c)
	require.False(t, asked, "it could block for good")
	require.Equal(t, map[pool.Reason]uint64{pool.ReasonOnPut: 1}, p.Stats().Removed)
	require.Zero(t, p.Stats().Open)
}

// Close and the end of the waiter's ctx at the same moment: the waiter was served an error, which holds no place.
func TestAWaiterThatLeavesWhileThePoolClosesHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for i := range 20 {
			s := &peer{}
			p := newPool(t, pool.Options{DialFunc: s.dial, Size: 1})
			held := lease(t, p)
			ctx, cancel := context.WithCancel(context.Background())
			got := leaseAsync(ctx, p)
			synctest.Wait()
			want := context.Canceled
			if i%2 == 0 {
				cancel()
				require.NoError(t, p.Close())
			} else {
				want = pool.ErrClosed
				require.NoError(t, p.Close())
				cancel()
			}
			require.Equal(t, want, (<-got).err, "what came first")
			p.Put(held)
			<-p.Done()
			require.Zero(t, p.Stats().Open)
			require.Zero(t, s.open())
		}
	})
}
