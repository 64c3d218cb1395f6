package fdengine_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

var bg = context.Background()

// pass lets the fake time d go by and waits until everybody is idle. In a bubble.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// within runs f on a goroutine and fails unless it returns within the fake time d.
func within(t *testing.T, d time.Duration, f func()) {
	t.Helper()
	start := time.Now()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(d):
		buf := make([]byte, 1<<16)
		t.Fatalf("still running after %v\n%s", time.Since(start), buf[:runtime.Stack(buf, true)])
	}
}

// script is a server script by token; tokens that are not in it are executed and answered. It is asked once per
// attempt, with the attempt counting from 1.
type script map[string]func(attempt int) scripted.Action

func (s script) options() scripted.Options {
	return scripted.Options{Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
		if f := s[req.Token()]; f != nil {
			return f(req.Attempt)
		}
		return scripted.Action{}
	}}
}

// always does the same on each attempt, first on the first ones only.
func always(a scripted.Action) func(int) scripted.Action { return first(1<<30, a) }

func first(n int, a scripted.Action) func(int) scripted.Action {
	return func(attempt int) scripted.Action {
		if attempt <= n {
			return a
		}
		return scripted.Action{}
	}
}

// echoes makes n commands with tokens prefix0, prefix1, ...
func echoes(prefix string, n int, class carry.Class) []*scripted.Cmd {
	cs := make([]*scripted.Cmd, n)
	for i := range cs {
		cs[i] = scripted.Echo(prefix + itoa(i))
		cs[i].Traits.Class = class
	}
	return cs
}

func tokens(cs []*scripted.Cmd) []string {
	out := make([]string, len(cs))
	for i, c := range cs {
		out[i] = c.Token
	}
	return out
}

func itoa(i int) string {
	if i >= 10 {
		return itoa(i/10) + itoa(i%10)
	}
	return string(rune('0' + i))
}

// submitAll submits cs in order to s with the ledger o.
func submitAll(t *testing.T, s fdengine.Submitter, o fdengine.Completion, cs ...*scripted.Cmd) {
	t.Helper()
	for _, c := range cs {
		require.NoError(t, s.Submit(bg, c, o))
	}
}

// settledOf returns the outcome of cmd and requires that there is one.
func settledOf(t *testing.T, o *outcomes, cmd fdengine.Command) error {
	t.Helper()
	err, told := o.of(cmd)
	require.True(t, told, "%v has no outcome", cmd)
	o.mu.Lock()
	defer o.mu.Unlock()
	require.Zero(t, o.mu.twice, "an outcome was told twice")
	return err
}

// ok requires that each of cs ended with its own token.
func ok(t *testing.T, o *outcomes, cs ...*scripted.Cmd) {
	t.Helper()
	for _, c := range cs {
		require.NoError(t, settledOf(t, o, c), c.Token)
		require.Equal(t, c.Token, c.Reply)
		require.Equal(t, 1, c.Decodes)
	}
}

// failed requires that cmd ended with an error of the given fate that matches all classes.
func failed(t *testing.T, o *outcomes, cmd fdengine.Command, fate carry.Fate, classes ...error) {
	t.Helper()
	failsAs(t, settledOf(t, o, cmd), fate, classes...)
}

func failsAs(t *testing.T, err error, fate carry.Fate, classes ...error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, fate, fdengine.FateOf(err), "%v", err)
	for _, c := range classes {
		require.ErrorIs(t, err, c)
	}
}

// events is an Observer that keeps what it is told.
type events struct {
	mu struct {
		sync.Mutex
		all     []fdengine.Event
		samples []fdengine.Sample
	}
	then func(fdengine.Event)
}

func (o *events) Observe(ev fdengine.Event) {
	o.mu.Lock()
	o.mu.samples = append(o.mu.samples, ev.Samples...)
	kept := ev
	kept.Samples = nil
	o.mu.all = append(o.mu.all, kept)
	o.mu.Unlock()
	if o.then != nil {
		o.then(ev)
	}
}

func (o *events) samples() []fdengine.Sample {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]fdengine.Sample(nil), o.mu.samples...)
}

func (o *events) of(kind fdengine.EventKind) (out []fdengine.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, ev := range o.mu.all {
		if ev.Kind == kind {
			out = append(out, ev)
		}
	}
	return out
}

// together runs f, which submits, and lets the server handle nothing of it before all of it is on the wire.
func (r *rig) together(f func()) {
	r.t.Helper()
	require.NoError(r.t, r.Ping(bg))
	r.server.FreezeExec(true)
	f()
	synctest.Wait()
	r.server.FreezeExec(false)
}
