package fdengine_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/panics"
)

// What foreign code may cost: each border with a panic, a panic(nil) and a Goexit, before, at and after the moment
// that decides. Where a test is of another file its name is enough to find it.
//
//	border             before                          at                              after
//	Gate, Spec,        EncodersThatFail... (gate)      HookOnTheCallersSide...,        EncodersThatFail... (a piece
//	AppendRequest                                      EncodersThatFail... (half)      of the batch is in already)
//	DecodeReply        DecoderThatFailsAtAnyMoment     DecoderThatFailsCosts...,       DecodersErrorWhoseMethodsPanic,
//	                   (nothing read, caller leaves)   DecoderThatFailsAtAnyMoment     HeldRefusalWhoseDecodeError...
//	Next, Verdict      ProtocolThatFailsAtAnyMoment    ProtocolThatFailsCuts...,       ProtocolThatFailsAtAnyMoment
//	                   (nothing in flight)             CallerWhoLeavesDuringAVerdict   (answered, ghost, closed)
//	dial, handshake,   pool: CallbackFailsThatDial     the same                        pool: PanicAfterTheLeaseLeft
//	OnConnect, Lease   LeaserThatFails...              ProtocolThatCannotBeMade        LeasersErrorWhoseMethodsPanic
//	OnPut, Put, Remove PutHookThatFails...,            LeaserThatFailsToTakeBack...    LeaserThatFailsToTakeBack...
//	                   pool: OnPutRemoves...           (half way)                      (taken back already)
//	Complete           CompletionThatFailsAfter...     HoldWhoseOutcomesPanic...       CompletionThatFailsWhereverItIsTold
//	                   (reply, cut, lease, sweeper)
//	OnPush, Observer,  PushHandlerThatFails...         ObserverThatFails... (each      LoggerThatFails..., LimiterThatFails
//	Logger, Report     ObserverThatFails... (start)    kind of event)                  (report)
//	Allow              LimiterThatFails...             LimiterThatFailsWhileOthers...  LimiterThatFails... (next claim)
//	Reroute            RerouterThatFailsEnds...        RerouterThatFailsHalfWay...     RerouterThatFailsHalfWay... (all adopted)
//	the connection     ReadThatPanics...,              WriteThatFailsInForeignCode,    ConnectionThatPanicsInClose...,
//	                   ReadThatExits...                ConnectionThatCannotSay...      pool: CloseOrDeadlinePanics
//	a lone caller's    ForeignCodeThatFailsOnALone...  DecoderThatFailsInALoneCall     ForeignCodeThatFailsInALoneCall
//	goroutine
//	our own loops      FaultOfOurOwn... (consistent)   ReaderThatFallsOverItsOwn...    FaultOfOurOwn... (broken log),
//	                                                                                   FaultThatHoldsTheLock...

// spoiled is a command whose caller's side fails in the middle.
type spoiled struct {
	scripted.Cmd
	deed func()
	at   string // spec, encode
}

func (s *spoiled) Spec() fdengine.Spec {
	if s.at == "spec" {
		s.deed()
	}
	return s.Traits
}

func (s *spoiled) AppendRequest(dst []byte) ([]byte, error) {
	if s.at == "encode" {
		_ = append(dst, "*2\r\n$4\r\nEC"...) // half a request lies in a buffer that others use next
		s.deed()
	}
	return s.Cmd.AppendRequest(dst)
}

