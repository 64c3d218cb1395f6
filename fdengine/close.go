package fdengine

import (
	"context"
	"errors"
	"time"

	"github.com/fdengine/fullduplex/carry"
)

var errNoPing = errors.New("fdengine: Options.Ping is not set")

// Report says how the commands that were unsettled when Shutdown began ended.
type Report struct {
	Answered      int // with the server's reply, or sent when none was expected
	NotSent       int
	MaybeExecuted int
}

// Shutdown accepts nothing more, writes and drains what was accepted, over new connections if need be, until all
// of it is settled or ctx ends; then it settles the rest with ErrClosed by its fate. It needs no room in the queue
// and works with a silent, dead or full peer; calls may be repeated and concurrent. The error is ctx's when it cut
// the drain short. A completion that blocks delays it until ctx ends, no longer; when ctx did end, completions may run
// until Done.
func (e *Engine) Shutdown(ctx context.Context) (Report, error) {
	l := &e.log
	l.Lock()
	before := e.count
	e.stopping = true
	e.turnAway(ErrClosed)
	e.letIn()
	e.unpark()
	l.Unlock()
	e.signal()
	var err error
	select {
	case <-e.done:
	case <-ctx.Done():
		select {
		case <-e.done:
		default:
			err = ctx.Err()
			_ = e.Close()
		}
	}
	e.quiet()
	l.Lock()
	now := e.count
	l.Unlock()
	return Report{
		Answered:      int(now.Answered - before.Answered),
		NotSent:       int(now.NotSent - before.NotSent),
		MaybeExecuted: int(now.Maybe - before.Maybe),
	}, err
}

// Close ends the engine at once: the connection is cut, everything unsettled ends with ErrClosed by its fate. It
// never waits for foreign code or the peer; Done tells when the goroutines are gone. Repeated calls are harmless.
// The error is always nil; it is there for io.Closer.
func (e *Engine) Close() error {
	e.shut(ErrClosed, nil)
	return nil
}

// shut is the final stop. class and cause are what the rest ends with.
func (e *Engine) shut(class, cause error) {
	e.alive.Add(1) // Done comes after the outcomes that are told below
	defer e.gone()
	l := &e.log
	l.Lock()
	if e.state == stateClosed && e.stopping {
		l.Unlock()
		e.stopNow()
		return
	}
	e.stopping = true
	e.setState(stateClosed)
	e.turnAway(class)
	ends := e.settleAll(func(*carry.Record[entry]) bool { return true })
	l.Forget()
	carries := e.rerouting
	e.rerouting = nil
	s := e.sess
	abort := s != nil && s.cutLocked(class)
	e.unpark()
	l.Unlock()
	if abort {
		_ = s.conn.Abort()
	}
	e.stopNow()
	e.signal()
	e.detach(ends, class, cause)
	for _, c := range carries {
		c.end(class, cause)
	}
}

// stopNow wakes everything that sleeps.
func (e *Engine) stopNow() {
	e.stopOnce.Do(func() {
		e.leaseStop()
		close(e.stop)
	})
}

// closedClass is what submissions get after the end.
func (e *Engine) closedClass() error {
	if e.broken {
		return ErrBroken
	}
	return ErrClosed
}

// fault handles a panic of our own code: the session is cut, and if the log is not consistent any more the engine
// stops for good and settles everything by its maybe bit.
func (e *Engine) fault(s *session, err error) {
	e.caught.Add(1)
	e.say("internal fault", err)
	l := &e.log
	e.recoverLock()
	s.cut(err)
	l.Lock()
	bad := l.Check()
	if bad != nil {
		e.broken = true
	}
	l.Unlock()
	if bad != nil {
		e.shut(ErrBroken, errors.Join(err, bad))
	}
}

// recoverLock makes sure that the panic of our own code that brought us here does not hold the log's lock. The lock
// is never held over anything that blocks: when it cannot be had for a second, the goroutine that panicked has it.
func (e *Engine) recoverLock() {
	for range 1000 {
		if e.log.TryLock() {
			e.log.Unlock()
			return
		}
		time.Sleep(time.Millisecond)
	}
	e.log.Unlock()
}

// quiet waits, for a bounded time, until the reader is between chunks, so that the counts include all that callers
// have been told.
func (e *Engine) quiet() {
	for range 1000 {
		e.log.Lock()
		busy := e.log.Reading()
		e.log.Unlock()
		if !busy {
			return
		}
		time.Sleep(10 * time.Microsecond)
	}
}
