package fdengine_test

import (
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// slowLink takes 16 KiB in 20 ms and cannot say how much of a Write that failed has left, as TLS.
type slowLink struct {
	net.Conn
	mu       sync.Mutex
	deadline time.Time
}

func (c *slowLink) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	return nil
}

func (c *slowLink) Write(b []byte) (n int, err error) {
	for n < len(b) {
		some := b[n:min(n+16<<10, len(b))]
		if len(some) > 1000 {
			<-time.After(20 * time.Millisecond)
		}
		c.mu.Lock()
		late := !c.deadline.IsZero() && time.Now().After(c.deadline)
		c.mu.Unlock()
		if late {
			return n, os.ErrDeadlineExceeded
		}
		m, err := c.Conn.Write(some)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// Each request goes out within WriteTimeout, all that follow each other do not: that is no reason to cut.
//
// Covers: E-16
func TestBigRequestsOverASlowLinkAreTimedEachForItself(t *testing.T) {
	s := setup{Engine: fdengine.Options{WriteTimeout: 100 * time.Millisecond}, Wrap: func(c net.Conn) net.Conn { return &slowLink{Conn: c} }}
	bubble(t, s, func(t *testing.T, r *rig) {
		cs := echoes("c", 24, carry.NoRetry)
		for _, c := range cs {
			c.Args = []string{strings.Repeat("x", 50_000)}
		}
		errs := make([]error, len(cs))
		within(t, time.Minute, func() { _ = r.DoBatch(bg, commands(cs), errs) })
		require.NoError(t, errors.Join(errs...))
		require.Zero(t, r.Stats().Cuts)
	})
}

// A command has its reply due from when it has left, though what goes out with it has not.
//
// Covers: E-16
func TestAReplyIsDueThoughTheRestOfItsSpanHasNotLeft(t *testing.T) {
	s := setup{Engine: fdengine.Options{ReadTimeout: 200 * time.Millisecond, WriteTimeout: time.Minute}, Wrap: func(c net.Conn) net.Conn { return &slowLink{Conn: c} }}
	bubble(t, s, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		r.server.FreezeReplies(true)
		cs := echoes("c", 12, carry.NoRetry)
		for _, c := range cs {
			c.Args = []string{strings.Repeat("x", 20_000)}
		}
		var err error
		start := time.Now()
		within(t, time.Minute, func() { err = r.Do(bg, &scripted.Cmd{Token: "first", Args: cs[0].Args}) })
		require.Equal(t, carry.MaybeExecuted, fdengine.FateOf(err))
		one := time.Since(start)
		r.server.FreezeReplies(false)
		require.NoError(t, r.Ping(bg))
		r.server.FreezeReplies(true)
		var took time.Duration
		start = time.Now()
		told := &outcomes{then: func(cmd fdengine.Command, _ error) {
			if cmd == cs[0] {
				took = time.Since(start)
			}
		}}
		_, err = r.SubmitBatch(bg, commands(cs), told)
		require.NoError(t, err)
		pass(5 * time.Second)
		require.NotZero(t, took)
		require.Less(t, took, one+100*time.Millisecond, "as soon as when it is alone")
	})
}

// A connection that cannot say how far it has come is asked often, so that a slow one is not taken for a dead one.
//
// Covers: E-16
func TestARequestOfAnySizeGoesOverASlowLink(t *testing.T) {
	slow := setup{
		Engine: fdengine.Options{WriteTimeout: 100 * time.Millisecond, ReadTimeout: 60 * time.Millisecond},
		Wrap:   func(c net.Conn) net.Conn { return &slowLink{Conn: c} },
	}
	for _, size := range []int{60_000, 100_000, 1 << 20} {
		bubble(t, slow, func(t *testing.T, r *rig) {
			within(t, time.Minute, func() {
				require.NoError(t, r.Do(bg, &scripted.Cmd{Token: "c", Args: []string{strings.Repeat("x", size)}}))
			})
			require.Zero(t, r.Stats().Cuts, "%d", size)
		})
	}
	bubble(t, slow, func(t *testing.T, r *rig) {
		cs := echoes("small", 2000, carry.NoRetry)
		for _, c := range cs {
			c.Args = []string{strings.Repeat("x", 400)}
		}
		within(t, time.Minute, func() { require.NoError(t, r.DoBatch(bg, commands(cs), nil)) })
		require.Zero(t, r.Stats().Cuts)
	})
}

// dripping is a network that takes 10 bytes in a millisecond.
func dripping(_ int, c, _ *memnet.Conn) error {
	c.Out().SetBuffer(512)
	c.Out().Drip(100 * time.Microsecond)
	return nil
}

// What leaves slowly is not late before it has left: behind a longer one, and behind one without reply.
//
// Covers: E-16
func TestACommandIsNotLateWhileItLeaves(t *testing.T) {
	slow := setup{Engine: fdengine.Options{ReadTimeout: 300 * time.Millisecond, WriteTimeout: time.Minute}, OnDial: dripping}
	bubble(t, slow, func(t *testing.T, r *rig) {
		for _, size := range []int{30_000, 20_000, 10_000} {
			require.NoError(t, r.Do(bg, &scripted.Cmd{Token: "c", Args: []string{strings.Repeat("x", size)}}))
		}
		require.Zero(t, r.Stats().Cuts)
	})
	slow.Server.Script = func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
		return scripted.Action{NoReply: req.Token() == "quiet"}
	}
	bubble(t, slow, func(t *testing.T, r *rig) {
		quiet := &scripted.Cmd{Token: "quiet", Verb: "NOREPLY"}
		quiet.Traits.Frames = fdengine.NoReply
		require.NoError(t, r.DoBatch(bg, []fdengine.Command{quiet, &scripted.Cmd{Token: "c", Args: []string{strings.Repeat("x", 15_000)}}}, nil))
		require.Zero(t, r.Stats().Cuts)
	})
}