// Covers: S4-14, E-4
func TestEncodersThatFailHalfWayLeaveNothingOfTheirRequestAndKeepTheOthers(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		for _, at := range []string{"gate", "spec", "encode"} {
			o := fdengine.Options{Gate: func(_ context.Context, cmd fdengine.Command) error {
				if s, bad := cmd.(*spoiled); bad && s.at == "gate" {
					s.deed()
				}
				return nil
			}}
			bubble(t, setup{Engine: o}, func(t *testing.T, r *rig) {
				bad := &spoiled{Cmd: *scripted.Echo("bad"), deed: deed, at: at}
				cmds := []fdengine.Command{}
				for _, c := range echoes("c", 1500, carry.NoRetry) { // more than one piece
					cmds = append(cmds, c)
				}
				cmds[1200] = bad
				st := r.Stream()
				errs := make([]error, len(cmds))
				for _, call := range []func(){
					func() { errs[0] = r.Do(bg, bad) },
					func() { _ = st.Do(bg, bad) },
					func() { _ = r.Submit(bg, bad, &outcomes{}) },
					func() { _ = st.TrySubmit(bad, &outcomes{}) },
					func() { _ = r.DoBatch(bg, cmds, errs) },
				} {
					go call()
					pass(time.Second)
				}
				within(t, time.Second, func() { require.NoError(t, st.Flush(bg)) })
				require.Zero(t, r.server.Executions("bad"))
				require.GreaterOrEqual(t, r.server.Executed(), 1024, "the piece before was in already")
				if errs[1200] != nil {
					failsAs(t, errs[1200], carry.NotSent, fdengine.ErrNotSent)
					require.NoError(t, errors.Join(append(errs[:1200:1200], errs[1201:]...)...))
					require.Equal(t, 1499, r.server.Executed())
				}
				for _, c := range echoes("after", 20, carry.NoRetry) {
					require.NoError(t, r.Do(bg, c))
					require.Equal(t, c.Token, c.Reply)
				}
				require.Equal(t, 1, r.server.Conns())
			})
		}
	})
}

// fallen requires that the outcome of cmd is a panic or Goexit in a border of that name.
func fallen(t *testing.T, o *outcomes, cmd fdengine.Command, border string, fate carry.Fate) {
	t.Helper()
	failed(t, o, cmd, fate)
	var p *panics.Error
	require.ErrorAs(t, settledOf(t, o, cmd), &p)
	require.Equal(t, border, p.Boundary)
	require.NotEmpty(t, p.Stack)
}

// Covers: S4-14, E-3, E-7
func TestADecoderThatFailsAtAnyMomentCostsItsCommandOnly(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		refused := script{"bad": always(scripted.Refuse("ERR no"))}
		for name, c := range map[string]struct {
			server script
			decode func(r *rig)
		}{
			"nothing read": {nil, func(*rig) {}},
			"of a refusal": {refused, func(*rig) {}},
			"room wanted":  {nil, func(r *rig) { _ = r.TrySubmit(scripted.Echo("extra"), &outcomes{}) }},
		} {
			t.Run(name, func(t *testing.T) {
				bubble(t, setup{Server: c.server.options()}, func(t *testing.T, r *rig) {
					o, bad := &outcomes{}, scripted.ReplayEcho("bad")
					bad.OnDecode = func(fdengine.Reply) { c.decode(r); deed() }
					before, behind := scripted.Echo("before"), scripted.Echo("behind")
					r.together(func() { submitAll(t, r, o, before, bad, behind) })
					pass(time.Second)
					ok(t, o, before, behind)
					fallen(t, o, bad, "DecodeReply", carry.Answered)
					require.Equal(t, 1, bad.Decodes, "never sent again")
					require.Equal(t, uint64(1), r.Stats().Retired)
					require.Zero(t, r.Stats().Cuts)
				})
			})
		}
	})
}

// Covers: S4-14, E-6, E-41
func TestADecoderThatFailsOnARefusalTakesNoEarlierSendBack(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		s := script{"bad": func(n int) scripted.Action {
			if n == 1 {
				return scripted.DropAfter()
			}
			return scripted.Refuse("ERR no")
		}}
		bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
			o, bad := &outcomes{}, scripted.ReplayEcho("bad")
			bad.OnDecode = func(fdengine.Reply) { deed() }
			submitAll(t, r, o, bad)
			pass(2 * time.Second)
			fallen(t, o, bad, "DecodeReply", carry.MaybeExecuted)
			require.ErrorIs(t, settledOf(t, o, bad), fdengine.ErrMaybeExecuted, "the first send ran")
			require.Equal(t, 1, bad.Decodes)
		})
	})
}

