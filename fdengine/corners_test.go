package fdengine_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/pool"
)

// A command was refused and is to go again, here or elsewhere, and at that moment its caller leaves or the engine is
// closed.
//
// Covers: E-6, E-19
func TestWhoeverLeavesOrClosesDuringTheVerdictOfARefusalHasTheLastWord(t *testing.T) {
	for _, then := range []fdengine.Then{fdengine.RetryHere, fdengine.Reroute} {
		for _, what := range []string{"leaves", "closes"} {
			ev := &events{}
			o := fdengine.Options{Observer: ev, Rerouter: rerouteFunc(func(_ error, cs []*fdengine.Carry) {
				for _, c := range cs {
					c.Fail(errors.New("nobody is to be asked"))
				}
			})}
			bubble(t, setup{Server: script{"a": always(scripted.Refuse("LOADING"))}.options(), Engine: o}, func(t *testing.T, r *rig) {
				in, free := make(chan struct{}), make(chan struct{})
				a := &scripted.JudgingCmd{Cmd: *scripted.Echo("a"), Judge: func([]byte, bool) fdengine.Verdict {
					close(in)
					<-free
					return fdengine.Verdict{Then: then, Ran: fdengine.RanNo}
				}}
				ctx, cancel := context.WithCancel(bg)
				res := r.later(ctx, a)
				<-in
				if what == "leaves" {
					cancel()
				} else {
					require.NoError(t, r.Close())
				}
				synctest.Wait()
				close(free)
				err := <-res
				synctest.Wait()
				if what == "leaves" {
					failsAs(t, err, carry.NotSent, context.Canceled, fdengine.ErrNotSent)
					require.Zero(t, a.Decodes, "the command is its caller's again")
					require.NoError(t, r.Do(bg, scripted.Echo("b")))
				} else {
					var refusal *scripted.ServerError
					require.ErrorAs(t, err, &refusal, "there is nowhere to go again")
				}
				cancel()
				pass(time.Second)
				require.NotEmpty(t, ev.samples())
				require.Equal(t, fdengine.FateOf(err), ev.samples()[0].Fate)
				require.Equal(t, 1, ev.samples()[0].Sends)
			})
		}
	}
}

// The caller of a command in a held Stream left while its answer was out. That was a refusal too: nothing ran, and the
// Stream goes on.
//
// Covers: E-44, E-19
func TestARefusedGhostOfAHeldStreamIsNoGap(t *testing.T) {
	s := script{"a": first(1, loading), "b": first(1, scripted.Action{Delay: 500 * time.Millisecond, Refuse: "LOADING retry=100"})}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		st, o, a, c := r.Stream(), &outcomes{}, scripted.Echo("a"), scripted.Echo("c")
		ctx, cancel := context.WithCancel(bg)
		var left error
		r.together(func() {
			submitAll(t, st, o, a)
			synctest.Wait()
			go func() { left = st.Do(ctx, scripted.Echo("b")) }()
		})
		pass(100 * time.Millisecond)
		submitAll(t, st, o, c)
		cancel()
		synctest.Wait()
		failsAs(t, left, carry.MaybeExecuted, context.Canceled)
		require.Zero(t, o.count())
		require.NoError(t, st.Flush(bg))
		ok(t, o, a, c)
		require.Equal(t, []string{"a", "c"}, r.server.Order())
	})
}

