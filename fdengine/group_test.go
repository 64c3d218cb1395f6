package fdengine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// grouped submits cs with g.
func grouped(t *testing.T, r *rig, g *fdengine.Group, cs ...*scripted.Cmd) {
	t.Helper()
	g.Add(len(cs))
	submitAll(t, r, g, cs...)
}

// Covers: E-3, E-11
func TestAGroupIsWaitedForOnceForAllItsCommands(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		g := fdengine.NewGroup()
		require.NoError(t, g.Wait(bg), "nothing was announced")
		for round := range 3 {
			cs := echoes("c", 1500, carry.NoRetry)
			grouped(t, r, g, cs...)
			require.NoError(t, g.Wait(bg), "round %d", round)
			for _, c := range cs {
				require.Equal(t, c.Token, c.Reply)
			}
		}
	})
}

// Outcomes are counted by the lot. Groups whose commands alternate, and alternate with a batch and with callers, must not be taken for
// each other in one chunk of replies.
func TestGroupsThatAlternateAreCountedEachForItself(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Do(bg, scripted.Echo("first")))
		r.server.FreezeReplies(true)
		a, b := fdengine.NewGroup(), fdengine.NewGroup()
		of := map[*fdengine.Group][]*scripted.Cmd{a: echoes("a", 20, carry.NoRetry), b: echoes("b", 10, carry.NoRetry)}
		batch := make(chan error, 1)
		var dos []<-chan error
		for i := range 20 {
			grouped(t, r, a, of[a][i])
			if i < 10 {
				grouped(t, r, b, of[b][i])
				dos = append(dos, r.later(bg, scripted.Echo("d"+itoa(i))))
				synctest.Wait()
			}
			if i == 5 {
				go func() { batch <- r.DoBatch(bg, commands(echoes("batch", 5, carry.NoRetry)), nil) }()
				synctest.Wait()
			}
		}
		told := map[*fdengine.Group]chan error{a: make(chan error, 1), b: make(chan error, 1)}
		ctx, cancel := context.WithTimeout(bg, time.Minute) // an outcome that is missing would else be waited for for ever
		defer cancel()
		for g, c := range told {
			go func() { c <- g.Wait(ctx) }()
		}
		synctest.Wait()
		require.Empty(t, told[a])
		require.Empty(t, told[b])
		r.server.FreezeReplies(false)
		for g, c := range told {
			require.NoError(t, <-c)
			for _, c := range of[g] {
				require.Equal(t, c.Token, c.Reply)
			}
		}
		require.NoError(t, <-batch)
		for _, d := range dos {
			require.NoError(t, <-d)
		}
	})
}

// Covers: E-3
func TestAGroupKeepsTheFirstErrorAndStartsAgainWithNone(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		g := fdengine.NewGroup()
		good, bad, worse := scripted.Echo("good"), scripted.Echo("bad"), scripted.Echo("worse")
		first := errors.New("the first")
		bad.DecodeErr, worse.DecodeErr = first, errors.New("a later one")
		grouped(t, r, g, good, bad, worse)
		err := g.Wait(bg)
		require.ErrorIs(t, err, first)
		require.Equal(t, carry.Answered, fdengine.FateOf(err))
		grouped(t, r, g, scripted.Echo("again"))
		require.NoError(t, g.Wait(bg))
	})
}

// Covers: E-3
func TestAGroupIsToldOfWhatACutHasEnded(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Do(bg, scripted.Echo("first")))
		r.server.FreezeReplies(true)
		g := fdengine.NewGroup()
		lost, again := scripted.Echo("lost"), scripted.Echo("again")
		again.Traits.Class = carry.Replay
		grouped(t, r, g, lost, again)
		synctest.Wait()
		r.server.ResetConns()
		synctest.Wait()
		r.server.FreezeReplies(false)
		err := g.Wait(bg)
		require.Equal(t, carry.MaybeExecuted, fdengine.FateOf(err))
		require.Equal(t, "again", again.Reply)
		require.Equal(t, 1, r.server.Executions("lost"))
	})
}

// Covers: E-3
func TestAWaitForAGroupCanBeLeftAndTakenUpAgain(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		r.server.FreezeReplies(true)
		g := fdengine.NewGroup()
		c := scripted.Echo("late")
		grouped(t, r, g, c)
		ctx, cancel := context.WithTimeout(bg, time.Millisecond)
		defer cancel()
		require.ErrorIs(t, g.Wait(ctx), context.DeadlineExceeded)
		r.server.FreezeReplies(false)
		synctest.Wait() // its outcome was told while nobody waited
		require.NoError(t, g.Wait(bg))
		require.Equal(t, "late", c.Reply)
		r.server.FreezeReplies(true)
		grouped(t, r, g, scripted.Echo("next"))
		told := make(chan error, 1)
		go func() { told <- g.Wait(bg) }()
		synctest.Wait()
		require.Empty(t, told, "a word that nobody took is not one about the next command")
		r.server.FreezeReplies(false)
		require.NoError(t, <-told)
	})
}

