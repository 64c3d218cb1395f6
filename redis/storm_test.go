package redis

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/testserver"
)

var kills = flag.Int("redis.kills", 3, "how often the storm kills the server")

// A slow head command once made everything behind it time out, go again, time out, and so on: the server ran it all.
// Covers: E-21
func TestASlowScriptAtTheHeadDoesNotMultiplyTheWritesBehindIt(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	for name, class := range map[string]carry.Class{"replayed": carry.Replay, "not replayed": carry.NoRetry} {
		t.Run(name, func(t *testing.T) {
			s.Text("FLUSHALL")
			c := connect(t, Options{Addr: s.Addr(), Engine: fdengine.Options{ReadTimeout: 150 * time.Millisecond}})
			do(t, c, Echo("connected"))
			// Servers since 7.2 stop the clock in scripts: there the turns end it.
			slow := NewScript(`redis.call('INCR', 'slow')
				local function now() local t = redis.call('TIME') return t[1] * 1000000 + t[2] end
				local start = now()
				for i = 1, 5000000 do if now() - start > 500000 then return i end end`)
			head := newOutcome()
			require.NoError(t, c.Submit(context.Background(), slow.Eval(nil).WithClass(class).WithBudget(1), head))
			var cmds []*Cmd
			for i := range 100 {
				cmds = append(cmds, Incr(fmt.Sprintf("n%d", i)))
			}
			errs := submitAll(t, c, cmds)
			<-head.done
			requireMaybe(t, head.err)
			// All that the server still has of the old connections is done when it answers on the last one.
			do(t, c, Echo("over"))
			for i, err := range errs {
				n := s.Int("GET", fmt.Sprintf("n%d", i))
				switch {
				case err == nil:
					require.Equal(t, 1, n)
				case fdengine.FateOf(err) == carry.NotSent:
					require.Zero(t, n)
				default:
					requireMaybe(t, err)
					require.LessOrEqual(t, n, 1)
				}
			}
			want := 1
			if class == carry.Replay {
				want = 2
				require.ErrorIs(t, head.err, fdengine.ErrBudget)
			}
			require.LessOrEqual(t, s.Int("GET", "slow"), want)
		})
	}
}

// ledger is what a worker was told about its writes.
type ledger struct {
	mu    sync.Mutex
	fates map[string]carry.Fate // by token; Answered: it ran, as far as the reply counts
}

func (l *ledger) note(token string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fates[token] = fdengine.FateOf(err)
}

// storm is a load on one client, and what became of it.
type storm struct {
	t    *testing.T
	c    *Client
	stop chan struct{}
	wg   sync.WaitGroup
	done atomic.Int64 // answered commands
}

func (st *storm) running() bool {
	select {
	case <-st.stop:
		return false
	default:
		return true
	}
}

// do runs one command and returns its error, which must be one of a lost connection or of a starting server.
func (st *storm) do(cmd *Cmd) error {
	err := st.c.Do(context.Background(), cmd)
	if err == nil {
		st.done.Add(1)
	} else if code := codeOf(err); code != "" && code != "LOADING" {
		st.t.Errorf("%v: %v", cmd, err)
	}
	return err
}

// count adds to a counter of its own; the answers must fit what was told.
func (st *storm) count(key string, ok, maybe *int) {
	var last int64
	for st.running() {
		cmd := Incr(key)
		switch err := st.do(cmd); fdengine.FateOf(err) {
		case carry.Answered:
			n, _ := cmd.Int64()
			if *ok++; n <= last || n > int64(*ok+*maybe) {
				st.t.Errorf("%s: %d after %d, with %d answered and %d open", key, n, last, *ok, *maybe)
			}
			last = n
		case carry.MaybeExecuted:
			*maybe++
		}
	}
}

// push appends tokens with a budget of two.
func (st *storm) push(key string, l *ledger) {
	for i := 0; st.running(); i++ {
		token := strconv.Itoa(i)
		l.note(token, st.do(RPush(key, token).WithClass(carry.Replay).WithBudget(2)))
	}
}

// echo asks for a token of its own back.
func (st *storm) echo(name string) {
	for i := 0; st.running(); i++ {
		token := fmt.Sprintf("%s-%d", name, i)
		cmd := Echo(token)
		if st.do(cmd) == nil {
			if got, err := cmd.Text(); err != nil || got != token {
				st.t.Errorf("%s was answered %q, %v", token, got, err)
			}
		}
	}
}

// flow appends numbers in a Stream, many at a time, and begins again after a break. It returns where each epoch of
// the Stream began.
func (st *storm) flow(key string, l *ledger) (epochs []int) {
	s := st.c.Stream()
	defer s.Close()
	epochs = []int{0}
	for i := 0; st.running(); {
		var outs []*outcome
		for range 50 {
			out := newOutcome()
			if err := s.Submit(context.Background(), RPush(key, strconv.Itoa(i)), out); err != nil {
				if fdengine.FateOf(err) != carry.NotSent {
					st.t.Error(err)
				}
				out.Complete(nil, err)
			}
			outs = append(outs, out)
			i++
		}
		broken := false
		for k, out := range outs {
			<-out.done
			l.note(strconv.Itoa(i-len(outs)+k), out.err)
			broken = broken || out.err != nil
			if out.err == nil {
				st.done.Add(1)
			}
		}
		if broken {
			if err := s.Reset(); err != nil {
				st.t.Error(err)
				return epochs
			}
			epochs = append(epochs, i)
		}
	}
	return epochs
}

