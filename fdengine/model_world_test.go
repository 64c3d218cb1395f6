package fdengine_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/pool"
)

// world is one run of a program: the engine, all around it, and the witnesses.
type world struct {
	*fdengine.Engine
	p      *program
	start  time.Time
	second *fdengine.Engine // nil without rerouteAway
	server *scripted.Server
	net    *memnet.Network
	leaser *scripted.Leaser
	calm   atomic.Bool    // everything is sound from now on
	wg     sync.WaitGroup // callers, and what they start
	shuts  sync.WaitGroup // what completions start: it may be at zero while somebody waits for callers

	mu       sync.Mutex
	records  []*record
	byToken  map[string]*record
	calls    int // submissions, for the engine's books
	wires    []*wire
	loan     *wire
	puts     int
	leases   int
	refusing string
	refused  map[string]int // by token
	samples  int
	denied   int      // claims that the limiter refused
	faults   []string // what the engine logs as its own fault
	bad      []string // violations seen on the way
	lanes    []*lane
	dice     *rand.Rand
	hung     bool
}

func newWorld(p *program) *world {
	w := &world{p: p, start: time.Now(), byToken: map[string]*record{}, refused: map[string]int{}}
	w.dice = rand.New(rand.NewPCG(p.seed, 1))
	w.server = scripted.New(scripted.Options{Script: w.script, OnHandshake: w.handshake})
	w.net = &memnet.Network{OnDial: w.onDial}
	l, err := w.net.Listen("server")
	if err != nil {
		panic(err)
	}
	w.server.Serve(l)
	w.leaser = scripted.NewLeaser(w.dial)
	w.leaser.OnLease = w.onLease
	o := p.opt.Options
	o.Protocol, o.Leaser, o.Ping = w.protocol, w, scripted.Ping
	o.OnPush = func([]byte) { w.may(p.opt.pushFail, "push") }
	o.Logger = slog.New(witness{w})
	if p.opt.limiter > 0 {
		o.Limiter = limit{w}
	}
	if p.opt.observer {
		o.Observer = observe{w}
	}
	switch p.opt.reroute {
	case rerouteNone:
	case rerouteAway:
		o.Rerouter = ferry{w, false}
		other := o
		other.Rerouter = ferry{w, true}
		if w.second, err = fdengine.New(other); err != nil {
			panic(err)
		}
	default:
		o.Rerouter = w
	}
	if w.Engine, err = fdengine.New(o); err != nil {
		panic(err)
	}
	if p.seed%3 == 0 { // after each lone reply the next caller may write and read for itself
		w.SetSoloAfter(1)
		if w.second != nil {
			w.second.SetSoloAfter(1)
		}
	}
	if p.seed%2 == 0 { // the reader waits for each caller it has answered, and writes
		w.SetWorthWaiting(1)
		if w.second != nil {
			w.second.SetWorthWaiting(1)
		}
	}
	return w
}

func (w *world) now() time.Duration { return time.Since(w.start) }

func (w *world) violation(s string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bad = append(w.bad, s)
}

// script does with a request what its command's plan says.
func (w *world) script(_ *scripted.ServerConn, req scripted.Request) (a scripted.Action) {
	w.mu.Lock()
	r := w.byToken[req.Token()]
	line := w.refusing
	w.mu.Unlock()
	if r == nil {
		return a
	}
	if w.calm.Load() {
		line = ""
	} else if n := req.Attempt - 1; n < len(r.plan.acts) {
		act := r.plan.acts[n]
		a = act.Action
		if act.big > 0 {
			a.Reply = scripted.AppendBulk(nil, r.plan.token+":"+strings.Repeat("y", act.big))
		}
	}
	if r.ctx.how == onArrival && r.cancel != nil {
		r.cancel()
	}
	if line != "" {
		a = scripted.Refuse(line)
	}
	if a.Refuse != "" {
		w.mu.Lock()
		w.refused[r.plan.token]++
		w.mu.Unlock()
	}
	a.NoReply = r.plan.shape == noted
	return a
}

func (w *world) handshake(*scripted.ServerConn, scripted.Request) (a scripted.Action) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.calm.Load() {
		a.Refuse = w.refusing
	}
	return a
}

func (w *world) refuseAll(line string, on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refusing = ""; on {
		w.refusing = line
	}
}