// The engine goroutine is with a Rerouter that blocks, and another command is refused with a redirect meanwhile.
//
// Covers: E-47
func TestCloseEndsWhatWaitsBehindARerouterThatBlocks(t *testing.T) {
	late := errors.New("late")
	var free chan struct{}
	s := script{"m1": always(scripted.Refuse("MOVED 1 b:1")), "m2": always(scripted.Action{Delay: 500 * time.Millisecond, Refuse: "MOVED 1 b:1"})}
	o := fdengine.Options{Rerouter: rerouteFunc(func(_ error, cs []*fdengine.Carry) {
		<-free
		for _, c := range cs {
			require.Equal(t, 1, c.Sends())
			c.Fail(late)
		}
	})}
	bubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig) {
		free = make(chan struct{})
		o, m1, m2 := &outcomes{}, scripted.Echo("m1"), scripted.Echo("m2")
		r.together(func() { submitAll(t, r, o, m1, m2) })
		pass(time.Second)
		queued := scripted.Echo("queued") // nobody is there to write it
		submitAll(t, r, o, queued)
		pass(time.Second)
		require.Zero(t, o.count())
		require.NoError(t, r.Close())
		synctest.Wait()
		failed(t, o, m2, carry.NotSent, fdengine.ErrClosed)
		failed(t, o, queued, carry.NotSent, fdengine.ErrClosed)
		require.Equal(t, 2, o.count(), "the Rerouter still has the other")
		close(free)
		<-r.Done()
		failed(t, o, m1, carry.NotSent, late)
	})
}

// greedy is a protocol that says that a frame has n bytes more than there are.
type greedy struct {
	scripted.Protocol
	more int
}

func (g *greedy) Next(buf []byte) (int, int, fdengine.Kind, error) {
	if g.more < 0 {
		return g.more, 0, fdengine.KindReply, nil
	}
	return len(buf) + g.more, 0, fdengine.KindReply, nil
}

func TestAProtocolThatTakesWhatIsNotThereIsAFramingError(t *testing.T) {
	for _, more := range []int{1, -1} {
		sessions := 0
		o := fdengine.Options{Protocol: func() fdengine.Protocol {
			if sessions++; sessions == 1 {
				return &greedy{more: more}
			}
			return scripted.NewProtocol()
		}}
		bubble(t, setup{Engine: o}, func(t *testing.T, r *rig) {
			err := r.Do(bg, scripted.Echo("n"))
			failsAs(t, err, carry.MaybeExecuted, fdengine.ErrMaybeExecuted)
			var f *fdengine.FramingError
			require.ErrorAs(t, err, &f)
			require.ErrorContains(t, err, "cannot frame the reply stream: the protocol took ")
			require.NoError(t, r.Do(bg, scripted.Echo("after")))
		})
	}
}

func TestAPingThatIsNotThereOrFailsIsNotSent(t *testing.T) {
	misbehaving := map[string]func() fdengine.Command{"none": nil, "panics": func() fdengine.Command { panic("boom") }}
	for name, ping := range misbehaving {
		bubble(t, setup{}, func(t *testing.T, r *rig) {
			e, err := fdengine.New(fdengine.Options{Protocol: scripted.NewProtocol, Leaser: r.leaser, Ping: ping})
			require.NoError(t, err)
			failsAs(t, e.Ping(bg), carry.NotSent, fdengine.ErrNotSent)
			require.Equal(t, uint64(1), e.Stats().Rejected, name)
			require.Zero(t, r.leaser.Counts().Leases)
			require.NoError(t, e.Close())
			<-e.Done()
		})
	}
}

// Covers: S4-14
func TestANilProtocolIsALeaseFailure(t *testing.T) {
	made := 0
	o := fdengine.Options{Protocol: func() fdengine.Protocol {
		if made++; made == 1 {
			return nil
		}
		return scripted.NewProtocol()
	}}
	bubble(t, setup{Engine: o}, func(t *testing.T, r *rig) {
		c := scripted.Echo("a")
		require.NoError(t, r.Do(bg, c))
		require.Equal(t, 1, c.Sends)
		require.Equal(t, uint64(1), r.Stats().LeaseErrors)
		require.Equal(t, 1, r.leaser.Counts().Removes)
	})
}

// early is a Leaser whose connections come with bytes that the handshake read too much.
type early struct {
	*scripted.Leaser
	unread []byte
}

