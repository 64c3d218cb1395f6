package cases_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/redis"
)

const readonly = "READONLY You can't write against a read only replica."

// C36: a write that was refused unexecuted was handed to its caller as failed; or the whole batch was sent again for
// one of them; or any error of a script was taken for NOSCRIPT. (What a redirect does is told with the cluster.)
// https://github.com/redis/rueidis/issues/696 https://github.com/redis/go-redis/pull/4008
// https://github.com/redis/ioredis/issues/2075 https://github.com/express-rate-limit/rate-limit-redis/pull/252
func TestWhatWasProvablyNotExecutedGoesAgainAndNothingElse(t *testing.T) {
	for _, line := range []string{
		"TRYAGAIN Multiple keys request during rehashing of slot", "CLUSTERDOWN Hash slot not served",
		"LOADING Redis is loading the dataset in memory", readonly, "MASTERDOWN Link with MASTER is down", "BUSY Redis is busy running a script.",
	} {
		t.Run(strings.Fields(line)[0], func(t *testing.T) {
			s := script{"n": first(3, scripted.Refuse(line))}
			redisBubble(t, setup{Server: s.options()}, redis.Options{}, func(t *testing.T, r *redisRig) {
				c := redis.Incr("n").WithBudget(-1)
				require.NoError(t, r.run(bg, c))
				r.frees(c) // it is on one connection several times
				require.Equal(t, 1, r.server.Executions("n"))
				if line == readonly {
					require.EqualValues(t, 3, r.Stats().Engine.Retired, "each time on another connection")
				} else {
					require.Equal(t, 1, r.server.Conns())
				}
			})
		})
	}
	for name, a := range map[string]scripted.Action{
		"drop": scripted.DropAfter(), "drop before": scripted.DropBefore(), "timeout": scripted.Stall(),
		"half a reply": scripted.HalfReply(), "ERR": scripted.Refuse("ERR something"), "OOM": scripted.Refuse("OOM command not allowed"),
	} {
		t.Run("not after "+name, func(t *testing.T) {
			s := script{"n": first(1, a)}
			redisBubble(t, setup{Server: s.options()}, redis.Options{}, func(t *testing.T, r *redisRig) {
				err := r.run(bg, redis.Incr("n"))
				require.Error(t, err)
				if a.Refuse != "" {
					fails(t, err, carry.Answered)
				} else {
					fails(t, err, carry.MaybeExecuted)
				}
				require.NoError(t, r.run(bg, redis.Echo("after")))
				sends := 0
				for i := range r.server.Conns() {
					for _, token := range r.server.ConnTokens(i) {
						if token == "n" {
							sends++
						}
					}
				}
				require.Equal(t, 1, sends)
			})
		})
	}
	t.Run("NOSCRIPT", func(t *testing.T) {
		source := redis.NewScript("return redis.call('incr', KEYS[1])")
		for name, tc := range map[string]struct {
			line string
			runs bool // the source is sent
		}{
			"the server's word":            {"NOSCRIPT No matching script. Please use EVAL.", true},
			"an error of the script":       {"ERR user_script:1: NOSCRIPT No matching script. Please use EVAL. script: a9c3, on @user_script:1.", false},
			"the script's own error code":  {"NOSCRIPT because I say so", false},
			"the same words, from a place": {"NOSCRIPT No matching script. Please use EVAL. script: a9c3, on @user_script:1.", false},
		} {
			s := scripted.Options{Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
				if req.Verb() == "EVALSHA" {
					return scripted.Refuse(tc.line)
				}
				return scripted.Reply(":1\r\n")
			}}
			redisBubble(t, setup{Server: s}, redis.Options{}, func(t *testing.T, r *redisRig) {
				_, err := r.EvalScript(bg, source, []string{"n"})
				if tc.runs {
					require.NoError(t, err, name)
					require.Equal(t, 1, r.server.Executed(), name)
				} else {
					fails(t, err, carry.Answered)
					require.Zero(t, r.server.Executed(), name)
				}
				require.Len(t, r.server.ConnTokens(0), 1+r.server.Executed(), name)
			})
		}
	})
	t.Run("batch", func(t *testing.T) {
		s := script{"t4": first(1, scripted.Refuse("CLUSTERDOWN later")), "t7": first(1, scripted.Refuse("TRYAGAIN later"))}
		redisBubble(t, setup{Server: s.options()}, redis.Options{}, func(t *testing.T, r *redisRig) {
			cmds := echoes(tokens("t", 10), redis.Incr)
			var errs []error
			r.together(func() {
				go func() { errs = r.batch(bg, "main", r.Client, commands(cmds)) }()
				pass(0)
				r.frees(cmds[4], cmds[7])
			})
			r.settled(time.Minute)
			pass(0)
			for i, err := range errs {
				require.NoError(t, err)
				require.Equal(t, 1, r.server.Executions(fmt.Sprintf("t%d", i)))
			}
			require.Len(t, errs, 10)
			log := r.server.ConnTokens(0)
			require.Equal(t, tokens("t", 10), log[:10])
			require.ElementsMatch(t, []string{"t4", "t7"}, log[10:])
		})
	})
	t.Run("refusals and the budget", func(t *testing.T) {
		// x is refused five times, lost once, and refused again: the budget of one pays for the loss only.
		s := script{"x": func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
			switch {
			case req.Attempt == 6:
				return scripted.DropAfter()
			case req.Attempt <= 8:
				return scripted.Refuse("TRYAGAIN later")
			}
			return scripted.Action{}
		}}
		redisBubble(t, setup{Server: s.options()}, redis.Options{}, func(t *testing.T, r *redisRig) {
			x := redis.Echo("x").WithBudget(1)
			require.NoError(t, r.run(bg, x))
			r.frees(x)
			require.Equal(t, 2, r.server.Executions("x"))
		})
		// y is lost as often as its budget allows, and refused as often as MaxRefusals allows.
		s = script{"y": func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
			switch {
			case req.Attempt <= 3:
				return scripted.DropAfter()
			case req.Attempt <= 5:
				return scripted.Refuse("TRYAGAIN later")
			}
			return scripted.Action{}
		}}
		ro := redis.Options{Engine: fdengine.Options{MaxRefusals: 2}}
		redisBubble(t, setup{Server: s.options()}, ro, func(t *testing.T, r *redisRig) {
			y := redis.Echo("y").WithBudget(3)
			require.NoError(t, r.run(bg, y))
			r.frees(y)
			require.Equal(t, 4, r.server.Executions("y"))
		})
		tally.Cut(4)
	})
}
