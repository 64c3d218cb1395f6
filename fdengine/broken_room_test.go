package fdengine_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// What a fresh reader broke about room, and about waiting for what will not come.

// A limiter denied while the byte window was full. The denial failed nothing, as nothing could have been claimed,
// and the writer asked again at once: millions of times a second.
//
// Covers: E-17, E-11
func TestALimiterIsNotAskedForAClaimThatHasNoRoom(t *testing.T) {
	lim, asked := &limiter{}, atomic.Int64{}
	lim.onAllow = func() {
		if asked.Add(1) > 1000 {
			lim.deny(nil) // so that a spin ends, and is seen
		}
	}
	s := script{"big": always(scripted.Delay(time.Second))}
	o := fdengine.Options{WindowBytes: 64, Limiter: lim}
	bubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig) {
		oc, big, next := &outcomes{}, scripted.Echo("big"), scripted.Echo("next")
		big.Args = []string{strings.Repeat("x", 60)}
		submitAll(t, r, oc, big)
		synctest.Wait()
		lim.deny(errors.New("no"))
		submitAll(t, r, oc, next)
		pass(500 * time.Millisecond)
		require.EqualValues(t, 1, asked.Load(), "there is nothing to allow yet")
		pass(time.Second)
		ok(t, oc, big)
		failed(t, oc, next, carry.NotSent, fdengine.ErrDenied)
		require.EqualValues(t, 2, asked.Load())
	})
}

// A limiter denied the idle ping. The connection was as idle as before, and the next ping was due at once.
//
// Covers: E-17, E-11
func TestADeniedPingComesBackInItsTime(t *testing.T) {
	lim := &limiter{}
	o := fdengine.Options{Limiter: lim, PingEvery: 10 * time.Second}
	bubble(t, setup{Engine: o}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Do(bg, scripted.Echo("a")))
		lim.deny(errors.New("no"))
		pass(65 * time.Second)
		_, denied, _, _ := lim.counts()
		require.InDelta(t, 6, denied, 1)
		lim.deny(nil)
		pass(15 * time.Second)
		require.NoError(t, r.Do(bg, scripted.Echo("b")))
		require.Equal(t, 1, r.server.Conns())
	})
}

// Callers left commands that waited for a pause the server had asked for. Their room came back when the pause was
// over, an hour later, and Shutdown waited for it.
//
// Covers: E-19
func TestCommandsThatWaitForAPauseGiveTheirRoomBackWhenTheirCallersLeave(t *testing.T) {
	s := script{"a": always(scripted.Refuse("LOADING retry=50000"))}
	o := fdengine.Options{Window: 2, Queue: 2}
	bubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		left := make(chan error, 4)
		for range cap(left) {
			go func() { left <- r.Do(ctx, scripted.Echo("a")) }()
		}
		synctest.Wait()
		full, stop := context.WithTimeout(bg, 500*time.Millisecond)
		defer stop()
		require.ErrorIs(t, r.Do(full, scripted.Echo("b")), context.DeadlineExceeded, "all the room is taken")
		for range cap(left) {
			failsAs(t, <-left, carry.NotSent, context.DeadlineExceeded)
		}
		soon, enough := context.WithTimeout(bg, time.Second)
		defer enough()
		require.NoError(t, r.Do(soon, scripted.Echo("b")), "%+v", r.Stats())
		_, err := r.Shutdown(soon)
		require.NoError(t, err)
	})
}

// Callers who left took Shutdown's last work with them, and it did not hear of it.
//
// Covers: E-19
func TestShutdownEndsWhenTheLastThatWaitsForAPauseIsLeft(t *testing.T) {
	s := script{"a": always(scripted.Refuse("LOADING retry=50000"))}
	bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(bg)
		left := make(chan error, 1)
		go func() { left <- r.Do(ctx, scripted.Echo("a")) }()
		synctest.Wait()
		ended := make(chan error, 1)
		go func() {
			_, err := r.Shutdown(bg)
			ended <- err
		}()
		pass(time.Second)
		require.Empty(t, ended, "something is owed")
		cancel()
		require.ErrorIs(t, <-left, context.Canceled)
		pass(time.Second)
		require.Len(t, ended, 1)
		require.NoError(t, <-ended)
	})
}

