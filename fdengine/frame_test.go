package fdengine_test

import (
	"fmt"
	"runtime"
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

// Covers: C08, E-1, S0-30
func TestAFrameThatCannotBeCutsTheConnectionAndShiftsNothing(t *testing.T) {
	for _, bad := range []string{
		"$4294967296\r\n", "$0:\r\n", "$-2\r\n", "$18446744073709551621\r\n", "*-2\r\n", "$5\r\nabc",
		strings.Repeat("*1\r\n", 100_000), "?what\r\n", "-ERR Protocol error: bad\r\n", "\r\n",
	} {
		t.Run(fmt.Sprintf("%.12q", bad), func(t *testing.T) {
			s := script{"c3": first(1, scripted.Action{Reply: []byte(bad), Close: true})}
			o := fdengine.Options{MaxReply: 1 << 20}
			bubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig) {
				oc := &outcomes{}
				cs := echoes("c", 10, carry.NoRetry)
				for i := 4; i < 10; i += 2 {
					cs[i].Traits.Class = carry.Replay
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				r.together(func() { submitAll(t, r, oc, cs...) })
				pass(10 * time.Second)
				runtime.ReadMemStats(&after)
				require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(64<<20))
				ok(t, oc, cs[:3]...)
				require.Error(t, settledOf(t, oc, cs[3]))
				for i := 4; i < 10; i++ {
					if i%2 == 0 {
						ok(t, oc, cs[i])
						require.Equal(t, 2, cs[i].Sends)
					} else {
						failed(t, oc, cs[i], carry.MaybeExecuted, fdengine.ErrMaybeExecuted)
					}
				}
				require.Equal(t, uint64(1), r.Stats().Cuts)
			})
		})
	}
}

// Covers: C08
func TestTheCauseOfAFramingCutIsTheFramingError(t *testing.T) {
	s := script{"c": always(scripted.Reply("?what\r\n"))}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		err := r.Do(bg, scripted.Echo("c"))
		failsAs(t, err, carry.MaybeExecuted)
		var fe *fdengine.FramingError
		require.ErrorAs(t, err, &fe)
	})
}

// Covers: C08
func TestUnusualButWholeFramesAreDelivered(t *testing.T) {
	for _, raw := range []string{
		"$0\r\n\r\n", "$-1\r\n", "*-1\r\n", "_\r\n", "~2\r\n+a\r\n+b\r\n", "%1\r\n+k\r\n*2\r\n:1\r\n:2\r\n",
		"*0\r\n", "+" + strings.Repeat("s", 60<<10) + "\r\n", "|1\r\n+ttl\r\n:3\r\n+x\r\n",
	} {
		s := script{"c": always(scripted.Reply(raw))}
		bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
			c, after := scripted.Echo("c"), scripted.Echo("after")
			require.NoError(t, r.Do(bg, c))
			require.Equal(t, raw, c.Raw)
			require.NoError(t, r.Do(bg, after))
			require.Equal(t, 1, r.server.Conns())
		})
	}
}

// Covers: E-37
func TestAReplyNobodyAskedForCutsTheConnection(t *testing.T) {
	t.Run("idle", func(t *testing.T) {
		bubble(t, setup{}, func(t *testing.T, r *rig) {
			require.NoError(t, r.Do(bg, scripted.Echo("a")))
			r.server.Conn(0).Push([]byte("+OK\r\n"))
			synctest.Wait()
			require.Equal(t, uint64(1), r.Stats().Cuts)
			c := scripted.Echo("c")
			require.NoError(t, r.Do(bg, c))
			require.Equal(t, "c", c.Reply)
		})
	})
	t.Run("glued to the answer", func(t *testing.T) {
		bubble(t, setup{Server: script{"a": always(scripted.Surplus("+MORE\r\n"))}.options()}, func(t *testing.T, r *rig) {
			a, b := scripted.Echo("a"), scripted.Echo("b")
			require.NoError(t, r.Do(bg, a))
			synctest.Wait()
			require.NoError(t, r.Do(bg, b))
			require.Equal(t, []string{"a", "b"}, []string{a.Reply, b.Reply})
			require.Equal(t, 2, r.server.Conns())
		})
	})
	t.Run("behind the handshake", func(t *testing.T) {
		once := true
		o := scripted.Options{OnHandshake: func(*scripted.ServerConn, scripted.Request) scripted.Action {
			if once {
				once = false
				return scripted.Surplus("+OK\r\n")
			}
			return scripted.Action{}
		}}
		bubble(t, setup{Server: o}, func(t *testing.T, r *rig) {
			c := scripted.ReplayEcho("c")
			require.NoError(t, r.Do(bg, c))
			require.Equal(t, "c", c.Reply)
		})
	})
	t.Run("max clients, at the handshake", func(t *testing.T) {
		once := true
		o := scripted.Options{OnHandshake: func(*scripted.ServerConn, scripted.Request) scripted.Action {
			if once {
				once = false
				return scripted.Action{Refuse: "ERR max number of clients reached", Close: true}
			}
			return scripted.Action{}
		}}
		bubble(t, setup{Server: o}, func(t *testing.T, r *rig) {
			c := scripted.Echo("c")
			require.NoError(t, r.Do(bg, c))
			require.Equal(t, 1, c.Sends)
			require.Equal(t, uint64(1), r.Stats().LeaseErrors)
		})
	})
}

