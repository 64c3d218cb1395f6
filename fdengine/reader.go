package fdengine

import (
	"errors"
	"fmt"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/panics"
)

const (
	readBuffer = 64 << 10
	readKeep   = 256 << 10 // a buffer that grew beyond this for a big reply is let go after it
)

// stage is what the reader is doing, so that a panic or Goexit is charged to the right border.
type stage uint8

const (
	stageOwn stage = iota
	stageNext
	stageVerdict
	stageDecode
	stageComplete
	stagePush
	stageObserver
	stageLimiter
)

var stageNames = [...]string{"reader", "Next", "Verdict", "DecodeReply", "Complete", "OnPush", "Observer", "Limiter"}

// readState is what the reader keeps between reads, and between goroutines when a Goexit ended one.
type readState struct {
	buf     []byte
	r, w    int  // unread bytes
	need    int  // bytes from r that are known to be needed
	early   bool // the frame at r began to arrive when nothing was in flight: it can only be a push
	chunk   carry.Chunk[entry]
	inChunk bool
	stage   stage
	fell    *panics.Error // what ended the previous goroutine
	sends   int           // of the record whose reply is at hand, this one included
	maybe   bool          // an earlier one may have run
	gap     bool          // the reply is a refusal that was to go again and may not
	doom    error         // what the session ends with after the outcome at hand was told

	// The frames of the oldest record so far; offsets from r.
	frames, have      int // how many, and their bytes
	skipped           int // bytes of those that are not for the command
	refuseAt, refuseN int // the first refused one; refuseN = 0: none

	fates   [3]uint64 // settled in this chunk
	replies uint64
	ponged  bool                 // one of them was the idle ping's
	fine    uint64               // of them, no refusals
	ghost   bool                 // the verdict at hand is about a ghost's reply
	push    int                  // length of the push frame at hand
	flow    *carry.Stream[entry] // of the command being told
	samples []Sample
	lot     *batch // whose outcomes were told last, or
	group   *Group // whose, and
	lotN    int    // how many it does not know of yet
}

// load puts bytes that the handshake read too much into the buffer.
func (s *session) load(extra []byte) int {
	if len(extra) > len(s.buf) {
		s.buf = make([]byte, len(extra)+readBuffer)
	}
	return copy(s.buf, extra)
}

// read is the reader goroutine: always parked on the socket, also while the connection is idle or the writer is
// blocked. It ends when the connection is dead, or asked to leave it in peace.
func (s *session) read() {
	if s.cutFlag.Load() && !s.inChunk { // Goexit in an observer, after the end
		s.readerEnds()
		return
	}
	if s.inChunk || s.w > s.r {
		if !s.process() {
			s.readerEnds()
			return
		}
	}
	for {
		if s.standing { // see solo.go
			<-s.resume
			s.standing = false
			if s.lost || (s.inChunk || s.w > s.r) && !s.process() {
				break
			}
		} else if !s.step() {
			break
		}
	}
	s.readerEnds()
}

// step reads once and processes what came. False: the session is over for the reader.
func (s *session) step() bool {
	s.makeRoom()
	n, timeout, err := s.receive()
	if n > 0 {
		s.w += n
		if !s.process() {
			return false
		}
	}
	if err != nil {
		if !s.stopping.Load() || s.w > s.r || !timeout {
			s.cut(err)
		}
		return false
	}
	return true
}

