package redis

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
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

// row is one key of one caller: numbers that were appended to a list, many at a time.
type row struct {
	key   string
	class carry.Class
	outs  []*outcome
}

// push appends the next number, without waiting for the ones before.
func (w *row) push(c *Client, told *atomic.Int64) error {
	out := newOutcome()
	err := c.Submit(context.Background(), RPush(w.key, strconv.Itoa(len(w.outs))).WithClass(w.class), telling{out, told})
	if err == nil {
		w.outs = append(w.outs, out)
	}
	return err
}

// telling counts outcomes.
type telling struct {
	*outcome
	told *atomic.Int64
}

func (o telling) Complete(cmd fdengine.Command, err error) {
	o.outcome.Complete(cmd, err)
	o.told.Add(1)
}

// check compares the list with what was told. In a list of commands that may run twice a tail may come again, in
// order: so the first runs are in order, and the last ones are.
func (w *row) check(t *testing.T, s *testserver.Redis) {
	t.Helper()
	v, err := s.Do("LRANGE", w.key, "0", "-1")
	require.NoError(t, err)
	times, last := make([]int, len(w.outs)), make([]int, len(w.outs))
	newest := -1
	for at, e := range v.([]any) {
		i, err := strconv.Atoi(e.(string))
		require.NoError(t, err)
		if times[i]++; times[i] == 1 {
			require.Greater(t, i, newest, "%s: %d was overtaken", w.key, i)
			newest = i
		}
		last[i] = at
	}
	before := -1
	for i, out := range w.outs {
		if times[i] > 0 {
			require.Greater(t, last[i], before, "%s: %d was overtaken the last time it ran", w.key, i)
			before = last[i]
		}
		switch fate := fdengine.FateOf(out.err); {
		case out.err == nil:
			require.Positive(t, times[i], "%s: %d was answered", w.key, i)
		case fate == carry.NotSent:
			require.Zero(t, times[i], "%s: %d was not sent", w.key, i)
		default:
			require.Equal(t, carry.MaybeExecuted, fate, "%v", out.err)
		}
		if w.class == carry.NoRetry {
			require.LessOrEqual(t, times[i], 1, "%s: %d", w.key, i)
		} else {
			require.LessOrEqual(t, times[i], 4, "%s: %d", w.key, i)
		}
	}
}

// Covers: E-32
func TestTheOrderOfEachKeyIsKeptOverLanesWhileTheServerIsKilledAndStartedAgain(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{Args: []string{"--appendonly", "yes", "--appendfsync", "no"}})
	c := connect(t, Options{Addr: s.Addr(), Lanes: 4})
	require.NoError(t, c.Ping(context.Background()))
	stop := make(chan struct{})
	var told atomic.Int64
	var wg sync.WaitGroup
	const callers, keys = 4, 5
	rows := [callers][keys]*row{}
	for g := range callers {
		for k := range keys {
			rows[g][k] = &row{key: fmt.Sprintf("c%d-k%d", g, k), class: carry.Class(k % 2)}
		}
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				w := rows[g][i%keys]
				if err := w.push(c, &told); err != nil {
					t.Error(err)
					return
				}
				if i%500 == 499 { // at most so many are under way
					<-w.outs[len(w.outs)-1].done
				}
			}
		})
	}
	for range *kills {
		for more := told.Load() + 3000; told.Load() < more; {
			_ = c.Do(context.Background(), Echo("load"))
		}
		s.Kill9()
		s.Restart()
	}
	close(stop)
	wg.Wait()
	for g := range rows {
		for _, w := range rows[g] {
			for _, out := range w.outs {
				<-out.done
			}
		}
	}
	total := 0
	for g := range rows {
		for _, w := range rows[g] {
			w.check(t, s)
			total += len(w.outs)
		}
	}
	sum := c.Stats()
	require.Equal(t, sum.Engine.Accepted, sum.Engine.Settled)
	require.Greater(t, sum.Engine.Sessions, uint64(4), "the first four, and more after each kill that met a connection")
	require.Positive(t, sum.Engine.Replays)
	t.Logf("%d kills, 4 lanes: %d appended, %d replays, %d maybe, %d sessions", *kills, total, sum.Engine.Replays,
		sum.Engine.Maybe, sum.Engine.Sessions)
}

// clients is how many connections with a name the server has.
func clients(s *testserver.Redis, name string) int {
	return strings.Count(s.Text("CLIENT", "LIST"), " name="+name+" ")
}

// Covers: E-32
func TestARealServerSeesAConnectionForEachLaneTheirCommandsAddUpAndNoneAfterTheEnd(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	for name, end := range map[string]func(c *Client) error{
		"close":    (*Client).Close,
		"one":      func(c *Client) error { return c.Engines()[3].Close() },
		"shutdown": func(c *Client) error { _, err := c.Shutdown(context.Background()); return err },
	} {
		c, err := New(Options{Addr: s.Addr(), Lanes: 5, ClientName: "lanes"})
		require.NoError(t, err)
		require.Zero(t, clients(s, "lanes"))
		require.NoError(t, c.Ping(context.Background()))
		require.Equal(t, 5, clients(s, "lanes"))
		s.Text("CONFIG", "RESETSTAT")
		var cmds []fdengine.Command
		for i := range 1000 {
			cmds = append(cmds, Incr(fmt.Sprint("n", i%50)))
		}
		before := c.Stats().Engine
		require.NoError(t, c.DoBatch(context.Background(), cmds, nil))
		for i := range 500 {
			do(t, c, Incr(fmt.Sprint("n", i%50)))
		}
		require.Contains(t, s.Text("INFO", "commandstats"), "cmdstat_incr:calls=1500,")
		after := c.Stats()
		require.EqualValues(t, 1500, after.Engine.Answered-before.Answered)
		require.EqualValues(t, 5, after.Pool.Dials)
		require.Equal(t, 5, after.Pool.Leased)
		for i, cmd := range cmds[:50] {
			n, err := cmd.(*Cmd).Int64()
			require.NoError(t, err)
			require.Equal(t, s.Int("GET", fmt.Sprint("n", i))-29, int(n), "the first of thirty")
		}
		require.NoError(t, end(c))
		<-c.Done()
		require.Zero(t, c.Stats().Pool.Open)
		require.Eventually(t, func() bool { return clients(s, "lanes") == 0 }, 10*time.Second, time.Millisecond, name)
	}
}

