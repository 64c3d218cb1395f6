package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
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

// awaitBlocked returns when the server has n clients that block.
func awaitBlocked(t *testing.T, s *testserver.Redis, n int) {
	t.Helper()
	w := s.Witness()
	for {
		info, err := w.Do("INFO", "clients")
		require.NoError(t, err)
		if strings.Contains(info.(string), fmt.Sprintf("blocked_clients:%d\r\n", n)) {
			return
		}
	}
}

// Covers: E-31
func TestCommandsThatBlockRunOnLentConnections(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	for _, version := range []int{2, 3} {
		s.Text("FLUSHALL")
		c := connect(t, Options{Addr: s.Addr(), Protocol: version})
		s.Text("RPUSH", "l", "a", "b", "c", "d", "e")
		s.Text("ZADD", "z", "1", "m", "2", "n", "3", "o")
		s.Text("XADD", "x", "1-1", "f", "v")
		s.Text("XGROUP", "CREATE", "x", "g", "0")
		for _, line := range []string{
			"BLPOP l 0", "brpop l 0", "BRPOPLPUSH l m 0", "BLMOVE l m LEFT LEFT 0", "BLMPOP 0 1 l LEFT", "BZPOPMIN z 0", "BZPOPMAX z 0",
			"BZMPOP 0 1 z MIN", "XREAD BLOCK 0 STREAMS x 0", "xreadgroup group g c block 0 streams x >", "WAIT 0 0", "GET nothing",
		} {
			require.NoError(t, c.Blocking(context.Background(), split(line)), line)
		}
		for _, line := range []string{"BLPOP empty 0.01", "XREAD BLOCK 10 STREAMS x $", "BZPOPMIN empty 0.01"} {
			cmd := split(line)
			require.NoError(t, c.Blocking(context.Background(), cmd))
			_, err := cmd.Slice()
			require.ErrorIs(t, err, Nil, "the server's own timeout is a null")
		}
		require.Equal(t, "ERR", codeOf(c.Blocking(context.Background(), split("BLPOP l never"))))
		for range 50 {
			require.NoError(t, c.Blocking(context.Background(), split("WAIT 0 0")))
		}
		require.EqualValues(t, 1, c.Stats().Lent.Dials, "one connection for all, one after the other")
		require.Len(t, c.lender.mu.all, 1)
		require.Zero(t, c.Stats().Pool.Dials, "nothing went the shared way")
	}
}

