package fdengine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// Covers: E-10
func TestTheWindowHoldsInCommandsAndInBytes(t *testing.T) {
	for name, o := range map[string]fdengine.Options{
		"commands": {Window: 5},
		"bytes":    {WindowBytes: 5 * (20 + 100 + 14)},
	} {
		t.Run(name, func(t *testing.T) {
			s := script{"c30": first(1, scripted.DropBefore())}
			bubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig) {
				require.NoError(t, r.Ping(bg))
				r.server.FreezeReplies(true)
				oc := &outcomes{}
				cs := echoes("c", 60, carry.Replay)
				for _, c := range cs {
					c.Args = []string{strings.Repeat("x", 100)}
				}
				submitAll(t, r, oc, cs...)
				synctest.Wait()
				require.InDelta(t, 5, r.server.Executed(), 1)
				st := r.Stats()
				require.InDelta(t, 5, st.InFlightCommands, 1)
				require.Equal(t, 60, st.InFlightCommands+st.QueueCommands)
				r.server.FreezeReplies(false)
				pass(5 * time.Second)
				ok(t, oc, cs...)
				require.LessOrEqual(t, r.server.MaxUnanswered(), 6, "also on replay")
			})
		})
	}
}

// Covers: E-10
func TestLargeValuesAgainstAStalledPeerStayWithinTheByteLimit(t *testing.T) {
	o := fdengine.Options{WindowBytes: 1 << 20, QueueBytes: 1 << 20}
	bubble(t, setup{Engine: o}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		r.server.FreezeReads(true)
		oc := &outcomes{}
		accepted := 0
		for i := range 100 {
			c := &scripted.Cmd{Token: itoa(i), Args: []string{strings.Repeat("x", 64<<10)}}
			if err := r.TrySubmit(c, oc); err != nil {
				failsAs(t, err, carry.NotSent, fdengine.ErrQueueFull, fdengine.ErrNotSent)
			} else {
				accepted++
			}
		}
		st := r.Stats()
		require.LessOrEqual(t, st.QueueBytes+st.InFlightBytes, 2<<20)
		require.InDelta(t, 31, accepted, 1)
		r.server.FreezeReads(false)
		pass(5 * time.Second)
		require.Equal(t, accepted, oc.count())
	})
}

// Covers: E-10, E-36
func TestARequestBeyondTheByteLimitEntersAloneAndOneBeyondMaxRequestNever(t *testing.T) {
	o := fdengine.Options{WindowBytes: 1000, QueueBytes: 1000, MaxRequest: 100_000}
	bubble(t, setup{Engine: o, NoStart: true}, func(t *testing.T, r *rig) {
		oc := &outcomes{}
		a := scripted.Echo("a")
		submitAll(t, r, oc, a)
		big := &scripted.Cmd{Token: "big", Args: []string{strings.Repeat("x", 50_000)}}
		failsAs(t, r.TrySubmit(big, oc), carry.NotSent, fdengine.ErrQueueFull)
		res := r.later(bg, big)
		synctest.Wait()
		b := r.later(bg, scripted.Echo("b")) // waits its turn behind it
		synctest.Wait()
		require.Equal(t, 1, r.Stats().QueueCommands)
		r.listen()
		require.NoError(t, <-res)
		require.NoError(t, <-b)
		require.Equal(t, []string{"a", "big", "b"}, r.server.Order())
		huge := &scripted.Cmd{Token: "huge", Args: []string{strings.Repeat("x", 100_001)}}
		failsAs(t, r.Do(bg, huge), carry.NotSent, fdengine.ErrTooLarge, fdengine.ErrNotSent)
		require.Equal(t, uint64(2), r.Stats().Rejected)
	})
}

// Covers: E-11, E-4
func TestThoseWhoWaitForRoomAreLetInInTheirOrder(t *testing.T) {
	s := scripted.Options{Script: func(*scripted.ServerConn, scripted.Request) scripted.Action {
		return scripted.Delay(time.Millisecond) // so that one is let in at a time
	}}
	bubble(t, setup{Server: s, NoStart: true, Engine: fdengine.Options{Window: 1, Queue: 1}}, func(t *testing.T, r *rig) {
		oc := &outcomes{}
		var wg sync.WaitGroup
		for i := range 20 {
			c := scripted.Echo(fmt.Sprint("c", i))
			wg.Go(func() { require.NoError(t, r.Submit(bg, c, oc)) })
			synctest.Wait()
		}
		failsAs(t, r.TrySubmit(scripted.Echo("x"), oc), carry.NotSent, fdengine.ErrQueueFull)
		r.listen()
		wg.Wait()
		pass(time.Second)
		require.Equal(t, tokens(echoes("c", 20, carry.NoRetry)), r.server.Order())
	})
}

