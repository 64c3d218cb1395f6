package fdengine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/pool"
)

// Covers: S0-8
func TestAnErrorMatchesItsClassItsFateAndItsCause(t *testing.T) {
	classes := []error{fdengine.ErrClosed, fdengine.ErrQueueFull, fdengine.ErrBudget, fdengine.ErrPoisoned, fdengine.ErrUnavailable,
		fdengine.ErrStreamBroken, fdengine.ErrTooLarge, fdengine.ErrBroken, fdengine.ErrDenied, fdengine.ErrTimeout}
	fates := map[carry.Fate]error{carry.NotSent: fdengine.ErrNotSent, carry.MaybeExecuted: fdengine.ErrMaybeExecuted}
	for _, fate := range []carry.Fate{carry.MaybeExecuted, carry.NotSent, carry.Answered} {
		for _, class := range append(classes, nil) {
			for _, cause := range []error{nil, io.EOF, context.Canceled} {
				var err error = &fdengine.CallError{Fate: fate, Sends: 2, Class: class, Cause: cause}
				for _, wrapped := range []error{err, fmt.Errorf("while: %w", err)} {
					require.Equal(t, fate, fdengine.FateOf(wrapped))
					for f, target := range fates {
						require.Equal(t, f == fate, errors.Is(wrapped, target))
					}
					for _, other := range classes {
						want := other == class || other == fdengine.ErrBudget && class == fdengine.ErrPoisoned
						require.Equal(t, want, errors.Is(wrapped, other), "%v is %v", err, other)
					}
					for _, c := range []error{io.EOF, context.Canceled} {
						require.Equal(t, c == cause, errors.Is(wrapped, c))
					}
				}
				require.Contains(t, err.Error(), fate.String())
			}
		}
	}
	require.Equal(t, carry.Answered, fdengine.FateOf(nil))
	require.Equal(t, carry.MaybeExecuted, fdengine.FateOf(io.EOF), "the cautious answer")
	require.Equal(t, carry.Answered, fdengine.FateOf(fmt.Errorf("x: %w", &scripted.ServerError{Line: "ERR"})))
	var zero fdengine.CallError
	require.Equal(t, carry.MaybeExecuted, fdengine.FateOf(&zero))
}

// Covers: E-22, S0-8
func TestTheErrorOfADecoderIsItsOwnCommandsOnly(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		oc := &outcomes{}
		cs := echoes("c", 101, carry.NoRetry)
		cs[0].DecodeErr = errors.New("not what I want")
		own := scripted.Echo("own")
		own.DecodeErr = &scripted.ServerError{Line: "ERR mine"}
		r.together(func() { submitAll(t, r, oc, cs...); submitAll(t, r, oc, own) })
		pass(time.Second)
		failed(t, oc, cs[0], carry.Answered, cs[0].DecodeErr)
		ok(t, oc, cs[1:]...)
		require.Same(t, own.DecodeErr, settledOf(t, oc, own), "one that speaks of its fate stays as it is")
		require.Equal(t, 1, r.server.Conns())
	})
}

// Covers: S4-14, E-3, E-7, C29
func TestADecoderThatFailsCostsOneCommandAndRetiresTheConnection(t *testing.T) {
	for name, breakIt := range map[string]func(c *scripted.Cmd){
		"panic": func(c *scripted.Cmd) { c.DecodePanic = "boom" }, "goexit": func(c *scripted.Cmd) { c.DecodeGoexit = true },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, setup{}, func(t *testing.T, r *rig) {
				for round := range 4 {
					oc := &outcomes{}
					cs := echoes(fmt.Sprintf("r%d-", round), 10, carry.Replay)
					breakIt(cs[4])
					r.together(func() { submitAll(t, r, oc, cs...) })
					pass(time.Second)
					ok(t, oc, cs[:4]...)
					ok(t, oc, cs[5:]...)
					failed(t, oc, cs[4], carry.Answered)
					require.Equal(t, 1, cs[4].Decodes, "never sent again")
					for _, c := range cs {
						require.Equal(t, 1, r.server.Executions(c.Token))
					}
					require.Equal(t, uint64(round+1), r.Stats().Retired)
				}
				require.Zero(t, r.Stats().Cuts)
				require.Equal(t, 4, r.leaser.Counts().Removes)
				require.Zero(t, r.leaser.Counts().Puts)
			})
		})
	}
}

