// Package fdengine is the engine: one connection at a time, many callers, full duplex, every command accounted
// for. It owns order, bytes and time on that connection. It does not know any protocol (Protocol does), does not
// dial (a pool.Leaser does), does not decide what may be sent again (package carry does) and does not choose
// addresses (package cluster does).
//
// One goroutine per engine (run.go) leases connections and writes; per session a reader (reader.go) walks the
// replies; a sweeper (sweeper.go) looks after time. Submitters encode on their own goroutine and append to the log.
package fdengine

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/panics"
)

// Engine streams the commands of many callers over one connection at a time. All methods are safe for concurrent
// use.
type Engine struct {
	opt  Options
	base time.Time // the clock's zero

	log         carry.Log[entry] // its mutex guards all fields below up to the next comment
	state       state
	room        room
	stopping    bool     // Shutdown or Close was called: nothing new is accepted
	broken      bool     // stopped after an internal fault
	sess        *session // the running one
	parked      bool     // the engine goroutine waits for a signal
	wantAck     bool     // and any progress of the reader is a reason
	sweepParked bool     // the sweeper waits for a kick
	movedBefore uint64   // see isStill; sweeper
	still       int
	leaseEnd    context.CancelFunc // ends the lease that is being waited for
	prune       bool               // a caller left a command that may be away
	nextSettle  int64              // no settle-by time lies before it
	lastErr     error              // why there is no connection
	noConn      int64              // when the engine began to be without a connection; 0 = it has one, or no work
	alone       bool               // the next session sends one record alone
	failures    int                // leases and sessions without a good reply in a row, for the backoff
	rerouting   []*Carry           // refused with Reroute, for the engine goroutine to hand over
	count       Stats              // settled by fate and more; see Stats

	clock    atomic.Int64 // coarse, ns since base
	rejected atomic.Uint64
	standby  atomic.Pointer[session] // its reader stands by; set under the lock
	caught   atomic.Uint64           // panics in foreign code
	moved    atomic.Uint64           // carries another engine adopted

	wake      chan struct{} // cap 1: the engine goroutine
	sweepWake chan struct{} // cap 1: the sweeper
	stop      chan struct{} // closed when the engine goroutine is to end at once
	ready     chan struct{}
	done      chan struct{}
	stopOnce  sync.Once
	readyOnce sync.Once
	doneOnce  sync.Once
	alive     atomic.Int64 // goroutines
	leaseCtx  context.Context
	leaseStop context.CancelFunc

	calls, drafts, parcels, batches, waiters sync.Pool
	soloAfter                                int      // see solo.go; 0 = never
	worthWaiting                             int      // see turn.go
	readBuf                                  []byte   // of the last session, for the next one; engine goroutine
	serving                                  *session // the one the engine goroutine works on, also while it is ending
}

// New starts an engine. It dials nothing before there is work. Options are checked as Validate does.
func New(o Options) (*Engine, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	e := &Engine{
		opt:        o.withDefaults(),
		base:       time.Now(),
		nextSettle: math.MaxInt64,
		wake:       make(chan struct{}, 1),
		sweepWake:  make(chan struct{}, 1),
		stop:       make(chan struct{}),
		ready:      make(chan struct{}),
		done:       make(chan struct{}),
	}
	e.room.cmds = e.opt.Window + e.opt.Queue
	e.room.bytes = e.opt.WindowBytes + e.opt.QueueBytes
	e.calls.New, e.drafts.New, e.parcels.New, e.batches.New = newCall, newDraft, newParcel, newBatch
	e.leaseCtx, e.leaseStop = context.WithCancel(context.Background())
	if e.opt.LoneCaller >= 0 && e.opt.mayGoSolo() {
		e.soloAfter = soloAfter
	}
	e.worthWaiting = worthWaiting
	e.sweepParked = true
	e.start(e.run)
	e.start(e.sweep)
	return e, nil
}

// Ready is closed when the engine has had its first usable connection. The engine dials only when there is work:
// Ping is the way to ask for one.
func (e *Engine) Ready() <-chan struct{} { return e.ready }

// Done is closed when all goroutines of the engine have ended, after Shutdown or Close. Foreign code that blocks
// in a completion delays it.
func (e *Engine) Done() <-chan struct{} { return e.done }

// Ping sends Options.Ping and waits for its reply.
func (e *Engine) Ping(ctx context.Context) error {
	if e.opt.Ping == nil {
		return e.reject(notSent(nil, errNoPing))
	}
	var ping Command
	if err := panics.Catch("Ping", func() error { ping = e.opt.Ping(); return nil }); err != nil {
		return e.reject(notSent(nil, err))
	}
	return e.Do(ctx, ping)
}

// start runs f on a goroutine that Done waits for. When foreign code ends the goroutine by Goexit, f is started
// again: it goes on from the state in its receiver.
func (e *Engine) start(f func()) {
	e.alive.Add(1)
	go func() {
		returned := false
		defer func() {
			if !returned {
				e.start(f)
			}
			e.gone()
		}()
		f()
		returned = true
	}()
}

// gone counts one goroutine out. Done is closed once; what a Carry still owes after that does not open it again.
func (e *Engine) gone() {
	if e.alive.Add(-1) == 0 {
		e.doneOnce.Do(func() { close(e.done) })
	}
}

// stamp reads the clock and shows it to submitters.
func (e *Engine) stamp() int64 {
	now := int64(time.Since(e.base))
	e.clock.Store(now)
	return now
}

// rouse returns the coarse time, having made sure that it moves. Under the lock.
func (e *Engine) rouse() int64 {
	if e.sweepParked {
		e.sweepParked = false
		select {
		case e.sweepWake <- struct{}{}:
		default:
		}
		return e.stamp()
	}
	return e.clock.Load()
}

// unpark says whether the engine goroutine has to be signalled: once per time it waits. Under the lock.
func (e *Engine) unpark() bool {
	if e.parked {
		e.parked, e.wantAck = false, false
		return true
	}
	return false
}

// signal wakes the engine goroutine.
func (e *Engine) signal() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// settled counts one outcome. Under the lock.
func (e *Engine) settled(f carry.Fate) {
	e.count.Settled++
	switch f {
	case carry.Answered:
		e.count.Answered++
	case carry.NotSent:
		e.count.NotSent++
	default:
		e.count.Maybe++
	}
}