// Covers: E-30
func TestPushesAreNeverPairedWithACommand(t *testing.T) {
	push := scripted.PushFrame("message", "ch", "hello")
	for name, drip := range map[string]time.Duration{"whole": 0, "byte by byte": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			var got []string
			s := script{
				"before": always(scripted.Action{PushBefore: push}), "after": always(scripted.Action{PushAfter: push}),
				"both": always(scripted.Action{PushBefore: push, PushAfter: push}),
			}
			o := fdengine.Options{OnPush: func(f []byte) { got = append(got, string(f)) }}
			bubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig) {
				require.NoError(t, r.Ping(bg))
				r.conn(0).In().Drip(drip)
				oc := &outcomes{}
				var cs []*scripted.Cmd
				for _, tok := range []string{"x", "before", "after", "both", "y"} {
					cs = append(cs, scripted.Echo(tok))
				}
				submitAll(t, r, oc, cs...)
				pass(2 * time.Second)
				r.server.Conn(0).Push(push)
				pass(2 * time.Second)
				ok(t, oc, cs...)
				require.Len(t, got, 5)
				for _, f := range got {
					require.Equal(t, string(push), f)
				}
				require.Equal(t, 1, r.server.Conns())
			})
		})
	}
}

// Covers: E-30, S4-14
func TestAPushHandlerThatFailsHarmsNobody(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		s := script{"a": always(scripted.Action{PushBefore: scripted.PushFrame("x"), PushAfter: scripted.PushFrame("y")})}
		bubble(t, setup{Server: s.options(), Engine: fdengine.Options{OnPush: func([]byte) { deed() }}}, func(t *testing.T, r *rig) {
			oc := &outcomes{}
			a, b := scripted.Echo("a"), scripted.Echo("b")
			r.together(func() { submitAll(t, r, oc, a, b) })
			pass(time.Second)
			ok(t, oc, a, b)
			require.Equal(t, uint64(2), r.Stats().Panics)
			require.Equal(t, 1, r.server.Conns())
		})
	})
}

// group is MULTI..EXEC as one record: the queue replies are skipped.
func group(token string, class carry.Class) *scripted.Cmd {
	return &scripted.Cmd{Verb: "EXEC", Token: token, Prefix: [][]string{{"MULTI", token + "-m"}, {"SET", token + "-1"}, {"SET", token + "-2"}},
		Traits: fdengine.Spec{Class: class, Frames: 4, Skip: 3}}
}

// Covers: E-18, E-12
func TestARecordOfSeveralFramesIsOne(t *testing.T) {
	push := scripted.PushFrame("p")
	s := script{"g1": first(1, scripted.DropAfter()), "g2-1": always(scripted.Action{PushBefore: push, PushAfter: push}),
		"g3-1": always(scripted.Refuse("LOADING retry=5"))}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		g2 := group("g2", carry.NoRetry)
		require.NoError(t, r.Do(bg, g2))
		require.Equal(t, "$2\r\ng2\r\n", g2.Raw, "without the frames that are not for it")
		require.NoError(t, r.Do(bg, scripted.Echo("e")))

		oc := &outcomes{}
		g1, x := group("g1", carry.Replay), scripted.ReplayEcho("x")
		r.together(func() { submitAll(t, r, oc, g1, x) })
		pass(time.Second)
		ok(t, oc, x)
		require.NoError(t, settledOf(t, oc, g1))
		require.Equal(t, []string{"g1-m", "g1-1", "g1-2", "g1", "x"}, r.server.ConnTokens(1), "replayed whole")

		// One refused frame refuses the record, after all its frames were read.
		g3 := group("g3", carry.NoRetry)
		g3.Traits.Timeout = 100 * time.Millisecond
		require.Error(t, r.Do(bg, g3))
		require.NoError(t, r.Do(bg, scripted.Echo("f")))
		require.Equal(t, 2, r.server.Conns())
	})
}