// Covers: C27, E-4, E-10
func TestCapacityIsExactAfterTimeoutsCancelsAndCuts(t *testing.T) {
	o := fdengine.Options{Window: 4, Queue: 6, ReadTimeout: -1, BackoffMax: 10 * time.Millisecond}
	bubble(t, setup{Engine: o}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		for cycle := range 30 {
			r.server.FreezeExec(true)
			ctx, cancel := context.WithCancel(bg)
			var mu sync.Mutex
			var wg sync.WaitGroup
			accepted := 0
			oc := &outcomes{}
			for i := range 40 {
				c := scripted.Echo(fmt.Sprintf("t%d-%d", cycle, i))
				switch {
				case i < 5: // these are cancelled
					accepted++
					wg.Go(func() { _ = r.Do(ctx, c) })
					synctest.Wait()
				default:
					if i%2 == 0 {
						c.Traits.Timeout = 50 * time.Millisecond
					}
					if r.TrySubmit(c, oc) == nil {
						mu.Lock()
						accepted++
						mu.Unlock()
					}
				}
			}
			require.Equal(t, 10, accepted, "cycle %d", cycle)
			pass(100 * time.Millisecond)
			cancel()
			wg.Wait()
			if cycle%3 == 0 {
				r.server.FreezeExec(false)
				r.server.CloseConns()
			}
			r.server.FreezeExec(false)
			pass(time.Second)
			st := r.Stats()
			require.Zero(t, st.QueueCommands+st.InFlightCommands+st.QueueBytes+st.InFlightBytes)
			require.LessOrEqual(t, r.server.MaxUnanswered(), 4)
		}
	})
}

// Covers: C27
func TestAContextThatEndsAtTheHandOverLosesNoRoom(t *testing.T) {
	o := fdengine.Options{Window: 5, Queue: 5}
	bubble(t, setup{Engine: o}, func(t *testing.T, r *rig) {
		rng := rand.New(rand.NewPCG(9, 9))
		var wg sync.WaitGroup
		for range 50 {
			seed := rng.Uint64()
			wg.Go(func() {
				own := rand.New(rand.NewPCG(seed, 1))
				for range 100 {
					ctx, cancel := context.WithCancel(bg)
					if own.IntN(2) == 0 {
						go cancel()
					}
					_ = r.Do(ctx, scripted.Echo("x"))
					cancel()
				}
			})
		}
		wg.Wait()
		pass(time.Second)
		r.server.FreezeExec(true)
		n := 0
		oc := &outcomes{}
		for range 20 {
			if r.TrySubmit(scripted.Echo("y"), oc) == nil {
				n++
			}
		}
		require.Equal(t, 10, n)
		r.server.FreezeExec(false)
		pass(time.Second)
	})
}

// Covers: C32, E-40
func TestAnOutageDoesNotGrowTheQueue(t *testing.T) {
	for size, tries := range map[int]int{1 << 10: 3000, 128 << 10: 60} {
		o := fdengine.Options{QueueBytes: 1 << 20, WindowBytes: 1 << 20, Window: 100}
		bubble(t, setup{NoStart: true, Engine: o}, func(t *testing.T, r *rig) {
			oc := &outcomes{}
			var accepted []string
			for i := range tries {
				c := &scripted.Cmd{Token: fmt.Sprint(i), Args: []string{strings.Repeat("x", size)}}
				if err := r.TrySubmit(c, oc); err == nil {
					accepted = append(accepted, c.Token)
				}
			}
			st := r.Stats()
			require.LessOrEqual(t, st.QueueBytes, 2<<20)
			require.Equal(t, uint64(tries-len(accepted)), st.Rejected)
			ctx, cancel := context.WithTimeout(bg, 10*time.Second)
			defer cancel()
			require.ErrorIs(t, r.Submit(ctx, &scripted.Cmd{Token: "late", Args: []string{strings.Repeat("x", size)}}, oc), context.DeadlineExceeded)
			r.listen()
			pass(5 * time.Second)
			require.Equal(t, accepted, r.server.Order(), "in order, once")
			require.LessOrEqual(t, r.server.MaxUnanswered(), 100)
		})
	}
}

// Covers: C15
func TestTheBytesAreCopiedBeforeSubmitReturns(t *testing.T) {
	for _, size := range []int{100, 64 << 10} {
		s := script{"k": first(1, scripted.DropAfter())}
		bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
			body := []byte(strings.Repeat("v", size))
			c := &sliceCmd{body: body}
			oc := &outcomes{}
			require.NoError(t, r.Submit(bg, c, oc))
			for i := range body {
				body[i] = 0xff
			}
			others := echoes("o", 32, carry.Replay) // they share pooled encode buffers
			submitAll(t, r, oc, others...)
			pass(2 * time.Second)
			ok(t, oc, others...)
			for i := range 2 {
				for _, req := range r.server.Requests(i) {
					if req.Token() == "k" {
						require.Equal(t, strings.Repeat("v", size), req.Args[2])
					}
				}
			}
			require.Equal(t, 2, r.server.Executions("k"))
			require.Equal(t, 1, c.encodes)
		})
	}
}

