package cases_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/redis"
)

// redisRig is a redis client in a world.
type redisRig struct {
	*redis.Client
	*world
}

// redisBubble is bubble with a redis client. DialFunc and Addr of ro may be left to it.
func redisBubble(t *testing.T, o setup, ro redis.Options, f func(t *testing.T, r *redisRig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.Engine = ro.Engine
		r := &redisRig{world: newWorld(t, o)}
		if ro.DialFunc == nil {
			ro.DialFunc = r.net.Dial
		}
		if ro.Addr == "" {
			ro.Addr = "server"
		}
		var err error
		r.Client, err = redis.New(ro)
		require.NoError(t, err)
		defer func() {
			if t.Failed() {
				_ = r.Client.Close()
				r.end()
				<-r.Done()
			}
		}()
		f(t, r)
		require.NoError(t, r.Client.Close())
		<-r.Done()
		synctest.Wait()
		require.Zero(t, r.open(), "G1: unsettled after Done")
		s := r.Stats()
		even(t, s.Engine)
		require.Zero(t, s.Pool.Open+s.Lent.Open, "G4")
		require.Zero(t, s.Pool.Ignored+s.Lent.Ignored)
		r.judge(t, r.servers()...)
		r.closed()
	})
}

// run is book.do with the rig's client as submitter "main".
func (r *redisRig) run(ctx context.Context, cmd fdengine.Command) error {
	return r.do(ctx, "main", r.Client, cmd)
}

// submit queues cmds in order as submitter "main".
func (r *redisRig) submit(cmds ...fdengine.Command) {
	r.t.Helper()
	for _, c := range cmds {
		require.NoError(r.t, r.book.submit(bg, "main", r.Client, c))
	}
}

// realClient is a client of a real server, closed with the test, its books even then.
func realClient(t *testing.T, o redis.Options) *redis.Client {
	t.Helper()
	c, err := redis.New(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = c.Close()
		<-c.Done()
		even(t, c.Stats().Engine)
		require.Zero(t, c.Stats().Pool.Open+c.Stats().Lent.Open, "G4")
	})
	return c
}

func startRedis(t *testing.T) *testserver.Redis {
	t.Helper()
	return testserver.StartRedis(t, testserver.RedisOptions{})
}

// codeOf is the code of the server's error in err's chain.
func codeOf(err error) string {
	var se *redis.ServerError
	if errors.As(err, &se) {
		return se.Code
	}
	return ""
}

// tokens makes n tokens prefix0, prefix1, ...
func tokens(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return out
}

// commands turns a slice of commands of one type into what Submit and DoBatch take.
func commands[C fdengine.Command](cs []C) []fdengine.Command {
	out := make([]fdengine.Command, len(cs))
	for i, c := range cs {
		out[i] = c
	}
	return out
}

// echoes makes a command of each token.
func echoes[C fdengine.Command](tokens []string, f func(string) C) []C {
	out := make([]C, len(tokens))
	for i, token := range tokens {
		out[i] = f(token)
	}
	return out
}
