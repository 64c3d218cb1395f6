package redis

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/pool"
)

// byConn is which connection of the server got a token, by token.
func byConn(s *scripted.Server) map[string]int {
	at := map[string]int{}
	for i := range s.Conns() {
		for _, req := range s.Requests(i) {
			at[strings.Join(req.Args, " ")] = i
		}
	}
	return at
}

func TestWithoutLanesThereIsOneEngineAndNothingInBetween(t *testing.T) {
	for _, n := range []int{0, 1} {
		bubble(t, scripted.Options{}, Options{Lanes: n}, func(t *testing.T, r *rig) {
			require.Nil(t, r.lanes)
			require.Equal(t, []*fdengine.Engine{r.Engine()}, r.Engines())
			s := r.StreamFor("k")
			require.NoError(t, s.Do(context.Background(), Get("k")))
			require.NoError(t, r.Ping(context.Background()))
			require.EqualValues(t, 1, r.Stats().Pool.Dials)
			<-r.Ready()
		})
	}
}

// Covers: E-32
func TestAKeyKeepsItsConnectionAndAllOfThemAreUsed(t *testing.T) {
	bubble(t, scripted.Options{}, Options{Lanes: 4}, func(t *testing.T, r *rig) {
		ctx := context.Background()
		require.NoError(t, r.Ping(ctx))
		<-r.Ready()
		var cmds []fdengine.Command
		for k := range 32 {
			key := fmt.Sprint("key", k)
			require.NoError(t, r.Do(ctx, Set(key, "do")))
			out := newOutcome()
			require.NoError(t, r.Submit(ctx, RPush(key, "submit"), out))
			<-out.done
			require.NoError(t, out.err)
			out = newOutcome()
			require.NoError(t, r.TrySubmit(Incr(key), out))
			<-out.done
			require.NoError(t, r.StreamFor(key).Do(ctx, Get(key)))
			require.NoError(t, r.Do(ctx, RefusedWhole{NewScript("x").Eval([]string{key})}))
			cmds = append(cmds, HGet(key, "batch"))
		}
		require.NoError(t, r.DoBatch(ctx, cmds, nil))
		at := byConn(r.server)
		used := map[int]int{}
		for k := range 32 {
			key := fmt.Sprint("key", k)
			lane, there := at["SET "+key+" do"]
			require.True(t, there)
			used[lane]++
			for _, words := range []string{"RPUSH %s submit", "INCR %s", "GET %s", "EVAL x 1 %s", "HGET %s batch"} {
				got, there := at[fmt.Sprintf(words, key)]
				require.True(t, there)
				require.Equal(t, lane, got, words)
			}
		}
		require.Len(t, used, 4)
		require.Equal(t, 4, r.server.Conns())
	})
}

func TestATransactionGoesWhereItsFirstKeyIs(t *testing.T) {
	multi := scripted.Options{Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
		switch req.Verb() {
		case "MULTI":
			return scripted.Reply("+OK\r\n")
		case "EXEC":
			return scripted.Reply("*2\r\n+PONG\r\n:1\r\n")
		case "PING", "INCR":
			return scripted.Reply("+QUEUED\r\n")
		}
		return scripted.Action{}
	}}
	bubble(t, multi, Options{Lanes: 3}, func(t *testing.T, r *rig) {
		for k := range 12 {
			key := fmt.Sprint("k", k)
			require.NoError(t, r.Do(context.Background(), Get(key)))
			require.NoError(t, r.Do(context.Background(), NewTx(NewCmd("PING", key), Incr(key))))
			at := byConn(r.server)
			require.Equal(t, at["GET "+key], at["INCR "+key])
			require.Equal(t, at["GET "+key], at["PING "+key])
		}
	})
}

// Covers: E-32
func TestClosingTheEngineOfALaneClosesTheClient(t *testing.T) {
	bubble(t, scripted.Options{}, Options{Lanes: 3}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(context.Background()))
		require.Len(t, r.Engines(), 3)
		require.Same(t, r.Engines()[0], r.Engine())
		require.NoError(t, r.Engines()[2].Close())
		<-r.Done()
		for i := range 9 {
			require.ErrorIs(t, r.Do(context.Background(), Get(fmt.Sprint(i))), fdengine.ErrClosed)
		}
		_, err := r.Lend(context.Background())
		require.ErrorIs(t, err, fdengine.ErrClosed)
	})
}

