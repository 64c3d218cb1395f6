package fdengine

import (
	"testing/synctest"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/pool"
)

// HeldUp is a caller in a chain who does not get a CPU.
type HeldUp struct{ w waiter }

// HoldUp puts such a caller into the chain that is being made. To be called from DecodeReply, on the reader.
func (e *Engine) HoldUp() *HeldUp {
	h := &HeldUp{newWaiter()}
	e.sess.link(&h.w)
	return h
}

// Release gives it one: it wakes the next.
func (h *HeldUp) Release() { h.w.wait() }

// ReaderWaits says whether the reader waits for a chain.
func (e *Engine) ReaderWaits() bool {
	e.log.Lock()
	defer e.log.Unlock()
	return e.sess != nil && e.sess.turnAt.Load() != 0
}

// Arrived says whether the socket has something to read, or there is none any more.
func (e *Engine) Arrived() bool {
	e.log.Lock()
	s := e.sess
	e.log.Unlock()
	if s == nil {
		return true
	}
	now, _ := s.conn.Readable()
	return now
}

// turnless is an engine that runs no goroutine, in a session of a connection that leads nowhere.
func turnless() (*Engine, *session) {
	c, _ := memnet.Pipe(memnet.Options{})
	e := &Engine{opt: Options{Window: 8, WindowBytes: 1 << 20}}
	s := &session{e: e, conn: pool.NewConn(c, c, time.Now()), turn: turn{over: make(chan struct{}, 1)}, solo: solo{resume: make(chan struct{}, 1)}}
	e.sess = s
	return e, s
}

// append1 submits a command past all that keeps the engine's limits.
func (e *Engine) append1() {
	var rec carry.Record[entry]
	rec.Owner = entry{nil, &member{}}
	rec.Frames = 1
	e.log.Append(&rec, []byte("x"))
}

// refuse1 sends the only command away, to come back at once.
func (e *Engine) refuse1() {
	l := &e.log
	l.Claim(1, 1<<20, false)
	var c carry.Chunk[entry]
	l.Begin(&c)
	rec := c.Peek()
	rec.Decide()
	l.Refuse(rec, []byte("x"), nil, -1, func(carry.End[entry]) {})
	c.Take()
	l.End(&c)
}

// MayClaim says whether the reader, whose turn it is, takes what waits when the session is as the arrangement of that name
// leaves it.
func MayClaim(name string) bool {
	e, s := turnless()
	e.parked = true
	s.answers = 1
	e.append1()
	if f := arrangements[name]; f != nil {
		f(e, s)
	}
	e.log.Lock()
	defer e.log.Unlock()
	_, ok := s.claimTurn()
	return ok
}

// arrangements in which what waits is for the engine goroutine.
var arrangements = map[string]func(e *Engine, s *session){
	"the engine goroutine is at work":     func(e *Engine, _ *session) { e.parked = false },
	"the connection is dead":              func(_ *Engine, s *session) { s.dead = true },
	"the reader is to stand by":           func(_ *Engine, s *session) { s.standing = true },
	"a lone caller writes":                func(_ *Engine, s *session) { s.inline, s.force = true, true },
	"another span is being written":       func(_ *Engine, s *session) { s.taken, s.force = true, true },
	"the session ends":                    func(_ *Engine, s *session) { s.ending = reasonRecycle },
	"the reader wants the end":            func(_ *Engine, s *session) { s.ask(reasonRetire) },
	"the connection is to be handed off":  func(_ *Engine, s *session) { s.conn.MarkHandoff() },
	"the connection has been held enough": func(e *Engine, s *session) { e.opt.MaxHold = 1; e.stamp() },
	"something is to be rerouted":         func(e *Engine, _ *session) { e.rerouting = []*Carry{nil} },
	"nothing has been answered":           func(_ *Engine, s *session) { s.alone, s.answers = true, 0 },
	"another chain runs":                  func(_ *Engine, s *session) { s.running.Store(1) },
	"the window is full": func(e *Engine, s *session) {
		e.opt.Window = 1
		e.log.Claim(1, 1<<20, false)
		e.append1()
		s.force = true
	},
	"nothing waits": func(e *Engine, _ *session) { e.log.Claim(1, 1<<20, false) },
	"a refused one is due": func(e *Engine, _ *session) {
		e.refuse1()
		e.append1()
	},
}

// Arrangements is their names.
func Arrangements() (names []string) {
	for name := range arrangements {
		names = append(names, name)
	}
	return names
}

// ChainMax is how many callers a chain has at most.
const ChainMax = chainMax

// LinkMany answers n callers with one chunk. began: the chains that run before its end; left: the callers of the last one.
func LinkMany(n int) (began, left int) {
	_, s := turnless()
	for range n {
		w := newWaiter()
		s.link(&w)
	}
	return int(s.running.Load()), s.n
}

// StepChain is a long chain that has come on by some callers.
func (e *Engine) StepChain() { e.sess.steps.Add(1) }

// Look is the sweeper coming by, so long after the reader's wait began; the chain has made a step before or not.
type Look struct {
	After int64
	Step  bool
}

// AwaitTurn is a reader that waits for a chain which does not end; it returns at which look of the sweeper the reader went on, or -1.
func AwaitTurn(began int64, looks ...Look) int {
	_, s := turnless()
	s.running.Store(1)
	on := make(chan struct{})
	go func() { s.awaitTurn(began); close(on) }()
	synctest.Wait()
	for i, look := range looks {
		if look.Step {
			s.steps.Add(1)
		}
		s.relieve(began + look.After)
		synctest.Wait()
		select {
		case <-on:
			return i
		default:
		}
	}
	s.endWait()
	<-on
	return -1
}

// Unsure is how many bytes of a span of one are taken for written after a fault of the engine goroutine, while the reader writes it
// or not.
func Unsure(byReader bool) int {
	e, s := turnless()
	e.append1()
	span, _ := e.log.Claim(1, 1<<20, false)
	s.begin(span, 0)
	s.taken = byReader
	s.unsure(false)
	return s.written
}

// KeptIsTold says whether the end of the reader's write wakes the engine goroutine, kept waiting for it or not.
func KeptIsTold(kept bool) bool {
	e, s := turnless()
	e.wake = make(chan struct{}, 1)
	e.append1()
	span, _ := e.log.Claim(1, 1<<20, false)
	s.begin(span, 0)
	s.taken, s.kept, e.parked = true, kept, true
	s.sent(span, 1, nil)
	return len(e.wake) == 1
}

// faulty is an engine whose next claim meets a fault of our own while the lock is held.
func faulty() (*Engine, *session) {
	e, s := turnless()
	s.answers = 1
	e.append1()
	closed := make(chan struct{})
	close(closed)
	e.room.cmds, e.room.bytes = 1<<20, 1<<20
	e.room.add(&roomWaiter{in: closed})
	return e, s
}

// FaultInTheWriteLoop is the end of a session whose engine goroutine panics with the lock held, and whether the lock is free then.
func FaultInTheWriteLoop() (cut, free bool) {
	e, s := faulty()
	cut = s.serve() == reasonCut && s.dead && s.assumed
	return cut, e.log.TryLock()
}

// FaultInTheReadersTurn is the same for the reader whose turn it is to write.
func FaultInTheReadersTurn() (cut, free bool) {
	e, s := faulty()
	e.parked, s.waited = true, true
	s.takeTurn(0)
	cut = s.dead && s.assumed && !s.taken
	return cut, e.log.TryLock()
}
