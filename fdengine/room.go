package fdengine

import (
	"context"
	"sync/atomic"
)

// room is admission: the limits over everything accepted and not yet done with, and the submitters that wait for
// them in the order they came. Guarded by the log's lock.
type room struct {
	cmds, bytes       int // limits
	heldCmds, heldByt int // reserved for waiters that were let in and have not appended yet
	first, last       *roomWaiter
	tight             atomic.Bool // half of it is taken: the reader says what it has answered before the end of its chunk
}

// roomWaiter is a submitter that found no room. It is let in by a reservation of its whole request.
type roomWaiter struct {
	cmds, bytes int
	in          chan struct{} // cap 1
	err         error
	granted     bool
	next, prev  *roomWaiter
}

// fits says whether n commands of size bytes may enter now. A request larger than the byte limit may enter alone.
func (e *Engine) fits(n, size int) bool {
	cmds, bytes := e.log.Held()
	cmds += e.room.heldCmds
	bytes += e.room.heldByt
	return cmds+n <= e.room.cmds && (bytes+size <= e.room.bytes || cmds == 0)
}

// narrow keeps tight up to date. Under the lock.
func (e *Engine) narrow() {
	cmds, bytes := e.log.Queued()
	flying, flyingBytes := e.log.InFlight()
	cmds, bytes = cmds+flying, bytes+flyingBytes
	if tight := 2*cmds >= e.room.cmds || 2*bytes >= e.room.bytes; tight != e.room.tight.Load() {
		e.room.tight.Store(tight)
	}
}

// letIn is called wherever room came back: it grants waiters their reservations while there is room, in order.
// Under the lock; the channel of a waiter has room for its one signal, so this never blocks.
func (e *Engine) letIn() {
	for w := e.room.first; w != nil && e.fits(w.cmds, w.bytes); w = e.room.first {
		e.room.remove(w)
		w.granted = true
		e.room.heldCmds += w.cmds
		e.room.heldByt += w.bytes
		w.in <- struct{}{}
	}
	if e.stopping && e.log.Empty() { // nothing is owed any more: a Shutdown can end
		if e.leaseEnd != nil {
			e.leaseEnd()
		}
		if e.unpark() {
			e.signal()
		}
	}
}

// turnAway ends all waiting with err, for Close.
func (e *Engine) turnAway(err error) {
	for w := e.room.first; w != nil; w = e.room.first {
		e.room.remove(w)
		w.err = err
		w.in <- struct{}{}
	}
}

func (r *room) add(w *roomWaiter) {
	w.prev = r.last
	if r.last != nil {
		r.last.next = w
	} else {
		r.first = w
	}
	r.last = w
}

func (r *room) remove(w *roomWaiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		r.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		r.last = w.prev
	}
	w.prev, w.next = nil, nil
}

// reserve waits until n commands of size bytes may enter, in the order of the callers. It is called with the lock
// held and returns with it held; a nil error means that the room is reserved and spend must follow.
func (e *Engine) reserve(ctx context.Context, n, size int) error {
	w, _ := e.waiters.Get().(*roomWaiter)
	if w == nil {
		w = &roomWaiter{in: make(chan struct{}, 1)}
	}
	w.cmds, w.bytes, w.granted, w.err = n, size, false, nil
	e.room.add(w)
	e.log.Unlock()
	var cancelled error
	select {
	case <-w.in:
	case <-ctx.Done():
		cancelled = ctx.Err()
	}
	e.log.Lock()
	switch {
	case cancelled == nil:
	case w.granted:
		<-w.in
		e.spend(n, size)
		e.letIn()
	case w.err != nil:
		<-w.in
	default:
		e.room.remove(w)
		e.letIn() // a smaller request behind it may fit
	}
	err := w.err
	if err == nil {
		err = cancelled
	}
	e.waiters.Put(w)
	return err
}

// spend turns a reservation into nothing: it was appended, or given back.
func (e *Engine) spend(n, size int) {
	e.room.heldCmds -= n
	e.room.heldByt -= size
}
