package fdengine_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// Covers: S4-1
func TestALoneCallerServesItselfAfterEightLoneRepliesAndNotBefore(t *testing.T) {
	l := &looks{}
	wrap := func(c net.Conn) net.Conn { return looker{c.(*memnet.Conn), l} }
	bubble(t, setup{Wrap: wrap, Engine: fdengine.Options{LoneCaller: 1}}, func(t *testing.T, r *rig) {
		for i := range 12 {
			c := scripted.Echo("c" + itoa(i))
			require.NoError(t, r.Do(bg, c))
			require.Equal(t, c.Token, c.Reply)
			synctest.Wait()
			writes, reads := l.serves()
			require.Equal(t, max(0, i-7), writes)
			require.Equal(t, max(0, i-7), reads)
		}
		both := &outcomes{}
		r.together(func() { submitAll(t, r, both, echoes("b", 2, 0)...) })
		synctest.Wait()
		before, _ := l.serves()
		for i := range 9 {
			require.NoError(t, r.Do(bg, scripted.Echo("d"+itoa(i))))
			synctest.Wait()
			writes, _ := l.serves()
			require.Equal(t, before+max(0, i-7), writes, "a second command begins the count anew")
		}
		require.Equal(t, 1, r.server.Conns())
	})
	bubble(t, setup{Wrap: wrap, Engine: fdengine.Options{LoneCaller: 1}}, func(t *testing.T, r *rig) {
		for i := range 5 {
			require.NoError(t, r.Do(bg, scripted.Echo("c"+itoa(i))))
		}
		both := &outcomes{}
		r.server.FreezeExec(true)
		submitAll(t, r, both, echoes("b", 2, 0)...)
		synctest.Wait()
		r.server.FreezeExec(false)
		synctest.Wait()
		before, _ := l.serves()
		for i := range 9 {
			require.NoError(t, r.Do(bg, scripted.Echo("d"+itoa(i))))
			synctest.Wait()
			writes, _ := l.serves()
			require.Equal(t, before+max(0, i-7), writes, "they have to be eight in a row")
		}
	})
}

type limitless struct{}

func (limitless) Allow() error       { return nil }
func (limitless) ReportResult(error) {}

// Covers: S4-1
func TestWhatCouldInterruptAReadOrAsksToSeeItGoesTheUsualWay(t *testing.T) {
	for name, o := range map[string]fdengine.Options{
		"observer": {Observer: &events{}},
		"limiter":  {Limiter: limitless{}},
		"hold":     {MaxHold: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			loneBubble(t, setup{Engine: o}, func(t *testing.T, r *rig, l *looks) {
				for i := range 12 {
					require.NoError(t, r.Do(bg, scripted.Echo("c"+itoa(i))))
					synctest.Wait()
				}
				writes, reads := l.serves()
				require.Zero(t, writes+reads)
			})
		})
	}
	timed := scripted.Echo("timed")
	timed.Traits.Timeout = time.Second
	quiet := scripted.Echo("quiet")
	quiet.Traits.Frames = fdengine.NoReply
	for name, call := range map[string]func(ctx context.Context, r *rig) error{
		"ctx":     func(ctx context.Context, r *rig) error { return r.Do(ctx, scripted.Echo("ctx")) },
		"timeout": func(_ context.Context, r *rig) error { return r.Do(bg, timed) },
		"quiet":   func(_ context.Context, r *rig) error { return r.Do(bg, quiet) },
		"stream":  func(_ context.Context, r *rig) error { return r.Stream().Do(bg, scripted.Echo("s")) },
		"batch": func(_ context.Context, r *rig) error {
			return r.DoBatch(bg, []fdengine.Command{scripted.Echo("b")}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := script{"quiet": always(scripted.Action{NoReply: true})}
			loneBubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig, l *looks) {
				ctx, cancel := context.WithCancel(bg)
				defer cancel()
				require.NoError(t, call(ctx, r))
				synctest.Wait()
				writes, reads := l.serves()
				require.Zero(t, writes+reads)
				r.lonely()
				require.NoError(t, r.Do(bg, scripted.Echo("after")), "nobody has gone for good")
				require.Equal(t, 1, r.server.Conns())
			})
		})
	}
}

