package fdengine_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is one engine on one scripted server over an in-memory network, for use inside a synctest bubble.
type rig struct {
	*fdengine.Engine
	t      *testing.T
	server *scripted.Server
	net    *memnet.Network
	leaser *scripted.Leaser
	mu     struct {
		sync.Mutex
		conns []*memnet.Conn // client ends, in order of the dials
	}
}

// setup is what a test may change before the rig runs.
type setup struct {
	Server  scripted.Options
	Engine  fdengine.Options
	OnDial  func(n int, c, s *memnet.Conn) error
	NoStart bool // the listener refuses until listen is called
	Wrap    func(net.Conn) net.Conn
}

// bubble runs f in a synctest bubble with a rig; at the end the engine must be done, the leaser balanced and the
// books even.
func bubble(t *testing.T, o setup, f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, o)
		defer r.abandon()
		f(t, r)
		r.finish()
	})
}

func newRig(t *testing.T, o setup) *rig {
	r := &rig{t: t, server: scripted.New(o.Server)}
	r.net = &memnet.Network{OnDial: func(n int, c, s *memnet.Conn) error {
		if o.OnDial != nil {
			if err := o.OnDial(n, c, s); err != nil {
				return err
			}
		}
		r.mu.Lock()
		r.mu.conns = append(r.mu.conns, c)
		r.mu.Unlock()
		return nil
	}}
	if !o.NoStart {
		r.listen()
	}
	r.leaser = scripted.NewLeaser(func(ctx context.Context) (net.Conn, error) {
		c, err := r.net.Dial(ctx, "mem", "server")
		if err == nil && o.Wrap != nil {
			c = o.Wrap(c)
		}
		return c, err
	})
	if o.Engine.Protocol == nil {
		o.Engine.Protocol = scripted.NewProtocol
	}
	if o.Engine.Leaser == nil {
		o.Engine.Leaser = r.leaser
	}
	if o.Engine.Ping == nil {
		o.Engine.Ping = scripted.Ping
	}
	e, err := fdengine.New(o.Engine)
	require.NoError(t, err)
	r.Engine = e
	return r
}

// listen lets dials through from now on.
func (r *rig) listen() {
	l, err := r.net.Listen("server")
	require.NoError(r.t, err)
	go r.server.Serve(l)
}

// conn is the client end of the n-th dial, counting from 0.
func (r *rig) conn(n int) *memnet.Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.conns[n]
}

// finish closes everything and checks what must hold after any test: goroutines gone, books even, leases balanced.
func (r *rig) finish() {
	_ = r.Close()
	<-r.Done()
	r.even()
	require.NoError(r.t, r.leaser.Check())
	r.leaser.Close()
	require.NoError(r.t, r.server.Close())
}

// abandon ends what a failed test left running, so that the bubble says what failed and not that it is stuck.
func (r *rig) abandon() {
	if r.t.Failed() {
		_ = r.Close()
		r.leaser.Close()
		_ = r.server.Close()
	}
}

// even checks conservation after quiescence.
func (r *rig) even() {
	s := r.Stats()
	require.Equal(r.t, s.Accepted, s.Settled+s.Moved, "accepted = settled: %+v", s)
	require.Equal(r.t, s.Settled, s.Answered+s.NotSent+s.Maybe)
	require.Zero(r.t, s.QueueCommands+s.QueueBytes+s.InFlightCommands+s.InFlightBytes, "gauges: %+v", s)
}

// outcomes is a Completion that keeps what it is told.
type outcomes struct {
	mu struct {
		sync.Mutex
		errs  map[fdengine.Command]error
		order []fdengine.Command
		twice int
	}
	then func(cmd fdengine.Command, err error) // runs last, if set
}

func (o *outcomes) Complete(cmd fdengine.Command, err error) {
	o.mu.Lock()
	if o.mu.errs == nil {
		o.mu.errs = map[fdengine.Command]error{}
	}
	if _, dup := o.mu.errs[cmd]; dup {
		o.mu.twice++
	}
	o.mu.errs[cmd] = err
	o.mu.order = append(o.mu.order, cmd)
	o.mu.Unlock()
	if o.then != nil {
		o.then(cmd, err)
	}
}

// of returns the outcome of cmd; told is false while there is none.
func (o *outcomes) of(cmd fdengine.Command) (err error, told bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	err, told = o.mu.errs[cmd]
	return err, told
}

func (o *outcomes) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.mu.order)
}