// The lanes have pools of their own, so a lane that timed out kills its own old connection and no other.
// Covers: E-32
func TestALaneThatTimedOutIsFencedAndTheOthersKeepTheirConnections(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr(), Lanes: 3, ClientName: "fenced", Engine: fdengine.Options{ReadTimeout: 300 * time.Millisecond}})
	ctx := context.Background()
	require.NoError(t, c.Ping(ctx))
	require.Equal(t, 3, clients(s, "fenced"))
	blocked, old := newOutcome(), newOutcome()
	require.NoError(t, c.Submit(ctx, raw{NewCmd("BLPOP", "k", "0")}, blocked))
	require.NoError(t, c.Submit(ctx, Set("k", "old"), old))
	<-blocked.done
	requireMaybe(t, blocked.err)
	<-old.done
	require.NoError(t, old.err, "replayed")
	do(t, c, Set("k", "new"))
	s.Text("RENAME", "k", "was")
	s.Text("RPUSH", "k", "unblock")
	require.Equal(t, "new", s.Text("GET", "was"))
	require.Equal(t, "1", s.Text("LLEN", "k"), "the old BLPOP is gone")
	require.Equal(t, 3, clients(s, "fenced"))
	require.EqualValues(t, 4, c.Stats().Pool.Dials)
	require.EqualValues(t, 1, c.Stats().Engine.Cuts)
}

func TestWhatIsLentWorksBesideLanes(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr(), Lanes: 4})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err := c.Blocking(ctx, NewCmd("BLPOP", "q", 0))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, carry.Answered, fdengine.FateOf(err), "the server was asked to give up")
	do(t, c, RPush("q", "job"))
	pop := NewCmd("BLPOP", "q", 0)
	require.NoError(t, c.Blocking(context.Background(), pop))
	got, err := pop.Strings()
	require.NoError(t, err)
	require.Equal(t, []string{"q", "job"}, got)
	do(t, c, Set("w", "1"))
	require.NoError(t, c.Watch(context.Background(), func(tx *WatchTx) error { return tx.Exec(context.Background(), Incr("w")) }, "w"))
	require.Equal(t, "2", s.Text("GET", "w"))
	_, err = c.EvalScript(context.Background(), NewScript("return redis.call('INCR', KEYS[1])"), []string{"w"})
	require.NoError(t, err)
	require.Equal(t, "3", s.Text("GET", "w"))
}

// Covers: E-32
func TestAllocNothingPerDoAndSubmitWithAndWithoutLanes(t *testing.T) {
	if raced() {
		t.Skip("under the race detector pools forget")
	}
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	for _, n := range []int{1, 4} {
		c := connect(t, Options{Addr: s.Addr(), Lanes: n})
		cmds := make([]*Cmd, 16)
		batch := make([]fdengine.Command, len(cmds))
		errs := make([]error, len(cmds))
		for i := range cmds {
			cmds[i] = Set(fmt.Sprint("k", i), "v")
			batch[i] = cmds[i]
		}
		big := make([]fdengine.Command, 8)
		for i := range big {
			big[i] = Set("big", strings.Repeat("x", 100_000))
		}
		w := make(waiter, len(cmds))
		for name, tc := range map[string]struct {
			most float64
			f    func()
		}{
			"Do": {0, func() {
				for _, cmd := range cmds {
					_ = c.Do(context.Background(), cmd)
				}
			}},
			"Submit": {0, func() {
				for _, cmd := range cmds {
					_ = c.Submit(context.Background(), cmd, w)
				}
				for range cmds {
					<-w
				}
			}},
			"SubmitBatch": {0, func() {
				_, _ = c.SubmitBatch(context.Background(), batch, w)
				for range cmds {
					<-w
				}
			}},
			"DoBatch": {float64(n / 2), func() { _ = c.DoBatch(context.Background(), batch, errs) }},
			"SubmitBatch of big ones": {0, func() {
				_, _ = c.SubmitBatch(context.Background(), big, w)
				for range big {
					<-w
				}
			}},
			"DoBatch of big ones": {float64(n / 2), func() { _ = c.DoBatch(context.Background(), big, errs[:len(big)]) }},
		} {
			for range 500 {
				tc.f()
			}
			require.LessOrEqual(t, testing.AllocsPerRun(500, tc.f), tc.most, "%s with %d lanes", name, n)
		}
	}
}

// raced says whether the race detector is on.
func raced() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" })
}

// waiter is a completion that allocates nothing.
type waiter chan struct{}

func (w waiter) Complete(fdengine.Command, error) { w <- struct{}{} }