// A pop that blocked on the shared connection kept everybody waiting (C33).
// Covers: E-31
func TestABlockedPopKeepsNobodyWaiting(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr()})
	popped := make(chan error, 1)
	pop := split("BLPOP jobs 20")
	go func() { popped <- c.Blocking(context.Background(), pop) }()
	awaitBlocked(t, s, 1)
	var took [16][]time.Duration
	var wg sync.WaitGroup
	for g := range took {
		wg.Go(func() {
			for i := range 50 {
				start := time.Now()
				if err := c.Do(context.Background(), Set(fmt.Sprintf("k%d", g), fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
				took[g] = append(took[g], time.Since(start))
			}
		})
	}
	wg.Wait()
	all := slices.Concat(took[:]...)
	slices.Sort(all)
	require.Less(t, all[len(all)*99/100], 100*time.Millisecond)
	do(t, c, RPush("jobs", "result of the worker that pops"))
	require.NoError(t, <-popped)
	got, err := pop.Strings()
	require.NoError(t, err)
	require.Equal(t, []string{"jobs", "result of the worker that pops"}, got)
}

// The client gave up on a pop, the server did not, and what was pushed next went to nobody (C23).
func TestACancelledPopLosesNoJob(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	const lanes, rounds = 25, 8
	// A process that gets no CPU for half a second would give connections up by the default.
	c := connect(t, Options{Addr: s.Addr(), Lent: lanes, CancelWait: 30 * time.Second})
	var first, late atomic.Int64
	var wg sync.WaitGroup
	for lane := range lanes {
		w := s.Witness()
		wg.Go(func() {
			for round := range rounds {
				queue, job := fmt.Sprintf("q%d", lane), fmt.Sprintf("job%d-%d", lane, round)
				pushed := make(chan error, 1)
				time.AfterFunc(90*time.Millisecond+rand.N(20*time.Millisecond), func() {
					_, err := w.Do("RPUSH", queue, job)
					pushed <- err
				})
				ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
				pop := split("BLPOP " + queue + " 0")
				err := c.Blocking(ctx, pop)
				ended := ctx.Err() != nil
				cancel()
				if err := <-pushed; err != nil {
					t.Error(err)
					return
				}
				if err == nil {
					first.Add(1)
					if ended {
						late.Add(1)
					}
				} else {
					if !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) || fdengine.FateOf(err) == carry.MaybeExecuted {
						t.Errorf("%s: %v", job, err)
					}
					pop = split("BLPOP " + queue + " 1")
					if err := c.Blocking(context.Background(), pop); err != nil {
						t.Error(err)
					}
				}
				if got, err := pop.Strings(); err != nil || len(got) != 2 || got[1] != job {
					t.Errorf("%s: got %q, %v", job, got, err)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("of %d jobs %d went to the first caller, %d of them after its ctx had ended", lanes*rounds, first.Load(), late.Load())
	require.EqualValues(t, lanes, c.Stats().Lent.Dials, "no connection was given up")
}

func TestWithoutTheRightToUnblockACancelledPopCutsItsConnection(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	s.Text("ACL", "SETUSER", "worker", "on", ">pw", "~*", "&*", "+@all", "-client|unblock")
	for name, o := range map[string]Options{
		"no right":   {Username: "worker", Password: "pw"},
		"not wanted": {CancelWait: -1},
	} {
		t.Run(name, func(t *testing.T) {
			o.Addr = s.Addr()
			c := connect(t, o)
			ctx, cancel := context.WithCancel(context.Background())
			out := make(chan error, 1)
			go func() { out <- c.Blocking(ctx, split("BLPOP q 0")) }()
			awaitBlocked(t, s, 1)
			cancel()
			err := <-out
			require.ErrorIs(t, err, context.Canceled)
			requireMaybe(t, err)
			awaitBlocked(t, s, 0)
			s.Text("RPUSH", "q", name)
			pop := split("BLPOP q 1")
			require.NoError(t, c.Blocking(context.Background(), pop))
			got, err := pop.Strings()
			require.NoError(t, err)
			require.Equal(t, []string{"q", name}, got)
			require.EqualValues(t, 2, c.Stats().Lent.Dials)
		})
	}
}

// A timeout that only forgets the command would leave it armed on the server.
func TestACommandsOwnTimeoutUnblocksItToo(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr()})
	err := c.Blocking(context.Background(), split("BLPOP q 0").WithTimeout(50*time.Millisecond))
	require.ErrorIs(t, err, fdengine.ErrTimeout)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, carry.Answered, fdengine.FateOf(err))
	awaitBlocked(t, s, 0)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	err = c.Blocking(ctx, split("BLPOP q 0").WithTimeout(time.Minute))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, fdengine.ErrTimeout, "it was the caller's ctx")
}

func TestALentConnectionKeepsItsStateToItself(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr()})
	l, err := c.Lend(context.Background())
	require.NoError(t, err)
	require.NoError(t, l.Do(context.Background(), split("SELECT 5")))
	require.NoError(t, l.Do(context.Background(), Set("k", "five")))
	a, b := Get("k"), Incr("n")
	require.NoError(t, l.Do(context.Background(), NewTx(a, b)))
	require.ErrorIs(t, l.Do(context.Background(), split("SUBSCRIBE c")), ErrNotShared)
	require.ErrorIs(t, l.Do(context.Background(), split("MULTI")), ErrNotShared)
	require.False(t, l.Lost())
	l.Close()
	l.Close()
	require.ErrorIs(t, l.Do(context.Background(), Get("k")), fdengine.ErrClosed)
	require.True(t, l.Lost())
	require.Empty(t, s.Text("GET", "k"))
	l, err = c.Lend(context.Background())
	require.NoError(t, err)
	get := Get("k")
	require.NoError(t, l.Do(context.Background(), get))
	_, err = get.Text()
	require.ErrorIs(t, err, Nil, "the next borrower is in database 0")
	l.Close()
	l, err = c.Lend(context.Background())
	require.NoError(t, err)
	l.Close()
	require.EqualValues(t, 2, c.Stats().Lent.Dials, "a clean one is lent again")
}