// receive is conn.Read behind a border: the connection, and its errors, may be anybody's. One that ends the goroutine may
// have taken bytes that nobody will see: then the connection is cut.
func (s *session) receive() (n int, timeout bool, err error) {
	exit := func(p *panics.Error) {
		s.e.caught.Add(1)
		s.cut(p)
	}
	perr := panics.Guard("conn.Read", exit, func() error {
		n, err = s.conn.Read(s.buf[s.w:])
		timeout = err != nil && isTimeout(err)
		return nil
	})
	if perr != nil {
		s.e.caught.Add(1)
		return 0, false, perr
	}
	return n, timeout, err
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// makeRoom leaves space to read into. The buffer grows with what arrives, not with what is announced.
func (s *session) makeRoom() {
	switch {
	case s.r == s.w:
		s.r, s.w = 0, 0
		if len(s.buf) > readKeep {
			s.buf = make([]byte, readBuffer)
		}
	case s.r > 0 && len(s.buf)-s.w < readBuffer/4:
		s.w = copy(s.buf, s.buf[s.r:s.w])
		s.r = 0
	}
	if s.w == len(s.buf) {
		bigger := make([]byte, 2*len(s.buf))
		s.w = copy(bigger, s.buf[s.r:s.w])
		s.buf, s.r = bigger, 0
	}
}

// process walks the frames that have arrived. False: the session is over for the reader.
func (s *session) process() bool {
	e, l := s.e, &s.e.log
	if !s.inChunk {
		s.userAt.Store(max(e.stamp(), 1))
		l.Lock()
		l.Begin(&s.chunk)
		l.Unlock()
		s.inChunk = true
	}
	var err error
	for {
		err = panics.Guard("reader", func(p *panics.Error) { s.fell = p }, s.walk)
		if s.stage == stageOwn {
			break
		}
		s.fell = asPanic(err) // only Guard leaves a foreign stage behind
	}
	own := asPanic(err)
	if own != nil && own.Boundary == stageNames[stageOwn] {
		e.recoverLock()
		s.giveBack()
	} else {
		own = nil
	}
	s.tellLot()
	now := e.stamp()
	busy := now - s.userAt.Load()
	var cut bool
	l.Lock()
	l.End(&s.chunk)
	s.inChunk, s.loose, s.tardy = false, false, false
	s.base = min(s.base+busy, now) // what foreign code took is not the peer's time; nor is it for the write:
	if at := s.writeAt.Load(); at > 0 && busy > int64(tick) {
		s.writeAt.CompareAndSwap(at, now+1)
	}
	wait := e.worthWaiting <= s.n && s.running.Load() == 0
	first := s.endChain()
	s.waited = wait && s.mayTake && err == nil && !s.dead
	s.userAt.Store(0)
	s.watch(s.replies, now) // from here on a lone caller may have the reader's part of s
	lower := s.trickling(now)
	wake := s.account(now)
	if err != nil {
		cut = s.cutLocked(err)
	}
	dead := s.dead
	l.Unlock()
	if first != nil {
		first.ready <- struct{}{}
	}
	if lower {
		s.tellLow()
	}
	switch {
	case cut:
		_ = s.conn.Abort()
		e.signal()
	case wake:
		e.signal()
	}
	if own != nil {
		e.fault(s, own)
	}
	s.flushSamples()
	s.report(nil, false)
	if err != nil && s.byCaller { // else nobody reads on
		s.lost = true
	}
	if wait {
		s.awaitTurn(now)
		s.takeTurn(now)
	}
	return err == nil && !dead
}

// asPanic returns err if a border of ours made it. It does not look into foreign errors, whose methods may panic.
func asPanic(err error) *panics.Error {
	p, _ := err.(*panics.Error)
	return p
}

// account adds what the chunk settled to the books. It says whether to wake the engine goroutine. Under the lock.
func (s *session) account(now int64) (wake bool) {
	e := s.e
	e.count.Reads++
	e.count.Replies += s.replies
	for f, n := range s.fates {
		e.count.Settled += n
		switch carry.Fate(f) {
		case carry.Answered:
			e.count.Answered += n
		case carry.NotSent:
			e.count.NotSent += n
		default:
			e.count.Maybe += n
		}
	}
	if s.replies > 0 {
		s.base, s.active = now, now
		if !s.ponged || s.replies > 1 {
			s.useful = now
		}
		s.answers += s.replies
		e.alone = false
	}
	if s.fine > 0 {
		s.good += s.fine
		e.failures = 0
	}
	if s.ponged {
		s.ponged, s.pinging = false, false
	}
	s.fates, s.replies, s.fine = [3]uint64{}, 0, 0
	e.narrow()
	e.letIn()
	s.probed(e.log.Acked(), now)
	waits, _ := e.log.Queued()
	return e.parked && (waits > 0 && e.due() || e.wantAck && waits == 0 || s.endNext != reasonNone) && e.unpark()
}

// walk takes frames off the buffer until it needs more bytes, or the stream is lost. It runs inside one Guard for
// the whole chunk; stage says where it is.
func (s *session) walk() error {
	if fell := s.fell; fell != nil {
		s.fell = nil
		if err := s.fault(fell); err != nil { // inside the Guard: what it costs may be told to foreign code
			return err
		}
		if s.byCaller { // it was its only reply
			s.served = true
			return nil
		}
	}
	if s.doom != nil {
		return s.doom
	}
	for {
		rest := s.buf[s.r+s.have : s.w]
		if len(rest) == 0 {
			return nil
		}
		s.stage = stageNext
		n, need, kind, err := s.proto.Next(rest)
		s.stage = stageOwn
		switch {
		case err != nil:
			return &FramingError{err}
		case kind == KindPush && max(n, need) > s.e.opt.MaxReply: // it is nobody's answer
			return &FramingError{fmt.Errorf("push of at least %d bytes, limit %d", max(n, need), s.e.opt.MaxReply)}
		case kind != KindPush && (n == 0 && s.have+need > s.e.opt.MaxReply || s.have+n > s.e.opt.MaxReply):
			return s.tooLarge(s.have + max(n, need))
		case n == 0:
			s.need = s.have + need
			s.early = s.early || s.have == 0 && s.chunk.Peek() == nil
			return nil
		case n < 0 || n > len(rest):
			return &FramingError{fmt.Errorf("the protocol took %d of %d bytes", n, len(rest))}
		case s.byCaller && kind == KindPush: // for somebody else to run
			s.served = true
			return nil
		case kind == KindPush:
			s.early = false
			s.pushed(rest[:n])
			continue
		}
		if s.early {
			return errSurplus
		}
		rec := s.head()
		if rec == nil {
			return errSurplus
		}
		if kind == KindRefusal && s.refuseN == 0 {
			s.refuseAt, s.refuseN = s.have, n
		}
		s.frames++
		s.have += n
		if s.frames == int(rec.Skip) {
			s.skipped = s.have
		}
		if s.frames < int(rec.Frames) {
			continue
		}
		if err := s.answer(rec); err != nil {
			return err
		}
		if s.byCaller { // its only reply
			s.served = true
			return nil
		}
	}
}

// head returns the record that the next reply belongs to. A reply for it proves that those before it which expect
// none have been sent.
func (s *session) head() *carry.Record[entry] {
	for {
		rec := s.chunk.Peek()
		if rec == nil || !rec.NoReply() {
			return rec
		}
		if !rec.Decide() {
			s.chunk.Take()
			continue
		}
		s.sends = rec.Sends() + 1
		s.settle(rec, nil, carry.Answered, false)
	}
}

// pushed hands a push frame out and closes the gap it leaves between the frames of one reply.
func (s *session) pushed(frame []byte) {
	s.push = len(frame)
	if f := s.e.opt.OnPush; f != nil {
		s.letLoose()
		s.stage = stagePush
		f(frame)
	}
	s.stage = stageOwn
	s.dropPush()
}

func (s *session) dropPush() {
	n := s.push
	copy(s.buf[s.r+n:], s.buf[s.r:s.r+s.have])
	s.r += n
}

// tooLarge ends the session over a frame beyond MaxReply: the command it answers has its answer, and is not sent
// again.
func (s *session) tooLarge(size int) error {
	err := fmt.Errorf("reply of at least %d bytes, limit %d", size, s.e.opt.MaxReply)
	s.doom = err // not of a class: it is the cause of what happens to others
	if rec := s.head(); rec != nil {
		s.sends, s.maybe, s.gap = rec.Sends()+1, rec.Maybe(), false
		mine := rec.Decide()
		s.streamAnswered(rec) // it ran, whoever waits for it
		if mine {
			s.settle(rec, &CallError{Fate: carry.Answered, Sends: s.sends, Class: ErrTooLarge, Cause: err}, carry.Answered, false)
		} else {
			s.chunk.Take()
		}
	}
	return s.doom
}

// fault decides what a panic or Goexit at the current stage costs. A nil error goes on behind it.
func (s *session) fault(p *panics.Error) error {
	at := s.stage
	s.stage = stageOwn
	if at != stageOwn {
		p.Boundary = stageNames[at]
	}
	s.e.caught.Add(1)
	s.e.say("caught", p)
	switch at {
	case stageDecode:
		// The stream is still framed: one command fails, its neighbours get their replies, and the connection is
		// not used again.
		s.retire(p)
		rec := s.chunk.Peek()
		s.streamAnswered(rec)
		fate := carry.Answered
		if s.refuseN > 0 && s.maybe {
			fate = carry.MaybeExecuted // a refusal of the last send takes no earlier one back
		}
		s.settle(rec, &CallError{Fate: fate, Sends: s.sends, Cause: p}, fate, true)
	case stagePush:
		s.dropPush()
	case stageComplete:
		s.flowDone()
	case stageObserver, stageLimiter:
	case stageVerdict:
		if rec := s.chunk.Peek(); rec != nil && !s.ghost && !rec.Undecide() {
			s.leaver(rec)
		}
		return p
	default:
		s.giveBack()
		return p
	}
	return nil
}

// giveBack returns a record that our own fault left in the reader's hands to the log, for the cut to decide.
func (s *session) giveBack() {
	if rec := s.chunk.Peek(); rec != nil && rec.Deciding() && !rec.Undecide() {
		s.leaver(rec)
	}
}
