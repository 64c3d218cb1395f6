package fdengine

import (
	"math"
	"slices"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/panics"
)

const (
	tick       = 5 * time.Millisecond  // of the sweeper while something is owed: the precision of all its times
	stillTick  = 50 * time.Millisecond // while something is owed and nothing has moved for stillAfter ticks
	stillAfter = 20
	idleTick   = time.Second           // at most, while a connection is held and nothing is owed; after that recycled memory is let go
	scanEvery  = 20 * time.Millisecond // between looks at all records during an outage
	lookParts  = 4                     // of ReadTimeout is how late it may be known that a command has left
	stuckTell  = time.Second           // foreign code that keeps the reader this long is reported
)

// sweep is the goroutine that looks after time: settle-by times, outages, late replies and writes, idle
// connections. It sleeps while the engine has nothing to look after.
func (e *Engine) sweep() {
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	var lastScan int64
	for {
		wait := e.sweepOnce(&lastScan)
		t.Reset(wait)
		select {
		case <-t.C:
		case <-e.sweepWake:
		case <-e.stop:
			return
		}
	}
}

// sweepOnce does what is due and says how long to sleep.
func (e *Engine) sweepOnce(lastScan *int64) time.Duration {
	l := &e.log
	now := e.stamp()
	var cut, why error
	var poke, stuck int64
	var whyPoke poking
	var ping, lower bool
	var expired, outage []carry.End[entry]

	l.Lock()
	if now >= e.nextSettle || l.Untold() > 0 || e.prune && l.Waiting() > 0 {
		l.Settle(func(r *carry.Record[entry]) bool { return r.SettleBy != 0 && r.SettleBy <= now },
			carry.WhyExpired, e.collect(&expired))
		e.nextSettle = math.MaxInt64
		l.Pending(func(r *carry.Record[entry], _ bool) bool {
			if r.SettleBy != 0 && r.SettleBy < e.nextSettle {
				e.nextSettle = r.SettleBy
			}
			return true
		})
	}
	if max := int64(e.opt.MaxOutage); max > 0 && e.noConn != 0 && now-e.noConn >= max && now-*lastScan >= int64(scanEvery) {
		*lastScan = now
		why = e.lastErr
		outage = e.settleAll(func(r *carry.Record[entry]) bool { return r.Start <= now-max })
	}
	e.letIn() // also for room that the caller of a command adopted from another engine gave back by leaving
	e.prune = false
	l.Ease(now)
	wake := false
	if due, ok := l.NextDue(); ok && due <= now {
		wake = e.unpark()
	}
	s := e.sess
	if s != nil && !s.dead {
		s.relieve(now)
		if s.overdue() {
			wake = e.unpark() || wake
		}
		s.attend(now)
		lower = s.dried(now)
		cut, poke, whyPoke = s.late(now)
		if e.opt.CutOnCancel && slices.ContainsFunc(expired, func(x carry.End[entry]) bool { return x.Fate != carry.NotSent }) {
			cut = errLeft // the server may hold its reply for long yet
		}
		if cut == nil {
			ping = s.idle(now)
			wake = (s.endNext != reasonNone || s.conn.ShouldHandoff()) && e.unpark() || wake
		}
		if at := s.userAt.Load(); at != 0 && now-at > int64(stuckTell) && !s.stuck {
			s.stuck = true
			stuck = now - at
		}
	}
	wait := tick
	if l.Empty() && !ping {
		wait = time.Hour
		e.sweepParked = s == nil
		switch {
		case s == nil:
		case s.turnAt.Load() != 0:
			wait = tick // the reader waits for a chain
		case s.vacant:
			wait = tick // soon somebody must read again, to see what the server does unasked
		default:
			if now-s.active >= int64(idleTick) {
				l.Shed()
			}
			wait = e.idleWait()
			e.sweepParked = true
		}
	} else if s != nil && !ping && e.isStill() {
		wait = e.stillWait(now)
		e.sweepParked = wait > tick // who submits meanwhile wakes the sweeper, and so moves the clock
	}
	l.Unlock()

	if wake {
		e.signal()
	}
	if lower {
		s.tellLow()
	}
	if cut != nil {
		s.cut(cut)
	}
	if whyPoke != pokeNone {
		s.pokeWrite(poke, whyPoke)
	}
	if ping {
		e.sendPing(s)
	}
	e.detach(expired, nil, nil)
	e.detach(outage, ErrUnavailable, why)
	if stuck != 0 {
		e.observe(Event{Kind: EventStuck, Took: time.Duration(stuck), Addr: s.addr})
	}
	return wait
}

