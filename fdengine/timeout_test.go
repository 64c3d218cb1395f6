package fdengine_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
)

const second = time.Second

// took is how long f runs.
func took(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// Covers: E-16, C12, E-5
func TestAReplyThatIsLateCutsTheConnection(t *testing.T) {
	s := script{"n": always(scripted.Delay(300 * time.Millisecond)), "p": always(scripted.Delay(300 * time.Millisecond))}
	o := fdengine.Options{ReadTimeout: 50 * time.Millisecond}
	bubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig) {
		n := scripted.Echo("n")
		var err error
		d := took(func() { err = r.Do(bg, n) })
		failsAs(t, err, carry.MaybeExecuted, fdengine.ErrMaybeExecuted)
		var ne net.Error
		require.ErrorAs(t, err, &ne)
		require.True(t, ne.Timeout())
		require.InDelta(t, 50, d.Milliseconds(), 15)
		require.Zero(t, n.Decodes)
		p := scripted.ReplayEcho("p")
		p.Traits.Budget = 2
		err = r.Do(bg, p)
		failsAs(t, err, carry.MaybeExecuted, fdengine.ErrBudget)
		var ce *fdengine.CallError
		require.ErrorAs(t, err, &ce)
		require.Equal(t, 3, ce.Sends)
		pass(5 * second)
		require.Equal(t, 1, r.server.Executions("n"))
		require.LessOrEqual(t, r.server.Executions("p"), 3)
		require.Equal(t, 4, r.leaser.Counts().Removes, "none is used again")
	})
}

// Covers: E-16
func TestLaterWritesDoNotPutOffTheReadTimeout(t *testing.T) {
	s := script{"slow": always(scripted.Stall())}
	bubble(t, setup{Server: s.options(), Engine: fdengine.Options{ReadTimeout: second}}, func(t *testing.T, r *rig) {
		o := &outcomes{}
		c := scripted.Echo("slow")
		submitAll(t, r, o, c)
		for _, w := range echoes("w", 9, carry.NoRetry) {
			pass(100 * time.Millisecond)
			submitAll(t, r, o, w)
		}
		pass(115 * time.Millisecond)
		failed(t, o, c, carry.MaybeExecuted)
		require.Equal(t, uint64(1), r.Stats().Cuts)
	})
}

// Covers: E-16
func TestAPushIsNoProgress(t *testing.T) {
	s := script{"slow": always(scripted.Stall())}
	pushes := 0
	o := fdengine.Options{ReadTimeout: second, OnPush: func([]byte) { pushes++ }}
	bubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig) {
		oc := &outcomes{}
		c := scripted.Echo("slow")
		submitAll(t, r, oc, c)
		synctest.Wait()
		raw := r.server.Conn(0)
		for range 9 {
			pass(100 * time.Millisecond)
			_, err := raw.NetConn().Write(scripted.PushFrame("message", "x"))
			require.NoError(t, err)
		}
		pass(115 * time.Millisecond)
		require.Equal(t, 9, pushes)
		failed(t, oc, c, carry.MaybeExecuted)
	})
}

// Covers: E-16
func TestEachReplyIsProgress(t *testing.T) {
	s := scripted.Options{Script: func(*scripted.ServerConn, scripted.Request) scripted.Action {
		return scripted.Delay(800 * time.Millisecond)
	}}
	bubble(t, setup{Server: s, Engine: fdengine.Options{ReadTimeout: second}}, func(t *testing.T, r *rig) {
		o := &outcomes{}
		cs := echoes("c", 10, carry.NoRetry)
		submitAll(t, r, o, cs...)
		pass(9 * second)
		ok(t, o, cs...)
		require.Zero(t, r.Stats().Cuts)
	})
}