// Covers: E-18
func TestARecordOfSeveralFramesCutBeforeItsLastByteIsNotSent(t *testing.T) {
	g := group("g", carry.NoRetry)
	enc, _ := g.AppendRequest(nil)
	g.Encodes = 0
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		r.conn(0).Out().CutAfter(int64(len(enc))-1, memnet.Cut{})
		require.NoError(t, r.Do(bg, g))
		require.Equal(t, 1, g.Sends)
		require.Equal(t, 1, r.server.Executions("g"))
		require.Equal(t, []string{"g-m", "g-1", "g-2", "g"}, r.server.ConnTokens(1))
	})
}

// Covers: C02, E-22
func TestAnErrorReplyIsOneCommandsAffair(t *testing.T) {
	for _, bad := range [][]string{{"b"}, {"a"}, {"c"}, {"a", "b", "c"}} {
		s := script{}
		for _, tok := range bad {
			s[tok] = always(scripted.Refuse("WRONGTYPE no"))
		}
		bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
			d := r.later(bg, scripted.Echo("d"))
			errs := make([]error, 3)
			_ = r.DoBatch(bg, []fdengine.Command{scripted.Echo("a"), scripted.Echo("b"), scripted.Echo("c")}, errs)
			for i, tok := range []string{"a", "b", "c"} {
				if s[tok] == nil {
					require.NoError(t, errs[i])
					continue
				}
				var refusal *scripted.ServerError
				require.ErrorAs(t, errs[i], &refusal)
				failsAs(t, errs[i], carry.Answered)
			}
			require.NoError(t, <-d)
			require.Equal(t, 1, r.server.Conns())
		})
	}
}

// Covers: E-36
func TestAReplyBeyondTheLimitIsAnAnswerAndACut(t *testing.T) {
	s := script{"big": always(scripted.Reply("$2000000\r\n" + strings.Repeat("x", 2000000) + "\r\n"))}
	bubble(t, setup{Server: s.options(), Engine: fdengine.Options{MaxReply: 1 << 20}}, func(t *testing.T, r *rig) {
		oc := &outcomes{}
		big, p, n := scripted.ReplayEcho("big"), scripted.ReplayEcho("p"), scripted.Echo("n")
		r.together(func() { submitAll(t, r, oc, big, p, n) })
		pass(3 * time.Second)
		failed(t, oc, big, carry.Answered, fdengine.ErrTooLarge)
		require.Equal(t, 1, r.server.Executions("big"), "never sent again")
		ok(t, oc, p)
		failed(t, oc, n, carry.MaybeExecuted)
		require.Less(t, r.conn(0).In().Taken(), int64(400<<10), "refused before it was buffered")
		require.Equal(t, 1, r.leaser.Counts().Removes)
	})
}

// Covers: E-48, E-36
func TestFramingOfALargeReplyIsLinear(t *testing.T) {
	var b strings.Builder
	const items = 70_000
	fmt.Fprintf(&b, "*%d\r\n", items)
	for range items {
		b.WriteString("$200\r\n" + strings.Repeat("x", 200) + "\r\n")
	}
	raw := b.String()
	require.Greater(t, len(raw), 14_000_000)
	var p *scripted.Protocol
	o := fdengine.Options{Protocol: func() fdengine.Protocol { p = &scripted.Protocol{}; return p }}
	s := script{"big": always(scripted.Reply(raw))}
	bubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig) {
		c := scripted.Echo("big")
		require.NoError(t, r.Do(bg, c))
		require.Equal(t, len(raw), len(c.Raw))
		headers := items * len("$200\r\n")
		require.Less(t, p.Scanned, 2*headers, "looked at once, not once per read")
		require.Greater(t, p.Scanned, headers)
	})
}