// isStill says whether nothing has been submitted, written or answered for a while: a consumer blocked in a pop, a
// slow command. Then the sweeper need not look 200 times a second. Under the lock.
func (e *Engine) isStill() bool {
	moved := e.count.Accepted + e.count.Writes + e.count.Reads
	if moved != e.movedBefore {
		e.movedBefore, e.still = moved, 0
		return false
	}
	e.still++
	return e.still > stillAfter
}

// stillWait is how long to sleep then, without being late for what is known to become due. Under the lock.
func (e *Engine) stillWait(now int64) time.Duration {
	wait := stillTick
	for _, limit := range [2]time.Duration{e.opt.ReadTimeout, e.opt.WriteTimeout} {
		if limit > 0 {
			wait = min(wait, limit/8)
		}
	}
	if due, ok := e.log.NextDue(); ok {
		wait = min(wait, time.Duration(due-now))
	}
	wait = min(wait, time.Duration(e.nextSettle-now))
	return max(wait, tick)
}

// idleWait is how long nothing can become due on an idle connection.
func (e *Engine) idleWait() time.Duration {
	wait := idleTick
	if e.opt.PingEvery > 0 {
		wait = min(wait, max(e.opt.PingEvery/4, tick))
	}
	return wait
}

// late looks at the two clocks of a session. A reply is late when ReadTimeout has passed since the oldest
// unanswered command was accepted or the last reply came, whichever is later; later writes are no progress, and the
// time the reader spends in foreign code, or waiting for a chain, is not the peer's. A write is late when WriteTimeout has passed for one
// piece: then its deadline is pulled (poke) to see whether a byte was accepted meanwhile, and likewise from time to time to see whether
// the oldest command has left, whose reply is due from then on. Under the lock.
func (s *session) late(now int64) (cut error, poke int64, why poking) {
	e := s.e
	inFlight, _ := e.log.InFlight()
	busy := s.userAt.Load() != 0 || s.turnAt.Load() != 0
	rt, writeAt := int64(e.opt.ReadTimeout), s.writeAt.Load()
	leaving := rt > 0 && s.writing && e.log.Reaches(s.span) && !e.log.Left(&s.span, s.passed)
	if rt > 0 && inFlight > 0 && !busy && now-s.base > rt && !leaving {
		block := e.log.Blocks()
		if block != carry.BlockForever && now-s.base > rt+int64(block)*int64(time.Millisecond) {
			return errReadTimeout, 0, pokeNone
		}
	}
	if s.ending != reasonNone && e.opt.ReadTimeout == 0 && now-s.endAt > int64(drainBound) && !busy {
		return errDrainTimeout, 0, pokeNone
	}
	if writeAt <= 0 || busy {
		return nil, 0, pokeNone
	}
	if wt := int64(e.opt.WriteTimeout); wt > 0 && now-writeAt > wt {
		return nil, writeAt, pokeLate
	}
	if leaving && now-max(writeAt, s.lookedAt) >= rt/lookParts && s.conn.ExactWrite() {
		s.lookedAt = now
		return nil, writeAt, pokeLook
	}
	return nil, 0, pokeNone
}

// idle asks for the end of a connection that has had nothing to do for IdleRelease, and says whether it is time for
// a ping. Under the lock.
func (s *session) idle(now int64) (ping bool) {
	e := s.e
	if !e.log.Empty() || s.ending != reasonNone || e.stopping {
		return false
	}
	if every := int64(e.opt.IdleRelease); every > 0 && now-s.useful >= every {
		s.ask(reasonIdle)
		return false
	}
	return e.opt.PingEvery > 0 && e.opt.Ping != nil && now-s.active >= int64(e.opt.PingEvery)
}

// sendPing puts a ping of our own into an empty log. It belongs to this session: it is never sent again, and no
// connection is dialed for it.
func (e *Engine) sendPing(s *session) {
	var rec carry.Record[entry]
	var enc []byte
	err := panics.Isolate("Ping", func() (err error) {
		cmd := e.opt.Ping()
		rec.Owner = entry{cmd, thePinger}
		rec.Frames = 1
		enc, err = cmd.AppendRequest(nil)
		return err
	})
	if err != nil || len(enc) == 0 {
		e.caught.Add(1)
		e.say("no ping", err)
		e.log.Lock()
		s.active = e.stamp() // not again before its time
		e.log.Unlock()
		return
	}
	l := &e.log
	l.Lock()
	if e.sess != s || s.dead || s.ending != reasonNone || !l.Empty() {
		l.Unlock()
		return
	}
	rec.Start = e.stamp()
	s.pinging = true
	l.Append(&rec, enc)
	wake := e.unpark()
	l.Unlock()
	if wake {
		e.signal()
	}
}