// protocolFunc changes one method of the scripted protocol.
type protocolFunc struct {
	*scripted.Protocol
	next    func()
	verdict func()
}

func (p *protocolFunc) Next(buf []byte) (int, int, fdengine.Kind, error) {
	if p.next != nil {
		p.next()
	}
	return p.Protocol.Next(buf)
}

func (p *protocolFunc) Verdict(frame []byte, maybe bool) fdengine.Verdict {
	if p.verdict != nil {
		p.verdict()
	}
	return p.Protocol.Verdict(frame, maybe)
}

// Covers: S4-14, E-3, C29
func TestAProtocolThatFailsCutsAndTheTailIsDecidedByTheTable(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		for _, where := range []string{"next", "verdict", "own verdict"} {
			calls := 0
			once := func() {
				if calls++; calls == 3 || where != "next" && calls == 1 {
					deed()
				}
			}
			o := fdengine.Options{Protocol: func() fdengine.Protocol {
				p := &protocolFunc{Protocol: &scripted.Protocol{}}
				switch where {
				case "next":
					p.next = once
				case "verdict":
					p.verdict = once
				}
				return p
			}}
			s := script{"c3": always(scripted.Refuse("ERR no"))}
			bubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig) {
				oc := &outcomes{}
				cs := echoes("c", 8, carry.Replay)
				cs[6].Traits.Class = carry.NoRetry
				var all []fdengine.Command
				for _, c := range cs {
					all = append(all, c)
				}
				if where == "own verdict" {
					all[3] = &scripted.JudgingCmd{Cmd: *cs[3], Judge: func([]byte, bool) fdengine.Verdict { once(); return fdengine.Verdict{} }}
				}
				r.server.FreezeExec(false)
				r.together(func() {
					for _, c := range all {
						require.NoError(t, r.Submit(bg, c, oc))
					}
				})
				pass(3 * time.Second)
				for i, c := range all {
					err := settledOf(t, oc, c)
					switch i {
					case 3:
						require.Error(t, err)
					case 6:
						failsAs(t, err, carry.MaybeExecuted)
					default:
						require.NoError(t, err, "%d", i)
					}
				}
				require.Equal(t, uint64(1), r.Stats().Cuts, where)
				require.Equal(t, uint64(1), r.Stats().Panics)
			})
		}
	})
}

// Covers: S4-14
func TestACallerWhoLeavesDuringAVerdictThatFails(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		in, free := make(chan struct{}), make(chan struct{})
		o := fdengine.Options{Protocol: func() fdengine.Protocol {
			return &protocolFunc{Protocol: &scripted.Protocol{}, verdict: func() { close(in); <-free; deed() }}
		}}
		_ = in
		synctest.Test(t, func(t *testing.T) {
			in, free = make(chan struct{}), make(chan struct{})
			r := newRig(t, setup{Server: script{"a": always(scripted.Refuse("ERR no"))}.options(), Engine: o})
			defer r.abandon()
			ctx, cancel := context.WithCancel(bg)
			res := r.later(ctx, scripted.ReplayEcho("a"))
			<-in
			cancel()
			synctest.Wait()
			close(free)
			failsAs(t, <-res, carry.MaybeExecuted, context.Canceled)
			require.NoError(t, r.Do(bg, scripted.Echo("b")))
			r.finish()
		})
	})
}

// Covers: S4-14, E-24
func TestAPermanentLeaseErrorFailsWhatWaitsAtOnceByItsFate(t *testing.T) {
	wrong := errors.New("WRONGPASS invalid")
	bubble(t, setup{Server: script{"p": always(scripted.DropAfter())}.options()}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		synctest.Wait()
		r.leaser.OnLease = func(n int) error {
			if n < 4 {
				time.Sleep(10 * time.Millisecond)
				return pool.Permanent(wrong)
			}
			return nil
		}
		p := r.later(bg, scripted.ReplayEcho("p"))
		synctest.Wait()
		q := r.later(bg, scripted.Echo("q"))
		failsAs(t, <-p, carry.MaybeExecuted, fdengine.ErrUnavailable, wrong)
		failsAs(t, <-q, carry.NotSent, fdengine.ErrUnavailable, wrong)
		for {
			err := r.Do(bg, scripted.Echo("later"))
			if err == nil {
				break
			}
			failsAs(t, err, carry.NotSent, fdengine.ErrUnavailable, wrong)
		}
		require.Equal(t, 4, r.leaser.Counts().Leases)
	})
}