// A peer that takes some of what is written and says nothing is given up by ReadTimeout, whatever WriteTimeout is and however small the
// requests are.
//
// Covers: E-16
func TestAReplyIsDueThoughTheWriteBehindItIsStuck(t *testing.T) {
	const due = 400 * time.Millisecond
	for _, size := range []int{300, 20_000} {
		for _, wt := range []time.Duration{-1, time.Second, 10 * time.Second} {
			s := setup{Engine: fdengine.Options{ReadTimeout: due, WriteTimeout: wt}, OnDial: takes30000}
			bubble(t, s, func(t *testing.T, r *rig) {
				require.NoError(t, r.Ping(bg))
				r.server.FreezeReplies(true)
				cs := echoes("c", 400, carry.NoRetry)
				for _, c := range cs {
					c.Args = []string{strings.Repeat("x", size)}
				}
				var first time.Duration
				start := time.Now()
				o := &outcomes{then: func(cmd fdengine.Command, _ error) {
					if cmd == cs[0] {
						first = time.Since(start)
					}
				}}
				_, err := r.SubmitBatch(bg, commands(cs), o)
				require.NoError(t, err)
				pass(5 * time.Second)
				require.GreaterOrEqual(t, first, due, "%d bytes, %v", size, wt)
				// A quarter until it is known to have left, and twice a tick of the sweeper, an eighth when nothing moves.
				require.LessOrEqual(t, first, due+due/4+2*due/8, "%d bytes, %v", size, wt)
			})
		}
	}
}

// pulled counts how often its write deadline is set, and may refuse that.
type pulled struct {
	net.Conn
	times *atomic.Int32
	fail  error
}

func (*pulled) ExactWrite() bool { return true }

func (c *pulled) SetWriteDeadline(at time.Time) error {
	if !at.IsZero() {
		c.times.Add(1)
	}
	if c.fail != nil {
		return c.fail
	}
	return c.Conn.SetWriteDeadline(at)
}

// Covers: E-16
func TestAStuckWriteIsAskedFourTimesInEachReadTimeout(t *testing.T) {
	var times atomic.Int32
	s := setup{
		Engine: fdengine.Options{ReadTimeout: 400 * time.Millisecond, WriteTimeout: -1}, OnDial: takes30000,
		Wrap: func(c net.Conn) net.Conn { return &pulled{Conn: c, times: &times} },
	}
	bubble(t, s, func(t *testing.T, r *rig) {
		o := &outcomes{}
		submitAll(t, r, o, &scripted.Cmd{Token: "c", Args: []string{strings.Repeat("x", 100_000)}})
		pass(10 * 400 * time.Millisecond)
		require.InDelta(t, 40, times.Load(), 6)
		require.Zero(t, o.count(), "it has not left, and no write is ever late")
		require.NoError(t, r.Close())
	})
}

// A connection whose writes cannot be timed is given up when one is late.
//
// Covers: E-16, P1
func TestAWriteWhoseDeadlineCannotBeSetIsLateAllTheSame(t *testing.T) {
	var times atomic.Int32
	s := setup{
		Engine: fdengine.Options{ReadTimeout: 400 * time.Millisecond, WriteTimeout: time.Second, MaxOutage: 3 * time.Second}, OnDial: takes30000,
		Wrap: func(c net.Conn) net.Conn { return &pulled{Conn: c, times: &times, fail: errors.New("no deadlines")} },
	}
	bubble(t, s, func(t *testing.T, r *rig) {
		var err error
		within(t, 30*time.Second, func() { err = r.Do(bg, &scripted.Cmd{Token: "c", Args: []string{strings.Repeat("x", 100_000)}}) })
		failsAs(t, err, carry.NotSent, fdengine.ErrPoisoned)
	})
}
