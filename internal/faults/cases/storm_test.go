package cases_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// C17: a call was retried until the server came back, without bound or pause; a mark of a free retry looped; all
// attempts were burnt at once on a dead node; and many clients reconnected in step.
// https://github.com/redis/rueidis/issues/680 https://github.com/grpc/grpc-go/pull/5503
// https://github.com/redis/jedis/issues/2347 https://github.com/redis/ioredis/pull/1854
func TestRetriesAreBoundedPausedAndSpread(t *testing.T) {
	pace := fdengine.Options{BackoffMin: 50 * time.Millisecond, BackoffMax: time.Second}
	t.Run("nobody listens", func(t *testing.T) {
		eo := pace
		eo.MaxOutage = time.Second
		bubble(t, setup{Down: true, Engine: eo}, func(t *testing.T, r *rig) {
			start := time.Now()
			fails(t, r.run(bg, again("x", 100)), carry.NotSent, fdengine.ErrUnavailable)
			took(t, start, time.Second, 1200*time.Millisecond)
			require.GreaterOrEqual(t, r.net.Dials(), 2)
			require.LessOrEqual(t, r.net.Dials(), 15, "dials follow the backoff")
		})
	})
	t.Run("every connection is closed before anything is read", func(t *testing.T) {
		eo := pace
		eo.MaxOutage = -1
		bubble(t, setup{Engine: eo}, func(t *testing.T, r *rig) {
			r.server.RefuseConns(true)
			start := time.Now()
			ctx, cancel := context.WithTimeout(bg, 5*time.Second)
			defer cancel()
			c := once("short")
			c.Traits.Timeout = 300 * time.Millisecond
			r.submit(c)
			fails(t, r.run(ctx, again("x", 100)), carry.NotSent, context.DeadlineExceeded)
			took(t, start, 5*time.Second, 5*time.Second)
			r.failed(t, c, carry.NotSent, fdengine.ErrTimeout)
			require.GreaterOrEqual(t, r.net.Dials(), 5)
			require.LessOrEqual(t, r.net.Dials(), 25)
			tally.Cut(r.net.Dials())
		})
	})
	t.Run("a connect alone does not reset the backoff", func(t *testing.T) {
		// The handshake passes, the command kills the connection: as often as its budget allows, which is no rate.
		s := script{"x": always(scripted.DropBefore())}
		bubble(t, setup{Server: s.options(), Engine: pace}, func(t *testing.T, r *rig) {
			x := again("x", 60_000)
			x.Traits.Timeout = 5 * time.Second
			fails(t, r.run(bg, x), carry.MaybeExecuted, context.DeadlineExceeded)
			require.GreaterOrEqual(t, r.server.Conns(), 5)
			require.LessOrEqual(t, r.server.Conns(), 25)
			tally.Cut(r.server.Conns())
		})
	})
	t.Run("a successful reply does", func(t *testing.T) {
		bubble(t, setup{Engine: pace}, func(t *testing.T, r *rig) {
			r.server.RefuseConns(true)
			r.submit(again("x", 1))
			pass(5 * time.Second)
			r.server.RefuseConns(false)
			r.settled(2 * time.Second)
			r.server.CloseConns()
			synctest.Wait()
			start := time.Now()
			require.NoError(t, r.run(bg, once("y")))
			took(t, start, 0, 100*time.Millisecond)
		})
	})
	t.Run("many engines after an outage of 3 s", func(t *testing.T) {
		n := tally.Count(60, 200)
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, setup{Loose: true})
			var engines []*fdengine.Engine
			for i := range n {
				l := scripted.NewLeaser(func(ctx context.Context) (net.Conn, error) { return w.net.Dial(ctx, "mem", "server") })
				defer l.Close()
				e := w.engine(fdengine.Options{BackoffMin: 50 * time.Millisecond, BackoffMax: time.Second}, l)
				defer func() { _ = e.Close(); <-e.Done() }()
				engines = append(engines, e)
				require.NoError(t, w.do(bg, fmt.Sprint(i), e, once(fmt.Sprintf("warm%d", i))))
			}
			w.down()
			var mine []*scripted.Cmd
			for i, e := range engines {
				c := again(fmt.Sprintf("t%d", i), 1)
				mine = append(mine, c)
				require.NoError(t, w.book.submit(bg, fmt.Sprint(i), e, c))
			}
			pass(3 * time.Second)
			before := w.server.Conns()
			w.listen()
			w.settled(time.Minute)
			w.ok(t, commands(mine)...)
			buckets := map[int64]int{}
			for i := before; i < w.server.Conns(); i++ {
				buckets[w.server.Requests(i)[0].At.UnixMilli()/20]++
			}
			require.Equal(t, before+n, w.server.Conns(), "one connection each")
			for _, in20ms := range buckets {
				require.LessOrEqual(t, in20ms, n/5, "of %d", n)
			}
			w.judge(t, w.server)
			for _, e := range engines {
				_ = e.Close()
				<-e.Done()
				even(t, e.Stats())
			}
			w.closed()
		})
	})
	t.Run("CPU", func(t *testing.T) { slowStormCPU(t, pace) })
}

// A blackhole is a server that drops packets: a dial hangs until its time is over, and is bounded all the same.
func TestADialThatHangsIsBoundedByTheDeadlineOfTheCall(t *testing.T) {
	hang := func(int, *memnet.Conn, *memnet.Conn) error { return memnet.ErrBlackHole }
	bubble(t, setup{OnDial: hang, Engine: fdengine.Options{MaxOutage: 2 * time.Second}}, func(t *testing.T, r *rig) {
		pass(time.Millisecond)
		start := time.Now()
		ctx, cancel := context.WithTimeout(bg, 300*time.Millisecond)
		defer cancel()
		fails(t, r.run(ctx, once("a")), carry.NotSent, context.DeadlineExceeded)
		took(t, start, 300*time.Millisecond, 300*time.Millisecond)
		fails(t, r.run(bg, once("b")), carry.NotSent, fdengine.ErrUnavailable)
		took(t, start, 2*time.Second, 2400*time.Millisecond)
	})
}