// Covers: E-16
func TestTimeInUserCodeIsNotThePeers(t *testing.T) {
	t.Run("a completion", func(t *testing.T) {
		s := script{"b": always(scripted.Delay(800 * time.Millisecond))}
		bubble(t, setup{Server: s.options(), Engine: fdengine.Options{ReadTimeout: second}}, func(t *testing.T, r *rig) {
			a, b := scripted.Echo("a"), scripted.Echo("b")
			o := &outcomes{}
			o.then = func(cmd fdengine.Command, _ error) {
				if cmd == fdengine.Command(a) {
					time.Sleep(10 * second)
				}
			}
			r.together(func() { submitAll(t, r, o, a, b) })
			pass(12 * second)
			ok(t, o, a, b)
			require.Zero(t, r.Stats().Cuts)
		})
	})
	t.Run("a push handler", func(t *testing.T) {
		// The reply comes 900 ms of the peer's time after the request, the handler takes two seconds in between.
		s := script{"a": func(int) scripted.Action {
			return scripted.Action{Delay: 2900 * time.Millisecond}
		}}
		o := fdengine.Options{ReadTimeout: second, OnPush: func([]byte) { time.Sleep(2 * second) }}
		bubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig) {
			oc := &outcomes{}
			a := scripted.Echo("a")
			submitAll(t, r, oc, a)
			pass(500 * time.Millisecond)
			_, err := r.server.Conn(0).NetConn().Write(scripted.PushFrame("message", "x"))
			require.NoError(t, err)
			pass(5 * second)
			ok(t, oc, a)
			require.Zero(t, r.Stats().Cuts)
		})
	})
	t.Run("a writer the peer cannot serve because we do not read", func(t *testing.T) {
		big := strings.Repeat("x", 100<<10)
		o := fdengine.Options{WriteTimeout: second, ReadTimeout: second}
		bubble(t, setup{Server: scripted.Options{ReadAhead: -1}, Engine: o}, func(t *testing.T, r *rig) {
			first := scripted.Echo("first")
			oc := &outcomes{}
			oc.then = func(cmd fdengine.Command, _ error) {
				if cmd == fdengine.Command(first) {
					time.Sleep(10 * second)
				}
			}
			submitAll(t, r, oc, first)
			synctest.Wait()
			cs := make([]*scripted.Cmd, 8) // echo 100 KiB each: the replies fill the buffers, then the requests do
			for i := range cs {
				cs[i] = scripted.Echo(big + itoa(i))
			}
			submitAll(t, r, oc, cs...)
			pass(12 * second)
			ok(t, oc, cs...)
			require.Zero(t, r.Stats().Cuts)
		})
	})
}

// Covers: E-16
func TestAWriteIsLateWhenNoByteIsAccepted(t *testing.T) {
	big := strings.Repeat("x", 300<<10)
	o := fdengine.Options{WriteTimeout: second, ReadTimeout: -1}
	bubble(t, setup{Engine: o}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		r.server.FreezeReads(true)
		oc := &outcomes{}
		n := &scripted.Cmd{Token: "n", Args: []string{big}}
		submitAll(t, r, oc, n)
		pass(900 * time.Millisecond)
		require.Zero(t, oc.count())
		pass(1200 * time.Millisecond)
		require.Equal(t, uint64(1), r.Stats().Cuts)
		r.server.FreezeReads(false)
		pass(5 * second)
		ok(t, oc, n) // NoRetry, but its last byte was never accepted
		require.Equal(t, 1, r.server.Executions("n"))
		require.Equal(t, 1, n.Sends, "a send that did not leave is none")
	})
}

// Covers: E-16
func TestAPeerThatIsSlowButMovesIsNotCut(t *testing.T) {
	o := fdengine.Options{WriteTimeout: 200 * time.Millisecond, ReadTimeout: second}
	tiny := func(_ int, c, _ *memnet.Conn) error { c.Out().SetBuffer(16); return nil }
	bubble(t, setup{Engine: o, OnDial: tiny}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		r.conn(0).Out().Drip(10 * time.Millisecond)
		n := &scripted.Cmd{Token: "n", Args: []string{strings.Repeat("x", 1000)}}
		d := took(func() { require.NoError(t, r.Do(bg, n)) })
		require.Greater(t, d, 9*second, "a kilobyte at ten milliseconds each")
		require.Zero(t, r.Stats().Cuts)
		require.Equal(t, 1, n.Sends)
	})
}