// moments of a lone caller's work, in which something else may happen. Each lets do happen in the next call of Do.
var moments = map[string]func(l *looks, c *scripted.Cmd, do func()){
	"before its write": func(l *looks, _ *scripted.Cmd, do func()) { l.onWrite = firstTime(do) },
	"behind its write": func(l *looks, _ *scripted.Cmd, do func()) { l.behind = firstTime(do) },
	"before its read":  func(l *looks, _ *scripted.Cmd, do func()) { l.onRead = firstTime(do) },
	"at its reply":     func(_ *looks, c *scripted.Cmd, do func()) { c.OnDecode = func(fdengine.Reply) { do() } },
}

// Covers: E-1, E-11, S4-1
func TestWhoeverJoinsALoneCallerIsAnswered(t *testing.T) {
	for when, arrange := range moments {
		for how, ask := range ways {
			t.Run(when+" "+how, func(t *testing.T) {
				loneBubble(t, setup{}, func(t *testing.T, r *rig, l *looks) {
					lone := scripted.Echo("lone")
					others, told := echoes("o", 3, 0), make(chan error, 3)
					arrange(l, lone, func() {
						for _, c := range others {
							go ask(t, r, c, told)
							synctest.Wait()
						}
					})
					start := time.Now()
					require.NoError(t, r.Do(bg, lone))
					for range others {
						require.NoError(t, <-told)
					}
					require.Less(t, time.Since(start), 6*time.Millisecond, "at most a tick, when the reader is held up")
					require.Equal(t, "lone", lone.Reply)
					for _, c := range others {
						require.Equal(t, c.Token, c.Reply)
					}
					require.Equal(t, append([]string{"lonely", "lone"}, tokens(others)...), r.server.Order())
					writes, _ := l.serves()
					require.Equal(t, 1, writes)
					require.Equal(t, 1, r.server.Conns())
					synctest.Wait()
					r.lonely()
					require.NoError(t, r.Do(bg, scripted.Echo("again")))
					writes, _ = l.serves()
					require.GreaterOrEqual(t, writes, 2, "and it may be lone again")
				})
			})
		}
	}
}

// Another joins while the reply is on its way, which then comes alone or in the same read as that of the other.
//
// Covers: E-1, E-11
func TestWhoJoinsWhileTheLoneReplyIsOnItsWayIsAnsweredBehindIt(t *testing.T) {
	for how, ask := range ways {
		t.Run(how, func(t *testing.T) {
			loneBubble(t, setup{}, func(t *testing.T, r *rig, _ *looks) {
				r.server.FreezeReplies(true)
				lone := scripted.Echo("lone")
				done := r.later(bg, lone)
				synctest.Wait()
				other, told := scripted.Echo("other"), make(chan error, 1)
				var solo bool
				other.OnDecode = func(fdengine.Reply) { solo = alone() }
				go ask(t, r, other, told)
				synctest.Wait()
				require.Equal(t, []string{"lonely", "lone", "other"}, r.server.Order(), "it is written at once")
				start := time.Now()
				r.server.FreezeReplies(false)
				require.NoError(t, <-done)
				require.NoError(t, <-told)
				require.Zero(t, time.Since(start))
				require.False(t, solo, "a lone caller runs nobody else's code")
			})
		})
	}
}

