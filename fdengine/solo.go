package fdengine

import (
	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/panics"
)

// A lone caller, who has one command outstanding at a time and nobody beside it, spends most of its time on waking the
// writer, and on being woken by the reader, on CPUs that had gone to sleep. When the pattern has been seen for a while the reader
// stands by, and the caller writes its request and reads its reply itself, as a synchronous client does. The roles are
// the same and so is the code; only the goroutine is another. Whoever else comes along, and the sweeper when nobody
// does, calls the reader back.
//
// While the reader stands by nobody sees what the server says unasked, and a surplus reply must not be taken for the answer to
// the next lone command. So the caller looks at the socket first, and has the reader's part done before it submits. Where that
// is not possible (TLS, connections that are no sockets) nobody goes solo, unless Options.LoneCaller says that it may.
//
// A caller takes the roles only if nothing but its reply can end its wait: a ctx that can end, or a timeout, would have
// to interrupt its read. And it runs nobody else's code: it stops at the first frame that is not of its own reply, and
// there is no observer or limiter.

// soloAfter is how many chunks in a row must be one reply to a lone caller.
const soloAfter = 8

// solo is guarded by the log's lock but for the last five fields, which belong to whoever reads.
type solo struct {
	streak   int
	vacant   bool          // nobody reads: the reader stands by
	vacantAt int64         // since when; also of an inline write
	inline   bool          // the span is being written by a caller
	helped   bool          // and takes so long that the reader was called back meanwhile
	awaited  bool          // and the reader, at its end, waits for the caller to leave
	resume   chan struct{} // cap 1: the reader is to read again

	maySolo bool // on this connection

	lone     bool // the chunk at hand has answered a caller who may go solo
	standing bool // the reader goroutine has decided to stand by
	byCaller bool // a caller reads
	served   bool // it has read its reply, or must leave the rest to the reader
	lost     bool // it found what ended the session: the bytes that are left are nobody's reply
}

// seize gives the roles to the caller whose record, the only one there is, was just appended, and claims it. False: the
// record goes the usual way. Under the lock.
func (e *Engine) seize(r *carry.Record[entry]) (s *session, ok bool) {
	s = e.sess
	if s == nil || !s.vacant || !e.parked || s.dead || s.taken || e.stopping || s.ending != reasonNone || s.endNext != reasonNone ||
		len(e.rerouting) > 0 || r.SettleBy != 0 || r.Frames == 0 || r.Stream != nil || s.conn.ShouldHandoff() {
		return nil, false
	}
	waits, _ := e.log.Queued()
	if inFlight, _ := e.log.InFlight(); waits != 1 || inFlight != 0 {
		return nil, false
	}
	span, ok := e.log.Claim(1, e.opt.WindowBytes, false)
	if !ok {
		return nil, false
	}
	s.inline, s.vacantAt = true, e.clock.Load()
	s.setVacant(false)
	s.begin(span, 0)
	return s, true
}

// setVacant says whether the reader stands by. Under the lock.
func (s *session) setVacant(is bool) {
	s.vacant = is
	if is {
		s.e.standby.Store(s)
	} else {
		s.e.standby.Store(nil)
	}
}

// lookFirst is called by a caller who may go solo, before it submits: what the server said while nobody read is read
// first, because it answers nothing that is yet to be sent.
func (e *Engine) lookFirst() {
	s := e.standby.Load()
	if s == nil {
		return
	}
	if now, _ := s.conn.Readable(); !now {
		return
	}
	e.log.Lock()
	mine := s.vacant && e.sess == s && !s.dead
	if mine {
		s.setVacant(false)
		s.byCaller, s.served = true, false
	}
	e.log.Unlock()
	if mine {
		defer s.handBack()
		s.step()
	}
}

// goSolo writes the caller's request and reads until the reply to it has come, or the connection has failed; then the
// record goes the usual way, as it does when the reader was called back during the write. The caller finds its outcome where
// it always does.
func (s *session) goSolo() {
	defer s.handBack()
	err := panics.Catch("writer", func() error { s.send(s.span, 0); return nil })
	if err != nil {
		s.e.recoverLock()
		s.unsure(true)
		s.e.fault(s, err)
		return
	}
	for s.byCaller && !s.served && s.step() {
	}
}

// handBack ends the work of a lone caller. The reader is called back if there is anything to do; also by a caller whose
// goroutine foreign code ends. Once it has the roles the session may end and its connection be lent to others: what is
// to be said about a write that did not return is said before.
func (s *session) handBack() {
	e, l := s.e, &s.e.log
	if s.byCaller { // else the reader may be looking at it
		s.byCaller = false
	}
	l.Lock()
	cut := false
	if s.inline {
		s.inline, s.written, s.assumed = false, s.span.Size, true
		if cut = s.cutLocked(panics.ErrGoexit); cut {
			e.caught.Add(1)
		}
	}
	waits, _ := l.Queued()
	inFlight, _ := l.InFlight()
	switch {
	case s.helped:
		s.helped = false
		if s.awaited {
			s.resume <- struct{}{}
		}
	case s.inChunk || s.w > s.r || waits > 0 || inFlight > 0 || s.dead || s.ending != reasonNone || s.stopping.Load():
		s.callReader()
	default:
		s.setVacant(true)
		s.vacantAt = e.rouse() // the sweeper is to look after it
	}
	l.Unlock()
	if cut {
		_ = s.conn.Abort()
		e.signal()
	}
}

// readerEnds is the reader's last deed. The session is not over for others while a lone caller still writes.
func (s *session) readerEnds() {
	l := &s.e.log
	l.Lock()
	s.awaited = s.helped
	l.Unlock()
	if s.awaited {
		<-s.resume
	}
	close(s.readerDone)
}

// callReader makes the reader goroutine read again. Under the lock; only when it stands by or is about to, and once.
func (s *session) callReader() {
	s.setVacant(false)
	s.streak = 0
	s.resume <- struct{}{}
}

// recall is callReader if nobody reads.
func (s *session) recall() {
	if s.vacant {
		s.callReader()
	}
}

// attend calls the reader back when nobody has read for a tick. That may be because a lone caller is held up in its
// write: the server may be waiting for somebody to read. Under the lock.
func (s *session) attend(now int64) {
	if now-s.vacantAt < int64(tick) {
		return
	}
	s.recall()
	if s.inline && !s.helped {
		s.helped = true
		s.callReader()
	}
}

// watch looks for the pattern at the end of a chunk with so many replies, and decides whether the reader stands by. Under the
// lock.
func (s *session) watch(replies uint64, now int64) {
	e := s.e
	lone := s.lone && replies == 1
	s.lone = false
	if s.byCaller || s.helped || replies == 0 || !s.maySolo {
		return
	}
	waits, _ := e.log.Queued()
	inFlight, _ := e.log.InFlight()
	if !lone || waits > 0 || inFlight > 0 || s.w > s.r {
		s.streak = 0
		return
	}
	if s.streak++; s.streak >= e.soloAfter && !s.dead && !e.stopping && s.ending == reasonNone && !s.stopping.Load() {
		s.setVacant(true)
		s.vacantAt, s.standing = now, true
		e.rouse() // the sweeper is to look after it
	}
}

// mayGoSolo says whether callers of this engine may ever go solo.
func (o *Options) mayGoSolo() bool { return o.Observer == nil && o.Limiter == nil && o.MaxHold <= 0 }