// Covers: S4-14, E-19
func TestADecoderThatFailsWhileItsCallerLeavesOrTheEngineCloses(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		for _, what := range []string{"leaves", "closes"} {
			bubble(t, setup{}, func(t *testing.T, r *rig) {
				in, free := make(chan struct{}), make(chan struct{})
				ctx, cancel := context.WithCancel(bg)
				defer cancel()
				bad := scripted.ReplayEcho("bad")
				bad.OnDecode = func(fdengine.Reply) { close(in); <-free; deed() }
				res := r.later(ctx, bad)
				<-in
				if what == "leaves" {
					cancel()
				} else {
					require.NoError(t, r.Close())
				}
				synctest.Wait()
				close(free)
				err := <-res
				failsAs(t, err, carry.Answered)
				var p *panics.Error
				require.ErrorAs(t, err, &p, "it was being decoded: that is its outcome")
				require.Equal(t, "DecodeReply", p.Boundary)
				if what == "leaves" {
					require.NoError(t, r.Do(bg, scripted.Echo("after")))
					require.Equal(t, uint64(1), r.Stats().Retired)
				}
			})
		}
	})
}

// The refusal that a Stream held became its answer, and the decoder's error was a typed nil. Its methods panicked
// outside of all borders, in the goroutine that was to tell the caller.
//
// Covers: S4-14, E-44
func TestAHeldRefusalWhoseDecodeErrorPanicsStillReachesItsCaller(t *testing.T) {
	for _, name := range []string{"Unwrap", "OpError"} {
		for _, how := range []string{"Do", "Submit"} {
			t.Run(how+" "+name, func(t *testing.T) {
				bubble(t, setup{Server: script{"a": first(1, loading)}.options()}, func(t *testing.T, r *rig) {
					st, o := r.Stream(), &outcomes{}
					a, b := scripted.Echo("a"), scripted.Echo("b")
					a.DecodeErr = typedNils()[name]
					r.together(func() {
						if how == "Submit" {
							submitAll(t, st, o, a)
						} else {
							go func() { o.Complete(a, st.Do(bg, a)) }()
							synctest.Wait()
						}
						submitAll(t, st, o, b)
					})
					within(t, time.Minute, func() { require.ErrorIs(t, st.Flush(bg), fdengine.ErrStreamBroken) })
					synctest.Wait()
					fallen(t, o, a, "DecodeReply", carry.Answered)
					ok(t, o, b)
					require.Equal(t, []string{"b"}, r.server.Order())
					require.NoError(t, r.Do(bg, scripted.Echo("after")))
				})
			})
		}
	}
}

// Covers: S4-14, E-44
func TestADecoderOfAHeldRefusalThatFailsLosesNeitherItsCallerNorTheNext(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		bubble(t, setup{Server: script{"a": first(1, loading)}.options()}, func(t *testing.T, r *rig) {
			st, o := r.Stream(), &outcomes{}
			a, b, c := scripted.Echo("a"), scripted.Echo("b"), scripted.Echo("c")
			a.OnDecode = func(fdengine.Reply) { deed() }
			r.together(func() { submitAll(t, st, o, a, b, c) })
			pass(time.Second)
			fallen(t, o, a, "DecodeReply", carry.Answered)
			ok(t, o, b)
			_, told := o.of(c)
			require.True(t, told)
			require.Equal(t, 1, r.server.Conns(), "what arrives is still framed")
		})
	})
}

// judged is a protocol whose methods ask a hook first. One hook serves all sessions.
func judged(next, verdict func()) func() fdengine.Protocol {
	return func() fdengine.Protocol {
		return &protocolFunc{Protocol: &scripted.Protocol{}, next: next, verdict: verdict}
	}
}

// once returns a function that runs f when it is called for the first time after arm.
func once(f func()) (arm, call func()) {
	var mu sync.Mutex
	armed := false
	arm = func() { mu.Lock(); armed = true; mu.Unlock() }
	call = func() {
		mu.Lock()
		now := armed
		armed = false
		mu.Unlock()
		if now {
			f()
		}
	}
	return arm, call
}

