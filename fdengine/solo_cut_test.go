package fdengine_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// A lone caller's connection dies: the fate of its command is what it would be at the engine's own hands.
//
// Covers: E-5, E-6, S4-3
func TestAConnectionThatDiesUnderALoneCaller(t *testing.T) {
	type outcome struct {
		runs int
		fate carry.Fate // of the error, when there is one
		err  bool
	}
	once := outcome{runs: 1}
	lost := outcome{runs: 1, fate: carry.MaybeExecuted, err: true}
	for name, c := range map[string]struct {
		act             scripted.Action
		do              func(r *rig, l *looks)
		replay, noRetry outcome
	}{
		"closed while nobody read": {do: func(r *rig, _ *looks) { r.server.CloseConns() }, replay: once, noRetry: once},
		"reset while nobody read":  {do: func(r *rig, _ *looks) { r.server.ResetConns() }, replay: once, noRetry: once},
		"before its write": {do: func(r *rig, l *looks) { l.onWrite = firstTime(r.server.CloseConns) },
			replay: once, noRetry: once},
		"in its write": {do: func(r *rig, _ *looks) { r.conn(0).Out().CutAfter(9, memnet.Cut{}) }, replay: once, noRetry: once},
		"one byte short": {do: func(r *rig, _ *looks) {
			r.conn(0).Out().CutAfter(int64(len("*2\r\n$4\r\nECHO\r\n$1\r\nc\r\n")-1), memnet.Cut{})
		},
			replay: once, noRetry: once},
		"behind its write": {do: func(r *rig, l *looks) {
			l.behind = firstTime(func() { synctest.Wait(); r.conn(0).In().CutAfter(0, memnet.Cut{Drop: true}) })
		},
			replay: outcome{runs: 2}, noRetry: lost},
		"before its read": {do: func(r *rig, l *looks) {
			l.onRead = firstTime(func() { synctest.Wait(); r.server.CloseConns() })
			r.server.FreezeReplies(true)
		}, replay: outcome{runs: 2}, noRetry: lost},
		"unexecuted": {act: scripted.DropBefore(), replay: once, noRetry: outcome{fate: carry.MaybeExecuted, err: true}},
		"unanswered": {act: scripted.DropAfter(), replay: outcome{runs: 2}, noRetry: lost},
		"half of it": {act: scripted.HalfReply(), replay: outcome{runs: 2}, noRetry: lost},
		"behind it":  {act: scripted.Action{Close: true}, replay: once, noRetry: once},
	} {
		for class, want := range map[carry.Class]outcome{carry.Replay: c.replay, carry.NoRetry: c.noRetry} {
			t.Run(name+map[carry.Class]string{carry.Replay: " replay", carry.NoRetry: " no retry"}[class], func(t *testing.T) {
				loneBubble(t, setup{Server: script{"c": first(1, c.act)}.options()}, func(t *testing.T, r *rig, l *looks) {
					if c.do != nil {
						c.do(r, l)
					}
					cmd := scripted.Echo("c")
					cmd.Traits.Class = class
					done := r.later(bg, cmd)
					synctest.Wait()
					r.server.FreezeReplies(false)
					err := <-done
					if want.err {
						failsAs(t, err, want.fate)
					} else {
						require.NoError(t, err)
						require.Equal(t, "c", cmd.Reply)
					}
					writes, _ := l.serves()
					require.Equal(t, 1, writes)
					pass(time.Second)
					require.Equal(t, want.runs, r.server.Executions("c"))
					require.Equal(t, 1, r.leaser.Counts().Removes)
					require.NoError(t, r.Do(bg, scripted.Echo("after")))
					require.Equal(t, 2, r.server.Conns())
				})
			})
		}
	}
}

// Covers: E-16, S2-9
func TestASilentServerIsTimedOutThoughALoneCallerReads(t *testing.T) {
	o := fdengine.Options{ReadTimeout: time.Second}
	s := script{"c": first(1, scripted.Stall())}
	loneBubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig, _ *looks) {
		start := time.Now()
		failsAs(t, r.Do(bg, scripted.Echo("c")), carry.MaybeExecuted)
		require.InDelta(t, time.Second, time.Since(start), float64(100*time.Millisecond))
		require.Equal(t, 1, r.leaser.Counts().Removes)
		require.NoError(t, r.Do(bg, scripted.Echo("d")))
	})
	s = script{"c": first(1, scripted.Stall())}
	loneBubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig, _ *looks) {
		c := scripted.ReplayEcho("c")
		require.NoError(t, r.Do(bg, c))
		require.Equal(t, 2, c.Sends)
		require.True(t, c.Maybe)
	})
}