func TestWhatWasNotAcceptedIsToldByItsSubmitterOrTakenBack(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		g := fdengine.NewGroup()
		broken := scripted.Echo("broken")
		broken.EncodeErr = errors.New("no words")
		g.Add(3)
		require.NoError(t, r.Submit(bg, scripted.Echo("good"), g))
		err := r.Submit(bg, broken, g)
		require.ErrorIs(t, err, broken.EncodeErr)
		told := make(chan error, 1)
		go func() { told <- g.Wait(bg) }()
		synctest.Wait()
		require.Empty(t, told)
		g.Complete(broken, err)
		synctest.Wait()
		require.Empty(t, told)
		g.Add(-1)
		require.ErrorIs(t, <-told, broken.EncodeErr)
		require.Equal(t, carry.NotSent, fdengine.FateOf(err))
	})
}

// A nil *Group is no nil Completion: it was counted for the batch whose replies came before, which then never ended, or for nobody,
// which ended the process.
//
// Covers: E-3
func TestAGroupThatNobodyMadeIsRefused(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Do(bg, scripted.Echo("first")))
		r.server.FreezeReplies(true)
		batch := make(chan error, 1)
		go func() { batch <- r.DoBatch(bg, commands(echoes("b", 3, carry.NoRetry)), nil) }()
		synctest.Wait()
		for _, g := range []*fdengine.Group{nil, new(fdengine.Group)} {
			s := r.Stream()
			for _, err := range []error{
				r.Submit(bg, scripted.Echo("x"), g), r.TrySubmit(scripted.Echo("x"), g), s.Submit(bg, scripted.Echo("x"), g),
			} {
				require.ErrorContains(t, err, "NewGroup")
				require.Equal(t, carry.NotSent, fdengine.FateOf(err))
			}
		}
		r.server.FreezeReplies(false)
		require.NoError(t, <-batch)
		require.Zero(t, r.server.Executions("x"))
		require.ErrorContains(t, new(fdengine.Group).Wait(bg), "NewGroup")
	})
}

func TestMoreOutcomesThanWereAnnouncedAreAnError(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		g := fdengine.NewGroup()
		submitAll(t, r, g, scripted.Echo("unannounced"))
		synctest.Wait()
		require.ErrorContains(t, g.Wait(bg), "announced")
		g.Add(1)
		require.NoError(t, g.Wait(bg), "it was announced late")
	})
}

// slow is a command whose decoder keeps the reader in the middle of a chunk until release is called.
func slow() (c *scripted.Cmd, release func()) {
	gate := make(chan struct{})
	c = scripted.Echo("slow")
	c.OnDecode = func(fdengine.Reply) { <-gate }
	return c, sync.OnceFunc(func() { close(gate) })
}

// Covers: E-10
func TestWhoHasWaitedForAGroupFindsTheRoomOfItsCommands(t *testing.T) {
	bubble(t, setup{Engine: fdengine.Options{Window: 8, Queue: 8}}, func(t *testing.T, r *rig) {
		c, release := slow()
		defer release()
		require.NoError(t, r.Ping(bg))
		r.server.FreezeReplies(true)
		g, other := fdengine.NewGroup(), fdengine.NewGroup()
		grouped(t, r, g, echoes("c", 6, carry.NoRetry)...)
		grouped(t, r, other, scripted.Echo("between")) // which tells the group, before
		grouped(t, r, other, c)                        // keeps the reader from the end of its chunk
		grouped(t, r, other, echoes("behind", 8, carry.NoRetry)...)
		synctest.Wait()
		r.server.FreezeReplies(false)
		require.NoError(t, g.Wait(bg))
		for i := range 6 {
			other.Add(1)
			require.NoError(t, r.TrySubmit(scripted.Echo("more"+itoa(i)), other), "command %d", i)
		}
		release()
		require.NoError(t, other.Wait(bg))
	})
}

// Covers: E-2
func TestAFlushReturnsAfterTheGroupWasTold(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		c, release := slow()
		defer release()
		require.NoError(t, r.Ping(bg))
		r.server.FreezeReplies(true)
		g, s := fdengine.NewGroup(), r.Stream()
		g.Add(1)
		require.NoError(t, s.Submit(bg, scripted.Echo("streamed"), g))
		submitAll(t, r, &outcomes{}, c)
		synctest.Wait()
		r.server.FreezeReplies(false)
		require.NoError(t, s.Flush(bg))
		ended, cancel := context.WithCancel(bg)
		cancel()
		require.NoError(t, g.Wait(ended))
	})
}

// Many goroutines, each with a Group, while the connection is cut again and again: each outcome is counted once, or a Wait
// would never end or end too early.
//
// Covers: E-3
func TestGroupsUnderCutsEndOnceEach(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		var wg sync.WaitGroup
		over := make(chan struct{})
		for w := range 8 {
			wg.Go(func() {
				g := fdengine.NewGroup()
				for round := range 40 {
					cs := echoes("w"+itoa(w)+"r"+itoa(round)+"c", 1+7*w, carry.Replay)
					g.Add(len(cs))
					for _, c := range cs {
						if err := r.Submit(bg, c, g); err != nil {
							g.Complete(c, err)
						}
					}
					if err := g.Wait(bg); err != nil && fdengine.FateOf(err) != carry.MaybeExecuted {
						t.Errorf("worker %d: %v", w, err)
					} else if err == nil {
						for _, c := range cs {
							if c.Reply != c.Token {
								t.Errorf("%s was answered %q before its group ended", c.Token, c.Reply)
							}
						}
					}
				}
			})
		}
		go func() { wg.Wait(); close(over) }()
		for cut := 0; ; cut++ {
			select {
			case <-over:
				require.Positive(t, cut)
				return
			default:
				pass(time.Millisecond)
				r.server.ResetConns()
			}
		}
	})
}