// Covers: E-16
func TestNoTimeoutsMeansNone(t *testing.T) {
	s := script{"slow": always(scripted.Delay(time.Hour))}
	bubble(t, setup{Server: s.options(), Engine: fdengine.Options{ReadTimeout: -1, WriteTimeout: -1, PingEvery: -1}}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Do(bg, scripted.Echo("slow")))
	})
}

// Covers: E-16
func TestADrainWithoutReadTimeoutIsBounded(t *testing.T) {
	s := script{"ro": first(1, scripted.Refuse("READONLY retry=1")), "slow": always(scripted.Stall())}
	bubble(t, setup{Server: s.options(), Engine: fdengine.Options{ReadTimeout: -1}}, func(t *testing.T, r *rig) {
		o := &outcomes{}
		ro, slow := scripted.Echo("ro"), scripted.Echo("slow")
		r.together(func() { submitAll(t, r, o, ro, slow) })
		pass(4 * second)
		require.Zero(t, o.count())
		pass(3 * second)
		failed(t, o, slow, carry.MaybeExecuted)
		ok(t, o, ro)
		require.Equal(t, 2, r.server.Conns())
	})
}

// Covers: C21, E-19
func TestTheDeadlineOfOneIsNobodyElses(t *testing.T) {
	s := script{"a": always(scripted.Delay(120 * time.Millisecond)), "c": always(scripted.Delay(300 * time.Millisecond)), "slow": always(scripted.Delay(2 * second))}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(bg, 30*time.Millisecond)
		defer cancel()
		o := &outcomes{}
		a, b := scripted.Echo("a"), scripted.Echo("b")
		d := took(func() {
			go func() { o.Complete(a, r.Do(ctx, a)) }()
			synctest.Wait()
			require.NoError(t, r.Submit(bg, b, o))
			<-ctx.Done()
			synctest.Wait()
		})
		failed(t, o, a, carry.MaybeExecuted, context.DeadlineExceeded)
		require.Equal(t, 30*time.Millisecond, d)
		pass(200 * time.Millisecond)
		ok(t, o, b)
		require.NoError(t, r.Do(bg, scripted.Echo("c")), "no deadline is left behind")
		slow := scripted.Echo("slow")
		require.NoError(t, r.Submit(bg, slow, o))
		behind := scripted.Echo("behind")
		behind.Traits.Timeout = 50 * time.Millisecond
		d = took(func() {
			failsAs(t, r.Do(bg, behind), carry.MaybeExecuted, fdengine.ErrTimeout, context.DeadlineExceeded)
		})
		require.InDelta(t, 55, d.Milliseconds(), 10)
		pass(3 * second)
		ok(t, o, slow)
		require.Equal(t, 1, r.server.Conns())
	})
}

// Covers: C42, S2-9
func TestAFrozenConnectionIsFoundUnderLoad(t *testing.T) {
	for name, freeze := range map[string]func(c *memnet.Conn){
		"both ways": func(c *memnet.Conn) { c.Freeze() },
		"requests":  func(c *memnet.Conn) { c.Out().Freeze() },
		"replies":   func(c *memnet.Conn) { c.In().Freeze() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, setup{Engine: fdengine.Options{ReadTimeout: second}}, func(t *testing.T, r *rig) {
				require.NoError(t, r.Ping(bg))
				freeze(r.conn(0))
				n, p := scripted.Echo("n"), scripted.ReplayEcho("p")
				o := &outcomes{}
				submitAll(t, r, o, n, p)
				pass(1100 * time.Millisecond)
				failed(t, o, n, carry.MaybeExecuted)
				pass(2 * second)
				ok(t, o, p)
				fresh := scripted.Echo("fresh")
				require.NoError(t, r.Do(bg, fresh))
				r.conn(0).Thaw()
				pass(second)
				require.Equal(t, 1, p.Decodes, "late replies reach nobody")
				require.Zero(t, n.Decodes)
				require.NotContains(t, r.server.ConnTokens(0), "fresh")
			})
		})
	}
}