// Shutdown came while a dial hung and the only caller had left, or left after it. It waited for a connection that
// nobody needed.
func TestShutdownDoesNotWaitForALeaseThatNobodyNeeds(t *testing.T) {
	for _, when := range []string{"left before", "left after"} {
		t.Run(when, func(t *testing.T) {
			bubble(t, setup{}, func(t *testing.T, r *rig) {
				r.leaser.DialFunc = func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
				ctx, cancel := context.WithCancel(bg)
				defer cancel()
				left := make(chan error, 1)
				go func() { left <- r.Do(ctx, scripted.Echo("a")) }()
				synctest.Wait()
				if when == "left before" {
					cancel()
				}
				ended := make(chan error, 1)
				go func() {
					_, err := r.Shutdown(bg)
					ended <- err
				}()
				pass(time.Second)
				cancel()
				failsAs(t, <-left, carry.NotSent, context.Canceled)
				pass(time.Second)
				require.Len(t, ended, 1, "still waiting: %+v", r.Stats())
				require.NoError(t, <-ended)
			})
		})
	}
}

// While a completion blocked, what the reader had settled was out of the queue's count and still in that of the
// flight: the queue's gauges went below zero.
func TestNoGaugeIsNegativeWhileACompletionBlocks(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		gate, told := make(chan struct{}), 0
		o := &outcomes{then: func(fdengine.Command, error) {
			if told++; told == 5 {
				<-gate
			}
		}}
		cs := echoes("x", 10, carry.NoRetry)
		require.NoError(t, r.Ping(bg))
		r.server.FreezeReplies(true)
		submitAll(t, r, o, cs...)
		synctest.Wait()
		r.server.FreezeReplies(false)
		synctest.Wait()
		n, s := o.count(), r.Stats()
		close(gate)
		synctest.Wait()
		require.Equal(t, 5, n)
		require.Zero(t, s.QueueCommands, "all of it is written: %+v", s)
		require.Zero(t, s.QueueBytes)
		require.Positive(t, s.InFlightCommands)
		require.Positive(t, s.InFlightBytes)
		ok(t, o, cs...)
	})
}

// hesitant is a context that does something between the end of the call and the answer why.
type hesitant struct {
	context.Context
	first func()
}

func (h *hesitant) Err() error {
	err := h.Context.Err()
	if err != nil {
		h.first()
	}
	return err
}

// A caller left a command whose session died in that moment. The cut that CutOnCancel owes to the old session hit
// the new one, and the command of somebody else on it.
//
// Covers: E-19
func TestALeaverCutsOnlyTheSessionItsCommandWasOn(t *testing.T) {
	s := script{"block": always(scripted.Delay(time.Hour)), "next": always(scripted.Delay(10 * time.Second))}
	o := fdengine.Options{Window: 1, ReadTimeout: -1, CutOnCancel: true}
	bubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig) {
		oc, next := &outcomes{}, scripted.Echo("next")
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		left := make(chan error, 1)
		go func() {
			left <- r.Do(&hesitant{ctx, func() {
				r.server.CloseConns()
				_ = r.TrySubmit(next, oc)
				time.Sleep(5 * time.Second)
			}}, scripted.Echo("block"))
		}()
		synctest.Wait()
		cancel()
		failsAs(t, <-left, carry.MaybeExecuted, context.Canceled)
		require.Equal(t, 1, r.Stats().InFlightCommands, "next is on its way")
		pass(10 * time.Second)
		ok(t, oc, next)
		require.Equal(t, 2, r.server.Conns())
		require.Equal(t, uint64(1), r.Stats().Cuts)
	})
}
