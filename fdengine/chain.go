package fdengine

import "sync/atomic"

// Callers that one chunk of replies has answered are woken in chains: the reader wakes the first, each wakes the next
// before it returns to its user, and the last one lets the reader go on, whose turn to write it is (turn.go), or wakes the engine goroutine.
// A reader that wakes them all hands half of them to an idle CPU, where they run against each other for one lock, on stacks and
// commands that are warm in the other CPU's cache: on two CPUs that costs more than all the rest. A chain stays where it is as long as each link goes to sleep again soon;
// one that does not is overtaken, because the scheduler gives the next link to an idle CPU after some microseconds.

// chainMax bounds a chain, so that a big chunk wakes several at once; then nobody waits for them.
const chainMax = 16384

// chainStep is how many callers of a chain make a step, which the sweeper sees.
const chainStep = 64

// waiter is a caller that waits for its outcome.
type waiter struct {
	ready chan struct{} // cap 1
	next  *waiter       // to be woken by this one
	last  *session      // whose chain ends with this one
	step  *session      // that is told when this one has woken the next
}

func newWaiter() waiter { return waiter{ready: make(chan struct{}, 1)} }

// wait returns when the outcome is there.
func (w *waiter) wait() {
	<-w.ready
	w.pass()
}

// chain is the answered callers that have not been woken. It belongs to whoever reads, but for running.
type chain struct {
	first, tail *waiter
	n           int
	running     atomic.Int32  // chains whose last caller has not been woken
	steps       atomic.Uint32 // of long chains
}

// link puts an answered caller at the end of the chain.
func (s *session) link(w *waiter) {
	if s.n == chainMax {
		s.wakeChain()
	}
	if s.first == nil {
		s.first = w
	} else {
		s.tail.next = w
	}
	s.tail = w
	if s.n++; s.n%chainStep == 0 {
		w.step = s
	}
}

// wakeChain wakes the first. No lock is held.
func (s *session) wakeChain() {
	if w := s.endChain(); w != nil {
		w.ready <- struct{}{}
	}
}

// endChain returns the first, who is to be woken; the last one counts the chain out.
func (s *session) endChain() (first *waiter) {
	if first = s.first; first != nil {
		s.tail.last = s
		s.running.Add(1)
		s.first, s.tail, s.n = nil, nil, 0
	}
	return first
}

// pass is called by each caller that a reply has woken, before anything else.
func (w *waiter) pass() {
	if n := w.next; n != nil {
		s := w.step
		w.next, w.step = nil, nil
		n.ready <- struct{}{}
		if s != nil {
			s.steps.Add(1)
		}
		return
	}
	s := w.last
	if s == nil {
		return
	}
	w.last, w.step = nil, nil
	if s.running.Add(-1) > 0 {
		return
	}
	if s.turnAt.Load() != 0 {
		s.giveTurn()
	}
	e := s.e
	e.log.Lock()
	waits, _ := e.log.Queued()
	wake := waits > 0 && e.parked && e.due() && e.unpark()
	e.log.Unlock()
	if wake {
		e.signal()
	}
}
