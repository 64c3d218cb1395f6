package cases_test

import (
	"context"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// tcpEngine makes an engine of the scripted dialect on real sockets, with its book. End it with tcpDone.
func tcpEngine(t *testing.T, addr string, eo fdengine.Options) (*fdengine.Engine, *book, *scripted.Leaser) {
	t.Helper()
	return tcpEngineSmall(t, addr, 0, eo)
}

// tcpEngineSmall is tcpEngine with socket buffers of that many bytes.
func tcpEngineSmall(t *testing.T, addr string, buffers int, eo fdengine.Options) (*fdengine.Engine, *book, *scripted.Leaser) {
	t.Helper()
	l := scripted.NewLeaser(func(ctx context.Context) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err == nil {
			buffersOf(c, buffers)
		}
		return c, err
	})
	eo.Protocol, eo.Leaser, eo.Ping = scripted.NewProtocol, l, scripted.Ping
	e, err := fdengine.New(eo)
	require.NoError(t, err)
	return e, newBook(eo.Budget), l
}

// tcpDone closes everything and lets the oracles judge.
func tcpDone(t *testing.T, e *fdengine.Engine, b *book, l *scripted.Leaser, s *scripted.Server) {
	t.Helper()
	require.Zero(t, b.open(), "G1")
	_ = e.Close()
	<-e.Done()
	even(t, e.Stats())
	require.NoError(t, l.Check())
	l.Close()
	ctx, cancel := context.WithTimeout(bg, 10*time.Second)
	defer cancel()
	require.NoError(t, s.Until(ctx, func() bool { return s.OpenConns() == 0 }), "G4: the server sees all connections end")
	b.judge(t, s)
	require.NoError(t, s.Close())
	tally.Scenario(1)
}

// await spins until f holds, for a bounded time.
func await(t *testing.T, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); runtime.Gosched() {
		if time.Now().After(end) {
			require.FailNow(t, "it never came to that")
		}
	}
}
