package fdengine

import (
	"errors"
	"runtime"
)

// LockIsFree says whether the engine's lock can be had by somebody who is not the caller. Others hold it for moments
// only.
func (e *Engine) LockIsFree() bool {
	for range 2_000_000 {
		if e.log.TryLock() {
			e.log.Unlock()
			return true
		}
		runtime.Gosched()
	}
	return false
}

// FaultHoldingTheLock acts as if the engine's own code had panicked with the lock held.
func (e *Engine) FaultHoldingTheLock() {
	e.log.Lock()
	s := e.sess
	e.fault(s, errors.New("a bug of ours"))
}

// Derail makes the reader fall over its own feet when the foreign code that it runs, and that calls this, returns.
// undecided: before it has an outcome for the command at hand, else behind it.
func (e *Engine) Derail(undecided bool) {
	e.log.Lock()
	s := e.sess
	e.log.Unlock()
	if undecided {
		s.skipped = 1 << 40
	} else {
		s.r = 1 << 40
	}
}

// Vacant says whether the reader stands by: the next lone caller writes and reads for itself.
func (e *Engine) Vacant() bool {
	e.log.Lock()
	defer e.log.Unlock()
	return e.sess != nil && e.sess.vacant
}