// Covers: E-16
func TestAWriteOfALoneCallerThatIsNotAcceptedIsTimedOut(t *testing.T) {
	o := fdengine.Options{WriteTimeout: time.Second}
	loneBubble(t, setup{Engine: o}, func(t *testing.T, r *rig, l *looks) {
		r.conn(0).Out().Freeze()
		r.conn(0).Out().SetBuffer(5)
		c := scripted.Echo("c")
		start := time.Now()
		require.NoError(t, r.Do(bg, c), "none of it can have run: it goes to the next connection")
		require.InDelta(t, 2*time.Second, time.Since(start), float64(100*time.Millisecond), "five bytes were progress")
		writes, _ := l.serves()
		require.NotZero(t, writes)
		require.Equal(t, 1, r.server.Executions("c"))
		require.Equal(t, 2, r.server.Conns())
	})
	loneBubble(t, setup{Engine: o}, func(t *testing.T, r *rig, _ *looks) {
		r.conn(0).Out().SetBuffer(5)
		r.conn(0).Out().Drip(500 * time.Millisecond) // slow, and alive
		require.NoError(t, r.Do(bg, scripted.Echo("c")))
		require.Equal(t, 1, r.server.Conns())
	})
}

// The reader used to be away while a lone caller wrote: a server that answers a long transaction as it comes, and reads no
// further before its answers are taken, and the caller waited for each other.
//
// Covers: S4-3
func TestRepliesAreReadWhileALoneCallerIsBlockedInItsWrite(t *testing.T) {
	const n = 200
	o := scripted.Options{ReadAhead: -1}
	loneBubble(t, setup{Server: o}, func(t *testing.T, r *rig, l *looks) {
		r.conn(0).Out().SetBuffer(64)
		r.conn(0).In().SetBuffer(64)
		c := scripted.Echo("c")
		c.Traits.Frames = n + 1
		for i := range n {
			c.Prefix = append(c.Prefix, []string{"ECHO", "p" + itoa(i)})
		}
		start := time.Now()
		require.NoError(t, r.Do(bg, c))
		require.Less(t, time.Since(start), 20*time.Millisecond)
		require.Equal(t, 1, c.Decodes)
		require.Equal(t, n+2, r.server.Executed())
		require.Equal(t, 1, r.server.Conns())
		writes, _ := l.serves()
		require.Equal(t, 1, writes)
		synctest.Wait()
		r.lonely()
		require.NoError(t, r.Do(bg, scripted.Echo("after")))
		writes, _ = l.serves()
		require.Greater(t, writes, 1, "the next one is lone again")
	})
}

// Covers: E-1
func TestASurplusReplyBehindALoneOneCutsTheConnection(t *testing.T) {
	s := script{"c": always(scripted.Surplus("+late\r\n")), "d": always(scripted.Surplus("+la"))}
	for _, token := range []string{"c", "d"} {
		loneBubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig, _ *looks) {
			c := scripted.Echo(token)
			require.NoError(t, r.Do(bg, c))
			require.Equal(t, token, c.Reply)
			synctest.Wait()
			e := scripted.Echo("e")
			if token == "c" {
				require.Equal(t, uint64(1), r.Stats().Cuts)
			} else {
				r.server.Conn(0).Push([]byte("te\r\n"))
				synctest.Wait()
			}
			require.NoError(t, r.Do(bg, e))
			require.Equal(t, "e", e.Reply)
			require.Equal(t, 2, r.server.Conns())
		})
	}
}

// Covers: E-25
func TestAVerdictOnALoneReplyIsObeyed(t *testing.T) {
	for name, c := range map[string]struct {
		line          string
		conns, remove int
		fails         bool
	}{
		"again":         {line: "LOADING soon", conns: 1},
		"again, retire": {line: "READONLY no", conns: 2, remove: 1},
		"elsewhere":     {line: "MOVED 1 other:1", conns: 1},
		"delivered":     {line: "ERR no", conns: 1, fails: true},
		"cut":           {line: "ERR Protocol error", conns: 2, remove: 1, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			back := &boomerang{}
			s := script{"c": first(1, scripted.Refuse(c.line))}
			o := fdengine.Options{Rerouter: back}
			loneBubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig, l *looks) {
				back.e = r.Engine
				cmd := scripted.ReplayEcho("c")
				err := r.Do(bg, cmd)
				if c.fails {
					var se *scripted.ServerError
					require.ErrorAs(t, err, &se)
				} else {
					require.NoError(t, err)
					require.Equal(t, "c", cmd.Reply)
				}
				pass(time.Second)
				require.NoError(t, r.Do(bg, scripted.Echo("after")))
				require.Equal(t, c.conns, r.server.Conns())
				require.Equal(t, c.remove, r.leaser.Counts().Removes)
				writes, _ := l.serves()
				require.NotZero(t, writes)
			})
		})
	}
}

// boomerang is a Rerouter that gives everything back.
type boomerang struct{ e *fdengine.Engine }

func (b *boomerang) Reroute(_ error, cs []*fdengine.Carry) { b.e.Adopt(cs...) }

// Covers: S4-14
func TestAnErrorOfALoneDecoderIsItsOwn(t *testing.T) {
	loneBubble(t, setup{}, func(t *testing.T, r *rig, l *looks) {
		c := scripted.Echo("c")
		c.DecodeErr = errors.New("cannot decode")
		failsAs(t, r.Do(bg, c), carry.Answered, c.DecodeErr)
		require.NoError(t, r.Do(bg, scripted.Echo("after")))
		require.Equal(t, 1, r.server.Conns())
		writes, _ := l.serves()
		require.Equal(t, 2, writes)
	})
}
