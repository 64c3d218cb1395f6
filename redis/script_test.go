package redis

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/internal/testserver"
)

func TestAScriptIsSentByItsDigestAndOnceByItsSource(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr()})
	ctx := context.Background()
	add := NewScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")
	for i := range 3 {
		cmd, err := c.EvalScript(ctx, add, []string{"n"}, 5)
		require.NoError(t, err)
		n, err := cmd.Int64()
		require.NoError(t, err)
		require.EqualValues(t, 5*(i+1), n)
	}
	stats := s.Text("INFO", "commandstats")
	require.Contains(t, stats, "cmdstat_evalsha:calls=3,")
	require.Contains(t, stats, "cmdstat_eval:calls=1,")
	s.Text("SCRIPT", "FLUSH")
	_, err := c.EvalScript(ctx, add, []string{"n"}, 5)
	require.NoError(t, err)
	require.Equal(t, "20", s.Text("GET", "n"))

	get := NewScript("return redis.call('GET', KEYS[1])").ReadOnly()
	cmd, err := c.EvalScript(ctx, get, []string{"n"})
	require.NoError(t, err)
	text, err := cmd.Text()
	require.NoError(t, err)
	require.Equal(t, "20", text)
	require.Equal(t, carry.Replay, cmd.Class())
	require.Equal(t, "EVAL_RO", cmd.Name())
	do(t, c, get.Load())
	do(t, c, get.EvalSha([]string{"n"}))

	for _, sc := range []*Script{add, add.AllowReplay()} {
		require.Len(t, sc.Digest(), 40)
		require.Equal(t, sc.class, sc.Eval([]string{"n"}).Class())
	}
}

// Any error of a script was once taken for NOSCRIPT, and the script ran a second time (C36).
func TestAScriptsOwnErrorIsNotTakenForAnUnknownScript(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr()})
	for i, source := range []string{
		"redis.call('INCR', KEYS[1]) return redis.error_reply('NOSCRIPT my own words')",
		"redis.call('INCR', KEYS[1]) return redis.error_reply('NOSCRIPT No matching script')",
		"redis.call('INCR', KEYS[1]) error({err='NOSCRIPT No matching script. Please use EVAL.'})",
		"redis.call('INCR', KEYS[1]) error('NOSCRIPT No matching script. Please use EVAL.')",
		"redis.call('INCR', KEYS[1]) return redis.call('LPUSH', KEYS[1], 'NOSCRIPT No matching script. Please use EVAL.')",
	} {
		s.Text("DEL", "n")
		sc := NewScript(source)
		do(t, c, sc.Load())
		_, err := c.EvalScript(context.Background(), sc, []string{"n"})
		require.Error(t, err)
		require.Equal(t, "1", s.Text("GET", "n"), "script %d: %v", i, err)
	}
}

func TestAnUnknownDigestIsFollowedByTheSourceAndTheScriptRunsOnce(t *testing.T) {
	const unknown = "NOSCRIPT No matching script. Please use EVAL."
	so := scripted.Options{Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
		switch {
		case req.Verb() == "EVALSHA":
			return scripted.Refuse(unknown)
		case strings.Contains(req.Token(), "drop"):
			return scripted.DropAfter()
		}
		return scripted.Action{}
	}}
	bubble(t, so, Options{}, func(t *testing.T, r *rig) {
		ctx := context.Background()
		_, err := r.EvalScript(ctx, NewScript("good"), []string{"k"})
		require.NoError(t, err)
		require.Equal(t, 1, r.server.Executions("good"))
		_, err = r.EvalScript(ctx, NewScript("drop"), []string{"k"})
		requireMaybe(t, err)
		require.Equal(t, 1, r.server.Executions("drop"), "no second send")
		require.Equal(t, 2, strings.Count(verbs(r.server, 0), "EVALSHA"))
	})
	so.Script = func(_ *scripted.ServerConn, req scripted.Request) scripted.Action { return scripted.DropAfter() }
	bubble(t, so, Options{}, func(t *testing.T, r *rig) {
		sc := NewScript("good")
		_, err := r.EvalScript(context.Background(), sc, nil)
		requireMaybe(t, err)
		require.Equal(t, 1, r.server.Executions(sc.Digest()))
		require.Zero(t, r.server.Executions("good"), "nobody said that it did not run")
	})
}
