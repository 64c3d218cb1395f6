package cases_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/redis"
)

// C02: an error reply in the middle of a batch ended its collection; what it left unread went to the next caller.
// https://github.com/redis-rs/redis-rs/issues/698 https://github.com/redis-rs/redis-rs/pull/699
func TestAnErrorReplyInABatchShiftsNothing(t *testing.T) {
	const words = "WRONGTYPE Operation against a key holding the wrong kind of value"
	shapes := map[string][]bool{ // true: a command that is answered by an error
		"middle": {false, true, false, false},
		"first":  {true, false, false, false},
		"last":   {false, false, false, true},
		"all":    {true, true, true, true},
	}
	// batches makes one of that shape, and another of a single command.
	batches := func(shape []bool) (one, two []*redis.Cmd) {
		for i, bad := range shape {
			if bad {
				one = append(one, redis.LPush("s", "1"))
			} else {
				one = append(one, redis.Echo(string(rune('a'+i))))
			}
		}
		return one, []*redis.Cmd{redis.Echo("other")}
	}
	// check requires that each got its own.
	check := func(t *testing.T, shape []bool, one []*redis.Cmd, errs []error) {
		for i, bad := range shape {
			if bad {
				require.Equal(t, "WRONGTYPE", codeOf(errs[i]), "%v", errs[i])
				continue
			}
			require.NoError(t, errs[i])
			got, err := one[i].Text()
			require.NoError(t, err)
			require.Equal(t, string(rune('a'+i)), got)
		}
	}
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			s := script{"s": always(scripted.Action{Refuse: words})}
			redisBubble(t, setup{Server: s.options()}, redis.Options{}, func(t *testing.T, r *redisRig) {
				require.NoError(t, r.run(bg, redis.Echo("warm")))
				one, two := batches(shape)
				var errs, more []error
				done := make(chan struct{}, 2)
				r.together(func() {
					go func() { errs = r.batch(bg, "one", r.Client, commands(one)); done <- struct{}{} }()
					synctest.Wait()
					go func() { more = r.batch(bg, "two", r.Client, commands(two)); done <- struct{}{} }()
				})
				<-done
				<-done
				check(t, shape, one, errs)
				require.NoError(t, more[0])
				require.Equal(t, 1, r.server.Conns(), "an error reply is no reason to leave a connection")
			})
		})
	}
	t.Run("real server", func(t *testing.T) {
		s := startRedis(t)
		s.Text("SET", "s", "x")
		c := realClient(t, redis.Options{Addr: s.Addr()})
		for range tally.Count(20, 500) {
			for _, shape := range shapes {
				one, two := batches(shape)
				errs, more := make([]error, len(one)), make([]error, 1)
				done := make(chan struct{})
				go func() { defer close(done); _ = c.DoBatch(bg, commands(two), more) }()
				_ = c.DoBatch(context.Background(), commands(one), errs)
				<-done
				check(t, shape, one, errs)
				require.NoError(t, more[0])
				got, err := two[0].Text()
				require.NoError(t, err)
				require.Equal(t, "other", got)
			}
		}
		require.EqualValues(t, 1, c.Stats().Pool.Dials)
		tally.Scenario(1)
	})
}
