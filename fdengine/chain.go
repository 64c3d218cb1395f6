package fdengine

// Callers that one chunk of replies has answered are woken in chains: the reader wakes the first, each wakes the next
// before it returns to its user, and the last one wakes the writer. A reader that wakes them all hands half of them to an
// idle CPU, where they run against each other for one lock, on stacks and commands that are warm in the other CPU's cache:
// on two CPUs that costs more than all the rest. A chain stays where it is as long as each link goes to sleep again soon;
// one that does not is overtaken, because the scheduler gives the next link to an idle CPU after some microseconds.

// chainMax bounds a chain, so that a big chunk wakes several at once.
const chainMax = 64

// chain is the answered calls that have not been woken. It belongs to whoever reads.
type chain struct {
	first, tail *call
	n           int
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
	if c := s.first; c != nil {
		s.chain = chain{}
		c.ready <- struct{}{}
	}
}

// endChain makes the last of the chunk wake the writer, and returns the first, who is to be woken. Under the lock.
func (s *session) endChain() (first *call) {
	if s.tail != nil {
		s.tail.last = s
		s.chained = true
	}
	first = s.first
	s.chain = chain{}
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
	e := s.e
	e.log.Lock()
	s.chained = false
	waits, _ := e.log.Queued()
	wake := waits > 0 && e.parked && e.due() && e.unpark()
	e.log.Unlock()
	if wake {
		e.signal()
	}
}
