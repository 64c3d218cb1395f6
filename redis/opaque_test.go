package redis_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/redis"
)

// A script may return an error in the words of a refusal after it has written. Taken for the server's own, it made a
// NoRetry script run 33 times.
//
// Covers: E-5, S4-6
func TestAScriptThatAnswersInTheWordsOfARefusalRunsOnce(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c, err := redis.New(redis.Options{Addr: s.Addr()})
	require.NoError(t, err)
	defer func() { _ = c.Close(); <-c.Done() }()
	for _, code := range []string{"BUSY", "LOADING", "TRYAGAIN", "READONLY", "NOREPLICAS", "CLUSTERDOWN", "MASTERDOWN"} {
		script := redis.NewScript(`redis.call('INCR', KEYS[1]); return redis.error_reply('` + code + ` taken')`)
		err := c.Do(context.Background(), script.Eval([]string{code}))
		var se *redis.ServerError
		require.ErrorAs(t, err, &se)
		require.Equal(t, code, se.Code)
		require.Equal(t, "1", s.Text("GET", code), code)
	}
}