// Covers: E-39, E-2, E-6
func TestAServerThatIsKilledAndStartedAgainUnderLoadLosesAndDoublesNothing(t *testing.T) {
	runStorm(t, Options{})
}

// Covers: E-32
func TestTheSameOverSeveralLanes(t *testing.T) {
	runStorm(t, Options{Lanes: 4})
}

func runStorm(t *testing.T, o Options) {
	// Without an fsync policy every write reaches the kernel before its reply is sent, and the kernel is not killed.
	s := testserver.StartRedis(t, testserver.RedisOptions{Args: []string{"--appendonly", "yes", "--appendfsync", "no"}})
	o.Addr = s.Addr()
	st := &storm{t: t, c: connect(t, o), stop: make(chan struct{})}
	const n = 4
	var ok, maybe [n]int
	var epochs [n][]int
	var pushed, flowed [n]*ledger
	for i := range n {
		pushed[i], flowed[i] = &ledger{fates: map[string]carry.Fate{}}, &ledger{fates: map[string]carry.Fate{}}
		st.wg.Go(func() { st.count(fmt.Sprintf("n%d", i), &ok[i], &maybe[i]) })
		st.wg.Go(func() { st.push(fmt.Sprintf("l%d", i), pushed[i]) })
		st.wg.Go(func() { epochs[i] = st.flow(fmt.Sprintf("s%d", i), flowed[i]) })
		st.wg.Go(func() { st.echo(fmt.Sprintf("e%d", i)) })
	}
	for range *kills {
		for more := st.done.Load() + 400; st.done.Load() < more; {
			_ = st.c.Do(context.Background(), Echo("load"))
		}
		s.Kill9()
		s.Restart()
	}
	close(st.stop)
	st.wg.Wait()
	stats := st.c.Stats().Engine
	require.Equal(t, stats.Accepted, stats.Settled)
	require.Zero(t, stats.QueueCommands+stats.InFlightCommands)
	open, answers := 0, 0
	for i := range n {
		v := s.Int("GET", fmt.Sprintf("n%d", i))
		require.GreaterOrEqual(t, v, ok[i])
		require.LessOrEqual(t, v, ok[i]+maybe[i])
		checkRuns(t, s, fmt.Sprintf("l%d", i), pushed[i], 3)
		runs := checkRuns(t, s, fmt.Sprintf("s%d", i), flowed[i], 1)
		checkPrefixes(t, runs, epochs[i], len(flowed[i].fates))
		open, answers = open+maybe[i], answers+ok[i]
	}
	require.Positive(t, answers)
	t.Logf("%d kills: %d commands, %d replays, %d maybe, %d increments left open, %d epochs of the first stream",
		*kills, stats.Accepted, stats.Replays, stats.Maybe, open, len(epochs[0]))
}

// checkRuns compares a list with what was told about its elements: those answered are there, those not sent are
// not, none more than most times. It returns how often each is there.
func checkRuns(t *testing.T, s *testserver.Redis, key string, l *ledger, most int) map[string]int {
	t.Helper()
	v, err := s.Do("LRANGE", key, "0", "-1")
	require.NoError(t, err)
	runs, last := map[string]int{}, -1
	for _, e := range v.([]any) {
		token := e.(string)
		runs[token]++
		_, told := l.fates[token]
		require.True(t, told, token)
		i, err := strconv.Atoi(token)
		require.NoError(t, err)
		require.GreaterOrEqual(t, i, last, "%s out of order", key)
		last = i
	}
	for token, fate := range l.fates {
		switch fate {
		case carry.Answered:
			require.Positive(t, runs[token], "%s %s was answered", key, token)
		case carry.NotSent:
			require.Zero(t, runs[token], "%s %s was not sent", key, token)
		}
		require.LessOrEqual(t, runs[token], most, "%s %s", key, token)
	}
	return runs
}

// checkPrefixes requires that of each epoch of a Stream the first ones ran and none behind a gap.
func checkPrefixes(t *testing.T, runs map[string]int, epochs []int, n int) {
	t.Helper()
	for k, from := range epochs {
		to := n
		if k+1 < len(epochs) {
			to = epochs[k+1]
		}
		gap := -1
		for i := from; i < to; i++ {
			switch {
			case runs[strconv.Itoa(i)] == 0 && gap < 0:
				gap = i
			case runs[strconv.Itoa(i)] > 0 && gap >= 0:
				require.Failf(t, "ran behind a gap", "%d after %d, in the epoch from %d to %d", i, gap, from, to)
			}
		}
	}
}