func TestCloseEndsAllLanesAtTheSameTime(t *testing.T) {
	bubble(t, scripted.Options{}, Options{Lanes: 3}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(context.Background()))
		require.NoError(t, r.Close())
		for i := range 9 {
			require.ErrorIs(t, r.Do(context.Background(), Get(fmt.Sprint(i))), fdengine.ErrClosed)
		}
	})
}

func TestShutdownWaitsForTheBusyLaneAndForWhatIsLent(t *testing.T) {
	bubble(t, scripted.Options{}, Options{Lanes: 4}, func(t *testing.T, r *rig) {
		ctx := context.Background()
		require.NoError(t, r.Ping(ctx))
		l, err := r.Lend(ctx)
		require.NoError(t, err)
		r.server.FreezeExec(true)
		var outs []*outcome
		for range 5 {
			outs = append(outs, newOutcome())
			require.NoError(t, r.Submit(ctx, Incr("k"), outs[len(outs)-1]))
		}
		lent := make(chan error, 1)
		go func() { lent <- l.Do(ctx, Get("lent")) }()
		synctest.Wait()
		report := make(chan fdengine.Report, 1)
		go func() {
			bound, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			sum, err := r.Shutdown(bound)
			require.NoError(t, err)
			report <- sum
		}()
		time.Sleep(2 * time.Second)
		require.Empty(t, report)
		r.server.FreezeExec(false)
		sum := <-report
		require.GreaterOrEqual(t, sum.Answered, 5, "the lent one may have been told before its turn came")
		require.Zero(t, sum.NotSent+sum.MaybeExecuted)
		require.NoError(t, <-lent)
		for _, out := range outs {
			<-out.done
			require.NoError(t, out.err)
		}
		l.Close()
	})
}

// Covers: E-32
func TestTheStatsOfLanesArePoolsAndEnginesSummed(t *testing.T) {
	bubble(t, scripted.Options{}, Options{Lanes: 3}, func(t *testing.T, r *rig) {
		ctx := context.Background()
		require.NoError(t, r.Ping(ctx))
		r.server.CloseConns()
		synctest.Wait()
		require.NoError(t, r.Ping(ctx))
		s := r.Stats()
		require.EqualValues(t, 6, s.Pool.Dials)
		require.Equal(t, 3, s.Pool.Open)
		require.Equal(t, 3, s.Pool.Leased)
		removed := uint64(0)
		for _, n := range s.Pool.Removed {
			removed += n
		}
		require.EqualValues(t, 3, removed)
		require.EqualValues(t, 6, s.Engine.Sessions)
		require.EqualValues(t, 6, s.Engine.Answered)
		for _, p := range r.pools {
			require.EqualValues(t, 2, p.Stats().Dials)
		}
	})
}

func TestEveryFieldOfThePoolsIsSummed(t *testing.T) {
	var a pool.Stats
	v := reflect.ValueOf(&a).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Int:
			f.SetInt(int64(i + 1))
		case reflect.Uint64:
			f.SetUint(uint64(i + 1))
		case reflect.Map:
			f.Set(reflect.MakeMap(f.Type()))
			f.SetMapIndex(reflect.Zero(f.Type().Key()), reflect.ValueOf(uint64(i+1)))
		default:
			t.Errorf("nobody sums %s", v.Type().Field(i).Name)
		}
	}
	sum := sumPools([]pool.Stats{a, {}, a})
	require.Equal(t, a.FailedRounds, sum.FailedRounds)
	sum.FailedRounds *= 2
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		switch f := reflect.ValueOf(sum).Field(i); f.Kind() {
		case reflect.Int:
			require.EqualValues(t, 2*(i+1), f.Int(), name)
		case reflect.Uint64:
			require.EqualValues(t, 2*(i+1), f.Uint(), name)
		default:
			require.EqualValues(t, 2*(i+1), f.MapIndex(reflect.Zero(f.Type().Key())).Uint(), name)
		}
	}
}
