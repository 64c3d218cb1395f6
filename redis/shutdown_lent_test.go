package redis

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/testserver"
)

// A Shutdown that was cut short told "context canceled" once for each lent connection.
func TestAShutdownThatIsCutShortSaysSoOnceForAllLentConnections(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr()})
	const blocked = 5
	out := make(chan error, blocked)
	for range blocked {
		go func() { out <- c.Blocking(context.Background(), split("BLPOP q 0")) }()
	}
	awaitBlocked(t, s, blocked)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r, err := c.Shutdown(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.LessOrEqual(t, strings.Count(err.Error(), "context canceled"), 2, "once for the shared one, once for the others: %v", err)
	require.ErrorContains(t, err, "5 of the lent connections: context canceled")
	require.Equal(t, blocked, r.MaybeExecuted)
	for range blocked {
		require.ErrorIs(t, <-out, fdengine.ErrMaybeExecuted)
	}
	<-c.Done()
}
