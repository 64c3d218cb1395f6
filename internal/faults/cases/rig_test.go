package cases_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// setup is what a test may change before its rig runs.
type setup struct {
	Server scripted.Options
	Engine fdengine.Options
	Pipe   memnet.Options
	Down   bool                                 // nobody listens until listen is called
	OnDial func(n int, c, s *memnet.Conn) error // n counts from 1
	Accept func(i int, c *memnet.Conn) net.Conn // wraps the server's end of the i-th connection, from 0
	Loose  bool                                 // connections live side by side on purpose: G5 is the test's own
}

// world is a scripted server on a network in memory, and the book of what happens there. It lives in a synctest
// bubble.
type world struct {
	*book
	o      setup
	t      *testing.T
	server *scripted.Server
	others []*scripted.Server // further ones that the book is held against, and that end with the world
	net    *memnet.Network
	served sync.WaitGroup
	mu     struct {
		sync.Mutex
		l     *memnet.Listener
		conns []*memnet.Conn // client ends, in order of the dials
		marks []int64        // bytes each had carried when the next was dialed
	}
}

func newWorld(t *testing.T, o setup) *world {
	w := &world{book: newBook(o.Engine.Budget), o: o, t: t, server: scripted.New(o.Server)}
	w.net = &memnet.Network{Pipe: o.Pipe, OnDial: w.onDial}
	if !o.Down {
		w.listen()
	}
	return w
}

func (w *world) onDial(n int, c, s *memnet.Conn) error {
	if w.o.OnDial != nil {
		if err := w.o.OnDial(n, c, s); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := len(w.mu.conns); i > 0 {
		w.mu.marks = append(w.mu.marks, w.mu.conns[i-1].Out().Accepted())
	}
	w.mu.conns = append(w.mu.conns, c)
	return nil
}

// listen lets dials through.
func (w *world) listen() {
	l, err := w.net.Listen("server")
	require.NoError(w.t, err)
	w.mu.Lock()
	w.mu.l = l
	w.mu.Unlock()
	w.served.Go(func() {
		for i := 0; ; i++ {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			if w.o.Accept != nil {
				nc = w.o.Accept(i, nc.(*memnet.Conn))
			}
			w.server.ServeConn(nc)
		}
	})
}

// down refuses dials and ends all connections.
func (w *world) down() {
	w.mu.Lock()
	l := w.mu.l
	w.mu.Unlock()
	require.NoError(w.t, l.Close())
	w.server.CloseConns()
}

// conn is the client end of the i-th connection, from 0.
func (w *world) conn(i int) *memnet.Conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.conns[i]
}

// last is the client end of the latest connection.
func (w *world) last() *memnet.Conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.conns[len(w.mu.conns)-1]
}

// together lets the server deal with nothing of what f submits before all of it has arrived.
func (w *world) together(f func()) {
	w.server.FreezeExec(true)
	f()
	synctest.Wait()
	w.server.FreezeExec(false)
}

// closed holds G4 and G5, after Done, and ends the world.
func (w *world) closed() {
	t := w.t
	require.Zero(t, w.net.Open(), "G4: sockets are open after Done")
	dials := w.net.Dials()
	pass(time.Minute)
	require.Equal(t, dials, w.net.Dials(), "G4: dialed after Done")
	w.mu.Lock()
	for i, mark := range w.mu.marks {
		if !w.o.Loose {
			require.Equal(t, mark, w.mu.conns[i].Out().Accepted(), "G5: connection %d was used after it was given up", i)
		}
	}
	w.mu.Unlock()
	w.end()
	tally.Scenario(1)
}

// end closes the server's side.
func (w *world) end() {
	w.mu.Lock()
	l := w.mu.l
	w.mu.Unlock()
	if l != nil {
		_ = l.Close()
	}
	w.served.Wait()
	for _, s := range w.servers() {
		_ = s.Close()
	}
}

func (w *world) servers() []*scripted.Server {
	return append([]*scripted.Server{w.server}, w.others...)
}

// rig is an engine in a world.
type rig struct {
	*fdengine.Engine
	*world
	leaser *scripted.Leaser
}

// bubble runs f with a rig in a synctest bubble and then lets the oracles judge.
func bubble(t *testing.T, o setup, f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, o)
		defer func() {
			if t.Failed() { // or the bubble says that it is stuck and not what failed
				_ = r.Close()
				r.leaser.Close()
				r.end()
				select {
				case <-r.Done():
				case <-time.After(time.Minute):
				}
			}
		}()
		f(t, r)
		r.finish()
	})
}

