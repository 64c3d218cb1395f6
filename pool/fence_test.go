package pool_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/panics"
	"github.com/fdengine/fullduplex/pool"
)

func TestTheCauseOfARemoveDecidesOnTheFence(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("reading: %w", &net.OpError{Op: "read", Err: err}) }
	for name, tc := range map[string]struct {
		why    error
		fence  bool
		reason pool.Reason
	}{
		"clean":            {nil, false, pool.ReasonClean},
		"end of file":      {wrap(io.EOF), false, pool.ReasonPeerClosed},
		"reset":            {wrap(os.NewSyscallError("read", syscall.ECONNRESET)), false, pool.ReasonPeerClosed},
		"broken pipe":      {wrap(syscall.EPIPE), false, pool.ReasonPeerClosed},
		"timeout":          {wrap(os.ErrDeadlineExceeded), true, pool.ReasonTimeout},
		"kernel timeout":   {wrap(syscall.ETIMEDOUT), true, pool.ReasonTimeout},
		"ctx":              {context.DeadlineExceeded, true, pool.ReasonTimeout},
		"cut by us":        {wrap(net.ErrClosed), true, pool.ReasonCut},
		"desync":           {errBoom, true, pool.ReasonOther},
		"parser's EOF":     {io.ErrUnexpectedEOF, true, pool.ReasonOther},
		"panic":            {&panics.Error{Boundary: "x", Value: 1}, true, pool.ReasonPanic},
		"panic with a EOF": {&panics.Error{Boundary: "x", Value: io.EOF}, true, pool.ReasonPanic},
	} {
		t.Run(name, func(t *testing.T) {
			s, n := &peer{}, &numbered{}
			p := newPool(t, pool.Options{DialFunc: s.dial, Handshake: n.handshake})
			a, b := lease(t, p), lease(t, p)
			p.Put(b)
			p.Remove(a, tc.why)
			require.Equal(t, map[pool.Reason]uint64{tc.reason: 1}, p.Stats().Removed)
			require.Equal(t, 1, s.open(), "Remove closes")
			c := lease(t, p)
			if !tc.fence {
				require.Equal(t, 2, c.Session, "nothing to fence: the idle connection is lent")
				return
			}
			require.Equal(t, 3, c.Session, "an idle connection would let the replay overtake the fence")
			require.Equal(t, []any{1}, n.lastFence())
			require.Zero(t, p.Stats().Fences)
			require.Equal(t, 2, lease(t, p).Session, "after the fence the idle ones are lent again")
		})
	}
}

func TestAFenceIsKeptUntilAHandshakeThatWasGivenItSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := &peer{}, &numbered{}
		p := newPool(t, pool.Options{DialFunc: s.dial, Handshake: n.handshake})
		a, b, idle := lease(t, p), lease(t, p), lease(t, p)
		p.Put(idle)
		p.Remove(a, errBoom)
		n.failWith(errBoom)
		_, err := p.Lease(context.Background())
		require.ErrorIs(t, err, errBoom)
		require.Equal(t, []any{1}, n.lastFence())
		_, ok := p.TryLease()
		require.False(t, ok)
		s.failWith(errBoom)
		_, err = p.Lease(context.Background())
		require.ErrorIs(t, err, errBoom)
		s.failWith(nil)
		p.Remove(b, errBoom)
		require.Equal(t, 2, p.Stats().Fences)
		n.failWith(nil)
		c := lease(t, p)
		require.Equal(t, []any{1, 2}, n.lastFence())
		require.Equal(t, 4, c.Session)
		d := lease(t, p)
		require.Equal(t, 3, d.Session)
		p.Remove(c, nil)
		p.Remove(d, nil)
		c = lease(t, p)
		require.Empty(t, n.lastFence())
		p.Put(c)
	})
}

func TestAFenceThatComesDuringAHandshakeIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := &peer{}, &numbered{}
		gate := make(chan struct{})
		p := newPool(t, pool.Options{DialFunc: s.dial, Handshake: func(ctx context.Context, d *pool.Dial) error {
			if ctx.Value(gateKey{}) != nil {
				<-gate
			}
			return n.handshake(ctx, d)
		}})
		a, b := lease(t, p), lease(t, p)
		p.Remove(a, errBoom)
		slow := leaseAsync(context.WithValue(context.Background(), gateKey{}, 1), p)
		synctest.Wait()
		p.Remove(b, errBoom)
		close(gate)
		got := <-slow
		require.NoError(t, got.err)
		require.Equal(t, []any{1}, n.lastFence(), "it began before the second Remove")
		require.Equal(t, 1, p.Stats().Fences)
		p.Put(got.c)
		c := lease(t, p)
		require.Equal(t, []any{2}, n.lastFence())
		p.Put(c)
	})
}

// At the limit, with every other connection idle, a Lease that must dial would wait for ever.
func TestAtTheLimitOneIdleConnectionMakesRoomForTheFencingDial(t *testing.T) {
	for _, failWhenFull := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, n := &peer{}, &numbered{}
			gate := make(chan struct{})
			p := newPool(t, pool.Options{
				DialFunc: s.dial, Size: 4, FailWhenFull: failWhenFull,
				Handshake: func(ctx context.Context, d *pool.Dial) error {
					if ctx.Value(gateKey{}) != nil {
						<-gate
						return errBoom
					}
					return n.handshake(ctx, d)
				},
			})
			a, b, c, d := lease(t, p), lease(t, p), lease(t, p), lease(t, p)
			p.Remove(a, errBoom)
			slow := leaseAsync(context.WithValue(context.Background(), gateKey{}, 1), p) // takes the place of a
			synctest.Wait()
			p.Put(b)
			p.Put(c)
			p.Put(d)
			e := lease(t, p)
			require.Equal(t, 5, e.Session)
			require.Equal(t, []any{1}, n.lastFence())
			require.Equal(t, uint64(1), p.Stats().Removed[pool.ReasonFence])
			require.Equal(t, 2, p.Stats().Idle)
			require.Equal(t, 4, s.most())
			require.Equal(t, 4, lease(t, p).Session)
			require.Equal(t, 3, lease(t, p).Session, "the one idle longest was given up")
			close(gate)
			require.ErrorIs(t, (<-slow).err, errBoom)
		})
	}
}

func TestAWaiterIsNotServedAConnectionThatWouldPassTheFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := &peer{}, &numbered{}
		gate := make(chan struct{})
		p := newPool(t, pool.Options{
			DialFunc: s.dial, Size: 2, BackoffMin: time.Nanosecond,
			Handshake: func(ctx context.Context, d *pool.Dial) error {
				if ctx.Value(gateKey{}) != nil {
					<-gate
					return errBoom // whatever becomes of this dial, it does not fence
				}
				return n.handshake(ctx, d)
			},
		})
		a, b := lease(t, p), lease(t, p)
		p.Remove(a, errBoom)
		slow := leaseAsync(context.WithValue(context.Background(), gateKey{}, 1), p) // takes the place of a
		synctest.Wait()
		waiting := leaseAsync(context.Background(), p)
		synctest.Wait()
		require.Equal(t, 1, p.Stats().Waiting)
		p.Put(b)
		got := <-waiting
		require.NoError(t, got.err)
		require.Equal(t, 3, got.c.Session, "a fresh connection")
		require.Equal(t, []any{1}, n.lastFence())
		require.Equal(t, map[pool.Reason]uint64{pool.ReasonOther: 1, pool.ReasonFence: 1}, p.Stats().Removed)
		require.Equal(t, 2, s.most())
		close(gate)
		require.ErrorIs(t, (<-slow).err, errBoom)
		p.Put(got.c)
	})
}

func TestASessionlessConnectionNeedsNoFence(t *testing.T) {
	s := &peer{}
	p := newPool(t, pool.Options{DialFunc: s.dial})
	p.Remove(lease(t, p), errors.New("desync"))
	require.Zero(t, p.Stats().Fences)
}
