package fdengine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// One to three callers come and go on a real connection that is cut now and then: each gets its own reply, or an error
// whose fate is true. The server counts.
//
// Covers: E-1, E-3, E-4, E-5, E-42
func TestCallersThatComeAndGoOnARealConnection(t *testing.T) {
	for _, after := range []int{1, 8} {
		t.Run(fmt.Sprint(after), func(t *testing.T) { storm(t, after, time.Second) })
	}
}

func storm(t *testing.T, after int, span time.Duration) {
	var asked atomic.Int64
	script := func(*scripted.ServerConn, scripted.Request) (a scripted.Action) {
		switch n := asked.Add(1); {
		case n%997 == 0:
			a.DropAfter = true
		case n%499 == 0:
			a.HalfReply = true
		case n%251 == 0:
			a.DropBefore, a.Reset = true, true
		case n%37 == 0:
			a.PushBefore = scripted.PushFrame("news", "x")
		case n%23 == 0:
			a.PushAfter = scripted.PushFrame("news", "y")
		}
		return a
	}
	server, addr, err := scripted.ListenTCP(scripted.Options{Script: script})
	require.NoError(t, err)
	l := scripted.NewLeaser(func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	})
	var pushes atomic.Int64
	e, err := fdengine.New(fdengine.Options{
		Protocol: scripted.NewProtocol, Leaser: l, Ping: scripted.Ping, PingEvery: 10 * time.Millisecond,
		BackoffMin: time.Microsecond, BackoffMax: time.Millisecond, OnPush: func([]byte) { pushes.Add(1) },
	})
	require.NoError(t, err)
	e.SetSoloAfter(after)
	var wg sync.WaitGroup
	end := time.Now().Add(span)
	for i := range 3 {
		wg.Go(func() {
			dice := rand.New(rand.NewPCG(uint64(after), uint64(i)))
			for n := 0; time.Now().Before(end); {
				if i > 0 { // the others are there now and then
					<-time.After(time.Duration(dice.IntN(4000*i)) * time.Microsecond) // load, not waiting for anything
				}
				for range 1 + dice.IntN(60) {
					n++
					one(t, e, server, dice, fmt.Sprintf("t%d-%d", i, n))
				}
			}
		})
	}
	wg.Wait()
	ctx, cancel := context.WithTimeout(bg, 5*time.Second)
	defer cancel()
	_, err = e.Shutdown(ctx)
	require.NoError(t, err)
	<-e.Done()
	s := e.Stats()
	require.Equal(t, s.Accepted, s.Settled, "%+v", s)
	require.NotZero(t, s.Cuts)
	require.NoError(t, l.Check())
	l.Close()
	require.NoError(t, server.Close())
}

// one asks for one command in a random way and holds its outcome against the server's count.
func one(t *testing.T, e *fdengine.Engine, server *scripted.Server, dice *rand.Rand, token string) {
	c := scripted.Echo(token)
	if dice.IntN(2) == 0 {
		c.Traits.Class, c.Traits.Budget = carry.Replay, 100
	}
	ctx, cancel := context.Context(bg), context.CancelFunc(func() {})
	switch dice.IntN(12) {
	case 0:
		ctx, cancel = context.WithCancel(bg)
	case 1:
		ctx, cancel = context.WithTimeout(bg, time.Duration(dice.IntN(500))*time.Microsecond)
	case 2:
		c.Traits.Timeout = time.Second
	}
	defer cancel()
	var err error
	switch dice.IntN(12) {
	case 0:
		err = e.DoBatch(ctx, []fdengine.Command{c}, nil)
	case 1:
		told := make(chan error, 1)
		if err = e.Submit(ctx, c, tells(told)); err == nil {
			err = <-told
		}
	case 2:
		told := make(chan error, 1)
		if err = e.TrySubmit(c, tells(told)); err == nil {
			err = <-told
		}
	default:
		err = e.Do(ctx, c)
	}
	runs := server.Executions(token)
	fate := carry.Answered
	if err != nil {
		fate = fdengine.FateOf(err)
	}
	switch {
	case err == nil && (c.Reply != token || runs == 0):
		t.Errorf("%s got %q and was executed %d times", token, c.Reply, runs)
	case c.Traits.Class == carry.NoRetry && runs > 1:
		t.Errorf("%s may not go again and was executed %d times", token, runs)
	case fate == carry.NotSent && runs > 0:
		t.Errorf("%s was executed %d times and is said not to be sent: %v", token, runs, err)
	case err != nil && ctx == bg && c.Traits.Class == carry.Replay && c.Traits.Timeout == 0:
		t.Errorf("%s may go again and failed: %v", token, err)
	case err != nil && errors.Is(err, fdengine.ErrUnavailable):
		t.Errorf("%s: %v", token, err)
	}
}