func TestALostLentConnectionIsNotReplacedUnderItsBorrower(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	ended := make(endings, 10)
	c := connect(t, Options{Addr: s.Addr(), Engine: fdengine.Options{Observer: ended}})
	l, err := c.Lend(context.Background())
	require.NoError(t, err)
	id := NewCmd("CLIENT", "ID")
	require.NoError(t, l.Do(context.Background(), id))
	n, err := id.Text()
	require.NoError(t, err)
	s.Text("CLIENT", "KILL", "ID", n)
	<-ended
	require.True(t, l.Lost())
	for range 3 {
		err = l.Do(context.Background(), Set("k", "v"))
		require.ErrorIs(t, err, ErrSessionLost)
		require.Equal(t, carry.NotSent, fdengine.FateOf(err))
	}
	l.Close()
	require.NoError(t, c.Blocking(context.Background(), split("WAIT 0 0")), "the next borrower gets a new one")
	require.Empty(t, s.Text("GET", "k"))
}

func TestLentConnectionsAreBoundedAndWaitedForInTurn(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr(), Lent: 2})
	a, err := c.Lend(context.Background())
	require.NoError(t, err)
	b, err := c.Lend(context.Background())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err = c.Lend(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, carry.NotSent, fdengine.FateOf(err))
	require.ErrorIs(t, c.Blocking(ctx, split("WAIT 0 0")), context.DeadlineExceeded)
	waited := make(chan error, 1)
	go func() { waited <- c.Blocking(context.Background(), split("WAIT 0 0")) }()
	a.Close()
	require.NoError(t, <-waited)
	b.Close()

	none := connect(t, Options{Addr: s.Addr(), Lent: -1})
	err = none.Blocking(context.Background(), split("WAIT 0 0"))
	require.ErrorContains(t, err, "Options.Lent")
	require.Equal(t, carry.NotSent, fdengine.FateOf(err))
}

func TestTheEndOfTheClientEndsWhatBlocks(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr()})
	out := make(chan error, 1)
	go func() { out <- c.Blocking(context.Background(), split("BLPOP q 0")) }()
	awaitBlocked(t, s, 1)
	require.NoError(t, c.Close())
	err := <-out
	require.ErrorIs(t, err, fdengine.ErrClosed)
	requireMaybe(t, err)
	<-c.Done()
	require.ErrorIs(t, c.Blocking(context.Background(), split("WAIT 0 0")), fdengine.ErrClosed)
	_, err = c.Lend(context.Background())
	require.ErrorIs(t, err, fdengine.ErrClosed)

	// Shutdown waits for it, as for any other command.
	c = connect(t, Options{Addr: s.Addr()})
	do(t, c, Echo("x"))
	pop := split("BLPOP q 0")
	go func() { out <- c.Blocking(context.Background(), pop) }()
	awaitBlocked(t, s, 1)
	type result struct {
		r   fdengine.Report
		err error
	}
	down := make(chan result, 1)
	go func() {
		r, err := c.Shutdown(context.Background())
		down <- result{r, err}
	}()
	<-c.engine.Done()
	s.Text("RPUSH", "q", "job")
	require.NoError(t, <-out)
	require.Equal(t, result{r: fdengine.Report{Answered: 1}}, <-down)
	<-c.Done()
}

func TestLentConnectionsAndSubscriptionsAreMadeLikeTheSharedOne(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{TLS: true, Unix: true, Password: "secret"})
	ctx := context.Background()
	for name, o := range map[string]Options{
		"TLS":  {Addr: s.TLSAddr(), TLS: s.TLSConfig()},
		"unix": {Network: "unix", Addr: s.UnixSocket()},
	} {
		o.Password, o.DB, o.ClientName = "secret", 3, "fd-"+name
		c := connect(t, o)
		do(t, c, RPush("l", name))
		pop := split("BLPOP l 1")
		require.NoError(t, c.Blocking(ctx, pop))
		got, err := pop.Strings()
		require.NoError(t, err)
		require.Equal(t, []string{"l", name}, got)
		require.NoError(t, c.Watch(ctx, func(tx *WatchTx) error { return tx.Exec(ctx, Incr("n")) }, "n"))
		sub, err := c.Subscribe(ctx, "c")
		require.NoError(t, err)
		do(t, c, Publish("c", name))
		require.Equal(t, name, string(next(t, sub).Payload))
		require.Equal(t, 3, strings.Count(s.Text("CLIENT", "LIST"), " name="+o.ClientName+" "), "shared, lent and subscribed")
		require.NoError(t, c.Close())
		<-c.Done()
	}
}