// Covers: S4-14, E-3, E-5
func TestAProtocolThatFailsAtAnyMomentIsACut(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		t.Run("nothing in flight", func(t *testing.T) {
			arm, next := once(deed)
			bubble(t, setup{Engine: fdengine.Options{Protocol: judged(next, nil)}}, func(t *testing.T, r *rig) {
				require.NoError(t, r.Ping(bg))
				arm()
				r.server.Conn(0).Push(scripted.PushFrame("x"))
				pass(time.Second)
				require.Equal(t, uint64(1), r.Stats().Cuts)
				c := scripted.Echo("c")
				require.NoError(t, r.Do(bg, c))
				require.Equal(t, 1, c.Sends)
			})
		})
		t.Run("half a frame", func(t *testing.T) {
			arm, next := once(deed)
			s := script{"n": always(scripted.HalfReply())}
			bubble(t, setup{Server: s.options(), Engine: fdengine.Options{Protocol: judged(next, nil)}}, func(t *testing.T, r *rig) {
				o, n, p := &outcomes{}, scripted.Echo("n"), scripted.ReplayEcho("p")
				r.together(func() { submitAll(t, r, o, n, p); synctest.Wait(); arm() })
				pass(2 * time.Second)
				failed(t, o, n, carry.MaybeExecuted)
				ok(t, o, p)
				require.Equal(t, 1, r.server.Executions("n"))
			})
		})
		t.Run("behind the answer", func(t *testing.T) {
			arm, next := once(deed)
			s := script{"n": always(scripted.Action{PushAfter: scripted.PushFrame("x")})}
			bubble(t, setup{Server: s.options(), Engine: fdengine.Options{Protocol: judged(next, nil)}}, func(t *testing.T, r *rig) {
				o, n := &outcomes{}, scripted.Echo("n")
				n.OnDecode = func(fdengine.Reply) { arm() }
				submitAll(t, r, o, n)
				pass(time.Second)
				ok(t, o, n)
				require.Equal(t, uint64(1), r.Stats().Cuts)
			})
		})
		t.Run("of a ghost", func(t *testing.T) {
			arm, verdict := once(deed)
			s := script{"g": always(scripted.Action{Delay: time.Second, Refuse: "ERR no"})}
			bubble(t, setup{Server: s.options(), Engine: fdengine.Options{Protocol: judged(nil, verdict)}}, func(t *testing.T, r *rig) {
				o, n, p := &outcomes{}, scripted.Echo("n"), scripted.ReplayEcho("p")
				ctx, cancel := context.WithCancel(bg)
				left := r.later(ctx, scripted.ReplayEcho("g"))
				synctest.Wait()
				submitAll(t, r, o, n, p)
				synctest.Wait()
				cancel()
				failsAs(t, <-left, carry.MaybeExecuted, context.Canceled)
				arm()
				pass(5 * time.Second)
				failed(t, o, n, carry.MaybeExecuted)
				ok(t, o, p)
				require.Equal(t, uint64(1), r.Stats().Cuts)
			})
		})
		t.Run("while the engine closes", func(t *testing.T) {
			var r *rig
			arm, verdict := once(func() { _ = r.Close(); runtime.Gosched(); deed() })
			s := script{"a": always(scripted.Refuse("ERR no"))}
			bubble(t, setup{Server: s.options(), Engine: fdengine.Options{Protocol: judged(nil, verdict)}}, func(t *testing.T, rr *rig) {
				r = rr
				o, a, b := &outcomes{}, scripted.ReplayEcho("a"), scripted.ReplayEcho("b")
				arm()
				r.together(func() { submitAll(t, r, o, a, b) })
				<-r.Done()
				failed(t, o, a, carry.MaybeExecuted, fdengine.ErrClosed)
				failed(t, o, b, carry.MaybeExecuted, fdengine.ErrClosed)
			})
		})
	})
}