// sliceCmd sends a byte slice that its caller may change later.
type sliceCmd struct {
	body    []byte
	encodes int
}

func (c *sliceCmd) Spec() fdengine.Spec { return fdengine.Spec{Class: carry.Replay} }
func (c *sliceCmd) AppendRequest(dst []byte) ([]byte, error) {
	c.encodes++
	return scripted.AppendRequest(dst, "SET", "k", string(c.body)), nil
}
func (c *sliceCmd) DecodeReply(fdengine.Reply) error { return nil }

// Covers: C31, E-26
func TestBigRequestsAndBigRepliesPassEachOther(t *testing.T) {
	for name, buffer := range map[string]int{"none": -1, "tiny": 7, "8 KiB": 8 << 10} {
		t.Run(name, func(t *testing.T) {
			size := 256 << 10
			if buffer == 7 {
				size = 8 << 10
			}
			big := strings.Repeat("x", size)
			s := scripted.Options{ReadAhead: -1, Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
				if strings.HasPrefix(req.Token(), "get") {
					return scripted.Reply(string(scripted.AppendBulk(nil, big)))
				}
				return scripted.Action{}
			}}
			dial := func(_ int, c, _ *memnet.Conn) error {
				c.In().SetBuffer(buffer)
				c.Out().SetBuffer(buffer)
				return nil
			}
			bubble(t, setup{Server: s, OnDial: dial}, func(t *testing.T, r *rig) {
				oc := &outcomes{}
				var cs []*scripted.Cmd
				for i := range 4 {
					cs = append(cs, scripted.Echo("get"+itoa(i)), &scripted.Cmd{Token: "set" + itoa(i), Args: []string{big}})
				}
				cs = append(cs, echoes("e", 100, carry.NoRetry)...)
				submitAll(t, r, oc, cs...)
				pass(time.Second)
				for _, c := range cs {
					require.NoError(t, settledOf(t, oc, c), c.Token)
					require.Equal(t, 1, r.server.Executions(c.Token))
				}
				require.Equal(t, 1, r.server.Conns())
				require.Zero(t, r.Stats().Cuts)
			})
		})
	}
}

// Several blocks of big requests go out in one write, which costs half as much.
//
// Covers: S4-3
func TestBigRequestsShareWritesOfUpTo256KiB(t *testing.T) {
	for _, c := range []struct{ size, writes int }{{20 << 10, 2}, {40 << 10, 4}, {64 << 10, 8}, {300 << 10, 24}} {
		obs := &events{}
		bubble(t, setup{NoStart: true, Engine: fdengine.Options{Observer: obs}}, func(t *testing.T, r *rig) {
			oc := &outcomes{}
			var cs []*scripted.Cmd
			for i := range 24 {
				cs = append(cs, &scripted.Cmd{Token: fmt.Sprint(i), Args: []string{strings.Repeat("x", c.size)}})
			}
			submitAll(t, r, oc, cs...)
			synctest.Wait()
			r.listen()
			pass(3 * time.Second)
			require.Equal(t, len(cs), oc.count())
			writes := obs.of(fdengine.EventWrote)
			require.Len(t, writes, c.writes, "%d bytes each", c.size)
			for _, ev := range writes {
				require.True(t, ev.Bytes <= 256<<10 || ev.Commands == 1, "%d commands of %d bytes", ev.Commands, ev.Bytes)
			}
		})
	}
}

// Covers: S4-3, E-36
func TestAClaimIsBoundedAndABigValueGoesAlone(t *testing.T) {
	obs := &events{}
	bubble(t, setup{NoStart: true, Engine: fdengine.Options{Observer: obs, WindowBytes: 64 << 20}}, func(t *testing.T, r *rig) {
		oc := &outcomes{}
		var cs []*scripted.Cmd
		for i := range 3000 {
			cs = append(cs, &scripted.Cmd{Token: fmt.Sprint(i), Args: []string{strings.Repeat("x", 1000)}})
		}
		cs = append(cs, &scripted.Cmd{Token: "big", Args: []string{strings.Repeat("x", 600<<10)}})
		submitAll(t, r, oc, cs...)
		r.listen()
		pass(3 * time.Second)
		require.Equal(t, len(cs), oc.count())
		bytes, claims := 0, 0
		for _, ev := range obs.of(fdengine.EventWrote) {
			claims++
			bytes += ev.Bytes
			if ev.Bytes > 256<<10 {
				require.Equal(t, 1, ev.Commands)
			}
		}
		require.Greater(t, bytes, 3600<<10)
		require.Equal(t, claims+2+1, r.conn(r.net.Dials()-1).Out().Writes(), "the big one in three pieces; the handshake")
	})
}
