package fdengine

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/panics"
	"github.com/fdengine/fullduplex/pool"
)

// run is the engine goroutine: it waits for work, leases a connection, serves it, and starts over.
func (e *Engine) run() {
	if s := e.serving; s != nil {
		// Foreign code ended this goroutine in the middle of a session (start has brought us back). Between two writes
		// the session goes on; in the middle of one nobody knows what left.
		e.log.Lock()
		writing := s.writing && !s.inline && !s.taken
		e.log.Unlock()
		if writing {
			s.unsure(false)
			s.cut(panics.ErrGoexit)
		}
		e.end(s, s.serve())
	}
	e.settleState()
	for e.awaitWork() {
		conn, err := e.lease()
		if err != nil {
			e.leaseFailed(err)
			continue
		}
		proto, err := e.protocol()
		if err != nil {
			e.remove(conn, err)
			e.leaseFailed(err)
			continue
		}
		s := e.open(conn, proto)
		if s == nil {
			break
		}
		e.end(s, s.serve())
	}
	e.endRest()
	e.stopNow()
}

// endRest ends what Close could not: a record that the reader was at work on then, and gave back because its verdict
// panicked. The reader has been joined.
func (e *Engine) endRest() {
	e.log.Lock()
	ends := e.settleAll(func(*carry.Record[entry]) bool { return true })
	e.log.Forget()
	class := e.closedClass()
	e.log.Unlock()
	e.detach(ends, class, nil)
}

// settleState brings a goroutine that was started again to where run begins.
func (e *Engine) settleState() {
	e.log.Lock()
	defer e.log.Unlock()
	if e.state == stateLeasing {
		e.setState(stateBackoff)
	}
	if e.state == stateBackoff {
		e.setState(stateIdle)
	}
}

// awaitWork parks until the log owes something. False: the engine is to end.
func (e *Engine) awaitWork() bool {
	for {
		e.reroute()
		e.log.Lock()
		e.parked = false
		switch {
		case e.state == stateClosed:
			e.log.Unlock()
			return false
		case !e.log.Empty():
			if e.noConn == 0 {
				e.noConn = max(e.stamp(), 1) // 0 would be none
			}
			e.setState(stateLeasing)
			e.log.Unlock()
			return true
		case e.stopping:
			e.setState(stateClosed)
			e.log.Unlock()
			return false
		}
		e.noConn = 0
		e.parked = true
		e.log.Trim()
		e.log.Unlock()
		<-e.wake
	}
}

// lease gets a connection. The leaser is foreign code: it runs apart, so that a Goexit in it is an error too.
func (e *Engine) lease() (conn *pool.Conn, err error) {
	ctx, end := context.WithCancel(e.leaseCtx)
	defer end()
	e.log.Lock()
	e.leaseEnd = end
	if e.stopping && e.log.Empty() {
		end()
	}
	e.log.Unlock()
	err = panics.Isolate("Lease", func() (err error) {
		conn, err = e.opt.Leaser.Lease(ctx)
		return err
	})
	e.log.Lock()
	e.leaseEnd = nil
	e.log.Unlock()
	if err == nil && conn == nil {
		err = errNoConn
	}
	return conn, err
}

var errNoConn = errors.New("fdengine: the leaser returned neither a connection nor an error")

// leaseFailed backs off. An error that will not heal by trying again fails what waits.
func (e *Engine) leaseFailed(err error) {
	l := &e.log
	permanent := pool.IsPermanent(err)
	l.Lock()
	e.count.LeaseErrors++
	e.failures++
	e.lastErr = err
	e.setState(stateBackoff)
	var ends []carry.End[entry]
	if permanent {
		ends = e.settleAll(func(*carry.Record[entry]) bool { return true })
		e.letIn()
	}
	l.Unlock()
	e.conclude(ends, ErrUnavailable, err)
	e.observe(Event{Kind: EventLeaseFailed, Err: err})
	e.say("lease failed", err)
	e.backoff()
}

// protocol makes the framer and judge of the next session. It runs apart like Lease.
func (e *Engine) protocol() (p Protocol, err error) {
	err = panics.Isolate("Protocol", func() error { p = e.opt.Protocol(); return nil })
	if err == nil && p == nil {
		err = errNoProtocol
	}
	return p, err
}

var errNoProtocol = errors.New("fdengine: Options.Protocol returned nil")

// open starts a session on conn; nil when the engine was closed meanwhile.
func (e *Engine) open(conn *pool.Conn, proto Protocol) *session {
	addr, local := "", false
	if err := panics.Isolate("RemoteAddr", func() error { addr, local = addrOf(conn), isLocal(conn); return nil }); err != nil {
		e.caught.Add(1)
	}
	l := &e.log
	l.Lock()
	if !e.setState(stateRunning) {
		l.Unlock()
		e.put(conn)
		return nil
	}
	e.noConn = 0
	s := newSession(e, conn, proto)
	s.addr, s.local = addr, local
	s.from = l.Published()
	e.sess, e.serving = s, s
	e.count.Sessions++
	if s.w > s.r {
		// What the handshake read too much came before anything was written: it answers nothing of ours.
		s.userAt.Store(max(s.started, 1))
		l.Begin(&s.chunk)
		s.inChunk = true
	}
	l.Unlock()
	e.readyOnce.Do(func() { close(e.ready) })
	e.start(s.read)
	e.observe(Event{Kind: EventSessionStart, Addr: s.addr})
	return s
}