// decoded ends the context of a command that wants it from inside its decoder.
func (w *world) decoded(r *record) {
	if r.ctx.how == onDecode && r.cancel != nil {
		r.cancel()
	}
}

func (w *world) onDial(n int, c, s *memnet.Conn) error {
	if w.calm.Load() || n > len(w.p.dials) {
		return nil
	}
	d := w.p.dials[n-1]
	if d.arm != nil {
		d.arm(c, s)
	}
	return d.err
}

func (w *world) dial(ctx context.Context) (net.Conn, error) {
	if w.p.fenced {
		w.server.CloseConns() // whoever dials has no other connection
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	nc, err := w.net.Dial(ctx, "mem", "server")
	if err != nil {
		return nil, err
	}
	c := &wire{Conn: nc.(*memnet.Conn), local: w.p.seed%2 == 0, moved: w.now, at: w.now()}
	c.exact = c.ExactWrite()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wires = append(w.wires, c)
	return c, nil
}

var (
	errLease   = errors.New("no lease today")
	errHandoff = errors.New("handed off")
)

func (w *world) onLease(n int) error {
	if w.calm.Load() {
		return nil
	}
	switch w.p.leases[n] {
	case leaseFails:
		return errLease
	case leasePanics:
		panic("lease")
	case leaseExits:
		runtime.Goexit()
	case leasePermanent:
		return pool.Permanent(errLease)
	}
	return nil
}

// Lease, Put and Remove make world the engine's leaser: it knows which connection is on loan.
func (w *world) Lease(ctx context.Context) (*pool.Conn, error) {
	w.mu.Lock()
	w.leases++
	empty := w.p.leases[w.leases] == leaseEmpty && !w.calm.Load()
	w.mu.Unlock()
	if empty {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	c, err := w.leaser.Lease(ctx)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loan = c.Conn.(*wire)
	w.loan.loans++
	w.loan.conn = c
	return c, nil
}

func (w *world) Put(c *pool.Conn) {
	w.mu.Lock()
	w.puts++
	fail := w.p.putFail[w.puts] && !w.calm.Load()
	if nc := c.Conn.(*wire); !fail {
		w.bad = append(w.bad, nc.clean(w)...)
	}
	w.loan = nil
	w.mu.Unlock()
	switch {
	case fail:
		panic("put")
	case c.ShouldHandoff():
		w.leaser.Remove(c, errHandoff) // moved to somebody else
	default:
		w.leaser.Put(c)
	}
}

func (w *world) Remove(c *pool.Conn, why error) {
	w.mu.Lock()
	w.loan = nil
	w.mu.Unlock()
	w.leaser.Remove(c, why)
}

// poison notes that the connection on loan must not be lent again.
func (w *world) poison() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.loan != nil && w.second == nil {
		w.loan.poisoned = true
	}
}

func (w *world) mark() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.loan != nil {
		w.loan.conn.MarkHandoff()
	}
}

func (w *world) push() {
	w.mu.Lock()
	lent := w.loan != nil && w.second == nil // the leaser's handshake takes a push for its answer
	w.mu.Unlock()
	if n := w.server.Conns(); n > 0 && lent {
		w.server.Conn(n - 1).Push(scripted.PushFrame("a", "b"))
	}
}

// protocol is the dialect, and sees which connection a refusal retires.
func (w *world) protocol() fdengine.Protocol { return &seer{Protocol: new(scripted.Protocol), w: w} }

type seer struct {
	*scripted.Protocol
	w *world
}

func (s *seer) Verdict(frame []byte, maybe bool) fdengine.Verdict {
	v := s.Protocol.Verdict(frame, maybe)
	if v.Conn != fdengine.Keep {
		s.w.poison()
	}
	return v
}

// sound ends all trouble.
func (w *world) sound() {
	w.calm.Store(true)
	w.refuseAll("", false)
	w.server.FreezeReads(false)
	w.server.FreezeExec(false)
	w.server.FreezeReplies(false)
	w.server.RefuseConns(false)
	w.mu.Lock()
	wires := slices.Clone(w.wires)
	w.mu.Unlock()
	for _, c := range wires {
		for _, lane := range []*memnet.Lane{c.In(), c.Out()} {
			lane.Thaw()
			lane.Delay(0)
			lane.Drip(0)
			lane.CutAt(-1, memnet.Cut{})
			lane.ShortWrites(0, nil)
			lane.SetBuffer(0)
		}
	}
}