// The reader is called back at once for a reply that comes later than the lone one.
//
// Covers: E-11
func TestWhoJoinsALoneCallerDoesNotWaitForTheSweeper(t *testing.T) {
	for how, ask := range ways {
		t.Run(how, func(t *testing.T) {
			s := script{"other": always(scripted.Delay(time.Millisecond))}
			loneBubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig, l *looks) {
				other, told := scripted.Echo("other"), make(chan error, 1)
				l.onRead = firstTime(func() {
					go ask(t, r, other, told)
					synctest.Wait()
				})
				start := time.Now()
				require.NoError(t, r.Do(bg, scripted.Echo("lone")))
				require.NoError(t, <-told)
				require.Equal(t, time.Millisecond, time.Since(start))
			})
		})
	}
}

// Covers: E-11
func TestWhoJoinsDuringALoneWriteIsWrittenRightBehindIt(t *testing.T) {
	for how, ask := range ways {
		t.Run(how, func(t *testing.T) {
			loneBubble(t, setup{}, func(t *testing.T, r *rig, l *looks) {
				r.server.FreezeReplies(true)
				other, told := scripted.Echo("other"), make(chan error, 1)
				joined := make(chan struct{})
				l.onWrite = firstTime(func() {
					go ask(t, r, other, told)
					synctest.Wait()
					close(joined)
				})
				done := r.later(bg, scripted.Echo("lone"))
				<-joined
				synctest.Wait()
				require.Equal(t, []string{"lonely", "lone", "other"}, r.server.Order(), "no reply was needed for that")
				r.server.FreezeReplies(false)
				require.NoError(t, <-done)
				require.NoError(t, <-told)
			})
		})
	}
}

// Covers: E-1
func TestAPushIsHandledByTheReaderWhereverItComesInALoneCall(t *testing.T) {
	push := scripted.PushFrame("news", "of", "something")
	for name, a := range map[string]scripted.Action{
		"in front": {PushBefore: push},
		"behind":   {PushAfter: push},
		"both":     {PushBefore: push, PushAfter: push},
		"within":   {Reply: []byte("+a\r\n" + string(push) + "+b\r\n")},
	} {
		for _, drip := range []time.Duration{0, time.Microsecond, time.Millisecond} {
			t.Run(fmt.Sprint(name, " ", drip), func(t *testing.T) {
				pushes, solo := 0, false
				o := fdengine.Options{OnPush: func(frame []byte) {
					pushes++
					solo = solo || alone()
					require.Equal(t, push, frame)
				}}
				s := script{"c": always(a)}
				loneBubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig, l *looks) {
					c := scripted.Echo("c")
					if name == "within" {
						c.Traits.Frames = 2
					}
					r.conn(0).In().Drip(drip)
					require.NoError(t, r.Do(bg, c))
					pass(100 * time.Millisecond)
					require.Equal(t, max(1, 2*b2i(name == "both")), pushes)
					require.False(t, solo, "a lone caller runs nobody else's code")
					if name == "within" {
						require.Equal(t, "+a\r\n+b\r\n", c.Raw)
					} else {
						require.Equal(t, "c", c.Reply)
					}
					writes, _ := l.serves()
					require.Equal(t, 1, writes)
					require.NoError(t, r.Do(bg, scripted.Echo("after")))
					require.Equal(t, 1, r.server.Conns())
				})
			})
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Covers: E-18
func TestALoneReplyMayComeInPiecesAndInSeveralFrames(t *testing.T) {
	s := script{"c": always(scripted.Reply("+a\r\n$3\r\nbcd\r\n*2\r\n:1\r\n:2\r\n"))}
	loneBubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig, l *looks) {
		r.conn(0).In().Drip(time.Microsecond)
		c := scripted.Echo("c")
		c.Traits.Frames, c.Traits.Skip = 3, 1
		require.NoError(t, r.Do(bg, c))
		require.Equal(t, "$3\r\nbcd\r\n*2\r\n:1\r\n:2\r\n", c.Raw)
		writes, reads := l.serves()
		require.Equal(t, 1, writes)
		require.Greater(t, reads, 10)
		require.NoError(t, r.Do(bg, scripted.Echo("after")))
		writes, _ = l.serves()
		require.Equal(t, 2, writes)
	})
}