func (e *early) Lease(ctx context.Context) (*pool.Conn, error) {
	c, err := e.Leaser.Lease(ctx)
	if err == nil {
		c.Unread = e.unread
	}
	return c, err
}

// Covers: E-30
func TestMoreBytesBehindAHandshakeThanTheBufferHoldsAreRead(t *testing.T) {
	push := scripted.PushFrame("m", string(bytes.Repeat([]byte("x"), 1000)))
	l, got := &early{}, 0
	o := fdengine.Options{Leaser: l, OnPush: func(f []byte) {
		if bytes.Equal(f, push) {
			got++
		}
	}}
	bubble(t, setup{Engine: o}, func(t *testing.T, r *rig) {
		l.Leaser, l.unread = r.leaser, bytes.Repeat(push, 200)
		c := scripted.Echo("a")
		require.NoError(t, r.Do(bg, c))
		require.Equal(t, "a", c.Reply)
		require.Equal(t, 200, got)
	})
}

// The write of two commands has not returned yet when the reply to the second is there. That proves the first sent,
// which expects none.
func TestAReplyProvesWhatWasSentBeforeItWithoutReply(t *testing.T) {
	c := &touchy{}
	s := script{"quiet": always(scripted.Action{NoReply: true})}
	bubble(t, setup{Server: s.options(), Wrap: firstOnly(c)}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		free := make(chan struct{})
		c.afterWrite = func() { <-free }
		c.armed.Store(true)
		o, quiet, loud := &outcomes{}, scripted.Echo("quiet"), scripted.Echo("loud")
		quiet.Traits.Frames = fdengine.NoReply
		errs := make([]error, 2)
		done := make(chan error, 1)
		go func() { done <- r.DoBatch(bg, []fdengine.Command{quiet, loud}, errs) }()
		synctest.Wait()
		require.NoError(t, <-done, "though the write still runs")
		require.Equal(t, "loud", loud.Reply)
		close(free)
		require.NoError(t, r.Do(bg, scripted.Echo("after")))
		require.Zero(t, o.count())
		require.Equal(t, 1, r.server.Executions("quiet"))
	})
}

// atOnce is a Submitter that answers each command in its Submit.
type atOnce struct{}

func (atOnce) Submit(_ context.Context, cmd fdengine.Command, done fdengine.Completion) error {
	done.Complete(cmd, nil)
	return nil
}

func TestSubmitAllStopsAskingForCommandsWhenItsCallerStops(t *testing.T) {
	asked := 0
	var in iter.Seq[*scripted.Cmd] = func(yield func(*scripted.Cmd) bool) {
		for asked++; yield(scripted.Echo("c")); asked++ {
		}
	}
	got := 0
	for range fdengine.SubmitAll(bg, atOnce{}, in) {
		if got++; got == 5 {
			break
		}
	}
	require.Equal(t, 5, asked)
}

// Close and the end of the ctx find a submitter that waits for room at the same moment.
//
// Covers: E-4, E-19
func TestASubmitterThatIsTurnedAwayAsItLeavesIsRejectedOnce(t *testing.T) {
	for range 20 {
		bubble(t, setup{NoStart: true, Engine: fdengine.Options{Window: 1, Queue: 1}}, func(t *testing.T, r *rig) {
			oc := &outcomes{}
			submitAll(t, r, oc, echoes("c", 2, carry.NoRetry)...)
			ctx, cancel := context.WithCancel(bg)
			var mu sync.Mutex
			var err error
			go func() {
				e := r.Submit(ctx, scripted.Echo("x"), oc)
				mu.Lock()
				err = e
				mu.Unlock()
			}()
			synctest.Wait()
			cancel()
			require.NoError(t, r.Close())
			<-r.Done()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			failsAs(t, err, carry.NotSent)
			require.Equal(t, uint64(1), r.Stats().Rejected)
			require.Equal(t, 2, oc.count())
		})
	}
}
