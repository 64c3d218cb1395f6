package fdengine

import "sync/atomic"

// Callers that one chunk of replies has answered are woken in chains: the reader wakes the first, each wakes the next
// before it returns to its user, and the last one of the last chain wakes the writer. A reader that wakes them all hands
// half of them to an idle CPU, where they run against each other for one lock, on stacks and commands that are warm in the other CPU's cache:
// on two CPUs that costs more than all the rest. A chain stays where it is as long as each link goes to sleep again soon;
// one that does not is overtaken, because the scheduler gives the next link to an idle CPU after some microseconds.

// The reader does not read on before the last of a chain has been woken. It would find little, since those callers are only
// beginning to ask again, and its thread, waiting in the poller, would draw the next chain to another CPU. The sweeper ends a wait
// that takes a tick.

// chainMax bounds a chain, so that a big chunk wakes several at once; then nobody waits for them.
const chainMax = 1024

// worthWaiting is how many callers make a chain that the reader waits for.
const worthWaiting = 4

// chain is the answered calls that have not been woken. It belongs to whoever reads, but for running.
type chain struct {
	first, tail *call
	n           int
	running     atomic.Int32  // chains whose last call has not been woken
	turn        chan struct{} // cap 1: the reader may go on
	turnAt      atomic.Int64  // since when it waits for that; 0 = it does not
}

// link puts an answered call at the end of the chain.
func (s *session) link(c *call) {
	if s.n == chainMax {
		s.wakeChain()
	}
	if s.first == nil {
		s.first = c
	} else {
		s.tail.next = c
	}
	s.tail = c
	s.n++
}

// wakeChain wakes the first. No lock is held.
func (s *session) wakeChain() {
	if c := s.endChain(); c != nil {
		c.ready <- struct{}{}
	}
}

// awaitTurn is the reader waiting until no chain runs. A token that an earlier wait has left makes it go on at once, which does no
// harm.
func (s *session) awaitTurn(now int64) {
	s.turnAt.Store(max(now, 1))
	if s.running.Load() > 0 {
		<-s.turn
	}
	s.turnAt.Store(0)
}

// giveTurn lets the reader go on.
func (s *session) giveTurn() {
	select {
	case s.turn <- struct{}{}:
	default:
	}
}

// relieve ends the reader's wait for a chain that takes a tick. For the sweeper.
func (s *session) relieve(now int64) {
	if at := s.turnAt.Load(); at != 0 && now-at >= int64(tick) {
		s.giveTurn()
	}
}

// endChain returns the first, who is to be woken; the last one counts the chain out.
func (s *session) endChain() (first *call) {
	if first = s.first; first != nil {
		s.tail.last = s
		s.running.Add(1)
		s.first, s.tail, s.n = nil, nil, 0
	}
	return first
}

// pass is called by each caller that a reply has woken, before anything else.
func (c *call) pass() {
	if n := c.next; n != nil {
		c.next = nil
		n.ready <- struct{}{}
		return
	}
	s := c.last
	if s == nil {
		return
	}
	c.last = nil
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