func newRig(t *testing.T, o setup) *rig {
	r := &rig{world: newWorld(t, o)}
	r.leaser = scripted.NewLeaser(func(ctx context.Context) (net.Conn, error) { return r.net.Dial(ctx, "mem", "server") })
	r.Engine = r.engine(o.Engine, r.leaser)
	return r
}

// engine makes an engine of the scripted dialect.
func (w *world) engine(eo fdengine.Options, l *scripted.Leaser) *fdengine.Engine {
	if eo.Protocol == nil {
		eo.Protocol = scripted.NewProtocol
	}
	eo.Leaser = l
	if eo.Ping == nil {
		eo.Ping = scripted.Ping
	}
	e, err := fdengine.New(eo)
	require.NoError(w.t, err)
	return e
}

// finish closes the engine and lets the oracles judge. What is open then must settle by the Close.
func (r *rig) finish() {
	_ = r.Close()
	<-r.Done()
	synctest.Wait()
	require.Zero(r.t, r.open(), "G1: unsettled after Done")
	even(r.t, r.Stats())
	require.NoError(r.t, r.leaser.Check())
	r.judge(r.t, r.servers()...)
	r.leaser.Close()
	r.closed()
}

// run is book.do with the rig's engine as submitter "main".
func (r *rig) run(ctx context.Context, cmd fdengine.Command) error {
	return r.do(ctx, "main", r.Engine, cmd)
}

// submit queues cmds in order as submitter "main".
func (r *rig) submit(cmds ...fdengine.Command) {
	r.t.Helper()
	for _, c := range cmds {
		require.NoError(r.t, r.book.submit(bg, "main", r.Engine, c))
	}
}

// settled waits until everything has settled; it fails at the fake time d.
func (w *world) settled(d time.Duration) {
	w.t.Helper()
	within(w.t, d, w.wait)
}

// within runs f and fails unless it returns within the fake time d.
func within(t *testing.T, d time.Duration, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(d):
		require.FailNow(t, "still running", "after %v", d)
	}
}

// pass lets the fake time d go by and waits until everybody is idle.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// took requires that the fake time since start is at least low and at most high.
func took(t *testing.T, start time.Time, low, high time.Duration) {
	t.Helper()
	d := time.Since(start)
	require.GreaterOrEqual(t, d, low)
	require.LessOrEqual(t, d, high)
}

// script answers by token; tokens that are not in it are executed and answered.
type script map[string]func(c *scripted.ServerConn, req scripted.Request) scripted.Action

func (s script) options() scripted.Options {
	return scripted.Options{Script: func(c *scripted.ServerConn, req scripted.Request) scripted.Action {
		if f := s[req.Token()]; f != nil {
			return f(c, req)
		}
		return scripted.Action{}
	}}
}

// first does a on the first n attempts at a token; always on all.
func first(n int, a scripted.Action) func(*scripted.ServerConn, scripted.Request) scripted.Action {
	return func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
		if req.Attempt <= n {
			return a
		}
		return scripted.Action{}
	}
}

func always(a scripted.Action) func(*scripted.ServerConn, scripted.Request) scripted.Action {
	return first(1<<30, a)
}

// onConn does a on connection i only.
func onConn(i int, a scripted.Action) func(*scripted.ServerConn, scripted.Request) scripted.Action {
	return func(c *scripted.ServerConn, _ scripted.Request) scripted.Action {
		if c.Index() == i {
			return a
		}
		return scripted.Action{}
	}
}

// late executes the request at once and answers it d later, while the connection goes on.
func late(d time.Duration) func(*scripted.ServerConn, scripted.Request) scripted.Action {
	return func(c *scripted.ServerConn, req scripted.Request) scripted.Action {
		time.AfterFunc(d, func() { c.Push(scripted.AppendBulk(nil, req.Token())) })
		return scripted.Action{NoReply: true}
	}
}

// once and again make an ECHO of class NoRetry, and of class Replay with a budget.
func once(token string) *scripted.Cmd { return scripted.Echo(token) }

func again(token string, budget int) *scripted.Cmd {
	c := scripted.Echo(token)
	c.Traits.Class, c.Traits.Budget = carry.Replay, budget
	return c
}
