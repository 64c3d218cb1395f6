package redis

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/testserver"
)

// Covers: E-10
func TestLargeValuesForAServerThatHaltedStayWithinTheByteLimitAndAreAllWrittenWhenItGoesOn(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	const room, size = 1 << 20, 64 << 10
	c := connect(t, Options{Addr: s.Addr(), Engine: fdengine.Options{
		WindowBytes: room, QueueBytes: room, ReadTimeout: time.Minute, WriteTimeout: time.Minute,
	}})
	do(t, c, Echo("connected"))
	s.Stop()
	value := make([]byte, size)
	var outs []*outcome
	for i := 0; ; i++ {
		out := newOutcome()
		err := c.TrySubmit(Set(fmt.Sprintf("k%d", i), value), out)
		if err != nil {
			require.ErrorIs(t, err, fdengine.ErrQueueFull)
			require.Equal(t, carry.NotSent, fdengine.FateOf(err))
			break
		}
		outs = append(outs, out)
		require.LessOrEqual(t, i*size, 2*room, "it must be full at some time")
	}
	st := c.Stats().Engine
	require.LessOrEqual(t, st.QueueBytes+st.InFlightBytes, 2*room)
	require.LessOrEqual(t, st.InFlightBytes, room)
	require.Greater(t, len(outs), room/size, "the queue takes some beside the window")
	s.Cont()
	for _, out := range outs {
		<-out.done
		require.NoError(t, out.err)
	}
	require.Equal(t, len(outs), s.Int("DBSIZE"))
	require.EqualValues(t, 1, c.Stats().Pool.Dials)
}

// Covers: E-24
func TestACallersDeadlineBoundsAnOutageWhateverItsKind(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connects, and says nothing for ever
	require.NoError(t, err)
	defer silent.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	for name, o := range map[string]Options{
		"refused":    {Addr: gone.Addr().String()},
		"black hole": {Addr: silent.Addr().String(), DialTimeout: time.Minute},
		"halted":     {Addr: s.Addr(), DialTimeout: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "halted" {
				s.Stop()
				defer s.Cont()
			}
			c := connect(t, o)
			var wg sync.WaitGroup
			var slowest atomic.Int64
			for i := range 8 {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
					defer cancel()
					start := time.Now()
					err := c.Do(ctx, Incr(fmt.Sprintf("n%d", i)))
					if fdengine.FateOf(err) != carry.NotSent || ctx.Err() == nil {
						t.Errorf("%v", err)
					}
					for d := int64(time.Since(start)); d > slowest.Load(); {
						slowest.Store(d)
					}
				})
			}
			wg.Wait()
			// To the millisecond it is held on a clock of its own, in fdengine.
			require.Less(t, time.Duration(slowest.Load()), 500*time.Millisecond)
		})
	}
	require.Zero(t, s.Int("DBSIZE"), "and none of them ran afterwards")
}

// Covers: E-29
func TestConnectionsThatAreRecycledAndReleasedUnderLoadLoseAndDoubleNothing(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr(), MaxAge: 1500 * time.Millisecond, Engine: fdengine.Options{MaxHold: time.Second}})
	const callers, each = 16, 100
	end := time.Now().Add(2300 * time.Millisecond)
	var wg sync.WaitGroup
	var sum atomic.Int64
	for g := range callers {
		wg.Go(func() {
			key := "n" + strconv.Itoa(g)
			for i := int64(1); i <= each || time.Now().Before(end); i++ {
				cmd := Incr(key)
				if err := c.Do(context.Background(), cmd); err != nil {
					t.Errorf("%s: %v", key, err)
					return
				}
				if n, err := cmd.Int64(); err != nil || n != i {
					t.Errorf("%s is %d after %d, %v", key, n, i, err)
					return
				}
				sum.Add(1)
			}
		})
	}
	wg.Wait()
	total := 0
	for g := range callers {
		total += s.Int("GET", "n"+strconv.Itoa(g))
	}
	require.EqualValues(t, sum.Load(), total)
	st := c.Stats()
	require.GreaterOrEqual(t, st.Engine.Sessions, uint64(3))
	require.Greater(t, st.Pool.Dials, uint64(1), "some were too old to be lent again")
	require.Zero(t, st.Engine.Replays)
	require.Zero(t, st.Engine.Cuts)
}

// A server that takes no request as long as this one closes each connection in the middle of it.
//
// Covers: E-46
func TestARequestBeyondTheLimitOfTheServerEndsAndHoldsUpNobody(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{Args: []string{"--client-query-buffer-limit", "1mb"}})
	c := connect(t, Options{Addr: s.Addr(), Engine: fdengine.Options{MaxOutage: 2 * time.Second}})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	large := make(chan error, 1)
	go func() { large <- c.Do(ctx, Build("SET").Arg("large").Arg(strings.Repeat("x", 48<<20))) }()
	for i := range 20 {
		require.NoError(t, c.Do(ctx, Build("SET").Arg("small").ArgInt(int64(i))))
	}
	err := <-large
	require.ErrorIs(t, err, fdengine.ErrPoisoned)
	require.Equal(t, carry.NotSent, fdengine.FateOf(err), "%v", err)
	require.Equal(t, "19", s.Text("GET", "small"))
	require.Empty(t, s.Text("GET", "large"))
}
