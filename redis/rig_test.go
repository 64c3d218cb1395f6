package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// rig is a Client on a scripted server over a network in memory, inside a synctest bubble.
type rig struct {
	*Client
	server *scripted.Server
	net    *memnet.Network
}

// bubble runs f in a synctest bubble. At the end the client's books must be even and its goroutines gone.
func bubble(t *testing.T, so scripted.Options, o Options, f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{server: scripted.New(so), net: &memnet.Network{}}
		l, err := r.net.Listen("server")
		require.NoError(t, err)
		r.server.Serve(l)
		if o.DialFunc == nil {
			o.DialFunc = r.net.Dial
		}
		o.Addr = "server"
		r.Client, err = New(o)
		require.NoError(t, err)
		defer func() { // a failed test must not leave goroutines, or the bubble hides why it failed
			if t.Failed() {
				_ = r.Close()
				_ = r.server.Close()
				<-r.Done()
			}
		}()
		f(t, r)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err = r.Shutdown(ctx)
		require.NoError(t, err)
		<-r.Done()
		s := r.Stats()
		require.Equal(t, s.Engine.Accepted, s.Engine.Settled)
		require.Zero(t, s.Pool.Open+s.Lent.Open)
		require.NoError(t, r.server.Close())
	})
}

// hold submits commands and returns when the server has all of them but has not dealt with any.
func (r *rig) hold(t *testing.T, cmds []*Cmd) []*outcome {
	require.NoError(t, r.Do(context.Background(), Echo("warm")))
	r.server.FreezeExec(true)
	arrived := r.server.Arrived()
	outs := make([]*outcome, len(cmds))
	for i, c := range cmds {
		outs[i] = newOutcome()
		require.NoError(t, r.Submit(context.Background(), c, outs[i]))
	}
	require.NoError(t, r.server.Until(context.Background(), func() bool { return r.server.Arrived() == arrived+len(cmds) }))
	return outs
}

// outcome is a completion for one command.
type outcome struct {
	done chan struct{}
	err  error
}

func newOutcome() *outcome { return &outcome{done: make(chan struct{})} }

func (o *outcome) Complete(_ fdengine.Command, err error) {
	o.err = err
	close(o.done)
}

// submitAll submits commands in order and returns their outcomes when all have settled.
func submitAll(t *testing.T, s fdengine.Submitter, cmds []*Cmd) []error {
	outs := make([]*outcome, len(cmds))
	for i, c := range cmds {
		outs[i] = newOutcome()
		require.NoError(t, s.Submit(context.Background(), c, outs[i]))
	}
	errs := make([]error, len(cmds))
	for i, o := range outs {
		<-o.done
		errs[i] = o.err
	}
	return errs
}

// echoes runs callers that send ECHO of their own tokens until stop is closed and fail the test on a foreign one.
func echoes(t *testing.T, c *Client, callers int, stop <-chan struct{}) (wait func() int) {
	var wg sync.WaitGroup
	counts := make([]int, callers)
	for g := range callers {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					counts[g] = i
					return
				default:
				}
				token := fmt.Sprintf("e%d-%d", g, i)
				cmd := Echo(token)
				if err := c.Do(context.Background(), cmd); err != nil {
					t.Errorf("%s: %v", token, err)
					return
				}
				if got, err := cmd.Text(); err != nil || got != token {
					t.Errorf("%s was answered %q, %v", token, got, err)
					return
				}
			}
		})
	}
	return func() (sum int) {
		wg.Wait()
		for _, n := range counts {
			sum += n
		}
		return sum
	}
}

// requireMaybe checks that err leaves open whether the command ran.
func requireMaybe(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, carry.MaybeExecuted, fdengine.FateOf(err), "%v", err)
}

// script answers request i (from 0) on the first connection in a special way, and all others plainly.
func onceAt(token string, a scripted.Action) func(*scripted.ServerConn, scripted.Request) scripted.Action {
	return func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
		if req.Token() == token && req.Attempt == 1 {
			return a
		}
		return scripted.Action{}
	}
}

// codeOf is the code of the server's error in err's chain.
func codeOf(err error) string {
	var se *ServerError
	if errors.As(err, &se) {
		return se.Code
	}
	return ""
}

// verbs are the first words of what connection i was sent, handshake included.
func verbs(s *scripted.Server, i int) string {
	var out []string
	for _, r := range s.Requests(i) {
		out = append(out, r.Verb())
	}
	return strings.Join(out, " ")
}