// end joins the reader, gives the connection back, and settles what the log owes to it.
func (e *Engine) end(s *session, why reason) {
	if why != reasonCut {
		s.stopReader()
	}
	<-s.readerDone
	l := &e.log
	l.Lock()
	if why != reasonCut && (s.dead || s.w > s.r) {
		why = reasonCut // it died, or said something nobody asked for, while it was being put back
	}
	cause := s.cause
	if cause != nil {
		e.lastErr = cause
	}
	l.Unlock()
	if why == reasonCut || why == reasonRetire {
		if cause == nil {
			cause = errRetired
		}
		_ = s.conn.Abort()
		e.remove(s.conn, cause)
	} else {
		e.put(s.conn)
	}

	patience := e.opt.MaxOutage
	if patience <= 0 {
		patience = defaultOutage // those behind it wait
	}
	var ends []carry.End[entry]
	l.Lock()
	now := e.stamp()
	if e.broken { // nobody knows which of its records are in the span
		s.written, s.assumed = s.span.Size, true
	}
	repeats, left := l.Cut(carry.Death[entry]{Now: now, Last: s.span, Written: s.written, Assumed: s.assumed, Strict: e.opt.StrictOrder,
		Alone: s.alone, Mute: why == reasonCut && s.answers == 0, Torn: int64(patience)}, e.collect(&ends))
	if why == reasonCut {
		e.alone = s.answers == 0 && (left || e.alone)
	}
	e.count.Replays += uint64(repeats)
	l.Settle(func(r *carry.Record[entry]) bool { return !r.Owner.counted() }, carry.WhyAsked, func(carry.End[entry]) {})
	e.sess, e.serving = nil, nil
	switch why {
	case reasonCut:
		e.count.Cuts++
	case reasonRetire:
		e.count.Retired++
	}
	if why == reasonCut && s.good == 0 {
		e.failures++
	}
	if !l.Empty() {
		e.noConn = max(now, 1)
	}
	clean := why != reasonCut && why != reasonRetire
	if clean {
		if e.state == stateRunning {
			e.setState(stateEnding)
		}
		e.setState(stateIdle)
	} else {
		e.setState(stateBackoff)
	}
	bad := e.broken
	e.letIn()
	l.Unlock()

	e.readBuf = s.buf
	e.tellAll(ends, nil, cause)
	if why == reasonCut && e.opt.Rerouter != nil && !bad {
		e.evict(cause)
	}
	// From here on foreign code may end this goroutine; nobody waits for what it keeps us from.
	e.sampleEnds(ends, nil, cause)
	s.report(cause, true)
	if repeats > 0 {
		e.observe(Event{Kind: EventRetried, Commands: repeats})
	}
	e.observe(Event{Kind: EventSessionEnd, Addr: s.addr, Reason: why.String(), Err: cause})
	e.say("session ended: "+why.String(), cause)
	if bad {
		return
	}
	switch why {
	case reasonCut:
		e.backoff()
	case reasonRetire:
		l.Lock()
		e.setState(stateIdle)
		l.Unlock()
	case reasonRecycle:
		if s.span.Commands == 0 { // lent with its mark still set: no reason to ask for it in a circle
			l.Lock()
			e.failures++
			l.Unlock()
			e.backoff()
		}
	}
}

var errRetired = errors.New("fdengine: connection retired")

// backoff sleeps a full-jitter time that grows with the failures in a row. Close ends it, and so does a Shutdown
// that has nothing left to wait for.
func (e *Engine) backoff() {
	e.log.Lock()
	n := e.failures
	e.log.Unlock()
	t := time.NewTimer(jitter(e.opt.BackoffMin, e.opt.BackoffMax, n))
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-e.stop:
		case <-e.wake:
			e.log.Lock()
			over := e.stopping && e.log.Empty()
			e.log.Unlock()
			if !over {
				continue
			}
		}
		break
	}
	e.log.Lock()
	if e.state == stateBackoff {
		e.setState(stateIdle)
	}
	e.log.Unlock()
}

// jitter is a uniform time in [0, min(high, low<<n)].
func jitter(low, high time.Duration, n int) time.Duration {
	d := high
	if n < 30 && low<<n < high {
		d = low << n
	}
	return time.Duration(rand.Int64N(int64(d) + 1))
}

// put and remove end a lease. The leaser and its hooks are foreign code; when they fail the state of the connection
// is unknown, and it is removed.
func (e *Engine) put(c *pool.Conn) {
	if err := panics.Isolate("Put", func() error { e.opt.Leaser.Put(c); return nil }); err != nil {
		e.caught.Add(1)
		e.say("panic while putting a connection back", err)
		_ = c.Abort()
		e.remove(c, err)
	}
}

func (e *Engine) remove(c *pool.Conn, why error) {
	if err := panics.Isolate("Remove", func() error { e.opt.Leaser.Remove(c, why); return nil }); err != nil {
		e.caught.Add(1)
		e.say("panic while removing a connection", err)
	}
}
