package fdengine

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/fdengine/fullduplex/carry"
)

// answer gives the collected frames to the record they belong to. All its frames are in the buffer from s.r on. An
// error ends the session as a cut.
func (s *session) answer(rec *carry.Record[entry]) error {
	frames := s.buf[s.r : s.r+s.have]
	refused := s.refuseN > 0
	s.replies++
	if !refused {
		s.fine++
	}
	if !rec.Decide() {
		return s.ghostAnswer(rec, refused)
	}
	var v Verdict
	sends, maybe := rec.Sends()+1, rec.Maybe() // before again counts this send
	s.sends, s.maybe, s.gap = sends, maybe, false
	if rec.Judge || refused {
		s.stage = stageVerdict
		if rec.Judge {
			v = rec.Owner.cmd.(Verdicter).Verdict(frames, maybe)
		} else {
			v = s.proto.Verdict(frames[s.refuseAt:s.refuseAt+s.refuseN], maybe)
		}
		s.stage = stageOwn
	}
	s.doom = s.connEnd(v.Conn) // before foreign code can keep us from it
	if v.Then != Deliver && s.again(rec, frames, v) {
		return s.doom
	}
	s.gap = v.Then != Deliver
	s.stage = stageDecode
	err := rec.Owner.cmd.DecodeReply(Reply{Frame: frames[s.skipped:], Sends: sends, Maybe: maybe})
	fate := carry.Answered
	if err != nil {
		err = replyError(err, refused, maybe, sends) // the methods of the error are the decoder's code too
		fate = FateOf(err)
	}
	s.stage = stageOwn
	s.streamAnswered(rec)
	s.settle(rec, err, fate, true)
	return s.doom
}

// replyError gives the error of a decoder its fate. One that speaks for itself stays as it is, unless it is a
// refusal and an earlier send may have run: the refusal of the last send does not take that back.
func replyError(err error, refused, maybe bool, sends int) error {
	if refused && maybe {
		return &CallError{Fate: carry.MaybeExecuted, Sends: sends, Cause: err}
	}
	var f fated
	var ce *CallError
	if errors.As(err, &ce) || errors.As(err, &f) {
		return err
	}
	return &CallError{Fate: carry.Answered, Sends: sends, Cause: err}
}

// settle ends the oldest record with its outcome and tells the owner. The position moves first, so that nothing the
// owner's code does can make the reply count twice. took: the frames at s.r are its reply.
func (s *session) settle(rec *carry.Record[entry], err error, fate carry.Fate, took bool) {
	owner, start, sends, stream := rec.Owner, rec.Start, s.sends, rec.Stream
	rec.Owner = entry{}
	rec.Settle()
	s.advance(took)
	if !owner.counted() {
		s.ponged = true
		return
	}
	s.fates[fate]++
	if s.e.opt.Observer != nil {
		s.samples = append(s.samples, s.e.newSample(start, fate, sends, err))
	}
	s.flow = stream
	switch d := owner.done.(type) {
	case *call:
		s.lone = d.plain
		d.err, d.clean = err, true
		if d.solo { // its caller may be gone, and wake nobody
			d.ready <- struct{}{}
		} else {
			s.link(&d.waiter)
		}
	case *member:
		d.batch.errs[d.i] = err
		if s.lot != d.batch {
			s.tellLot()
			s.lot = d.batch
		}
		s.lotN++
	case *Group:
		d.fail(err)
		if s.group != d {
			s.tellLot()
			s.group = d
		}
		if s.lotN++; stream != nil { // a Flush returns after the completions
			s.tellLot()
		}
	default:
		s.letLoose()
		if s.e.room.tight.Load() {
			s.e.log.Lead(&s.chunk) // it may submit into the room that this makes
		}
		s.stage = stageComplete
		d.Complete(owner.cmd, err)
		s.stage = stageOwn
	}
	s.flowDone()
}

// tellLot counts the outcomes that one batch, or one Group, got in a row. Who waits for a Group may do so later or not at all, and
// is no link of a chain.
func (s *session) tellLot() {
	switch {
	case s.lotN == 0:
		return
	case s.group != nil:
		s.e.log.Lead(&s.chunk) // who waits for it may submit into the room that this makes
		s.group.settle(s.lotN)
	case s.lot.settles(s.lotN):
		s.link(&s.lot.waiter)
	}
	s.lot, s.group, s.lotN = nil, nil, 0
}

// flowDone counts the command that was just told out of its Stream: a Flush returns after the completions.
func (s *session) flowDone() {
	streamDone(s.flow)
	s.flow = nil
}

// advance moves past the oldest record and, if took, past its frames.
func (s *session) advance(took bool) {
	s.chunk.Take()
	if took {
		if s.least == 0 || s.have < s.least {
			s.least = s.have
		}
		s.r += s.have
		s.frames, s.have, s.skipped, s.refuseN, s.need = 0, 0, 0, 0, 0
	}
}

// ghostAnswer drops the reply of a caller who left; only what it says about the connection counts.
func (s *session) ghostAnswer(rec *carry.Record[entry], refused bool) error {
	var v Verdict
	if refused {
		s.stage, s.ghost = stageVerdict, true
		v = s.proto.Verdict(s.buf[s.r+s.refuseAt:s.r+s.refuseAt+s.refuseN], rec.Maybe())
		s.stage, s.ghost = stageOwn, false
	}
	if rec.Held() {
		e := s.e
		var ends []carry.End[entry]
		e.log.Lock()
		if v.Then == RetryHere && v.Ran == RanNo && !rec.Opaque {
			e.log.GhostRefused(rec, e.clock.Load())
		} else {
			e.log.Executed(rec, e.collect(&ends))
		}
		e.log.Unlock()
		s.advance(true)
		s.conclude(ends)
		return s.connEnd(v.Conn)
	}
	s.advance(true)
	return s.connEnd(v.Conn)
}

// connEnd carries out the part of a verdict that is about the connection.
func (s *session) connEnd(c ConnEnd) error {
	switch c {
	case Retire:
		s.retire(errRefusedHere)
	case Cut:
		return errJudged
	}
	return nil
}

var errRefusedHere = errors.New("fdengine: the server's refusal retires this connection")

// retire stops writing on this connection; what is in flight is still read.
func (s *session) retire(why error) {
	l := &s.e.log
	l.Lock()
	s.ask(reasonRetire)
	if s.cause == nil {
		s.cause = why
	}
	l.Unlock()
}

// again sends the refused record once more, here or elsewhere, if its class and limits allow it. True: the record
// has left the chunk and its frames are done with. False: the refusal is the answer.
func (s *session) again(rec *carry.Record[entry], frames []byte, v Verdict) bool {
	e, l := s.e, &s.e.log
	ran := v.Ran != RanNo || rec.Opaque
	now := e.clock.Load()
	switch {
	case ran && rec.Held(): // it may have run behind what its stream waits for
		return false
	case ran && (rec.Class == carry.NoRetry || rec.Charged()+1 > int(rec.Budget)):
		return false
	case rec.SettleBy != 0 && rec.SettleBy <= now:
		return false
	case v.Then == RetryHere && rec.Refusals() >= e.opt.MaxRefusals:
		return false
	case v.Then == Reroute && (!rec.Owner.counted() || e.opt.Rerouter == nil || !v.Hint.fits(int(rec.Frames)) || rec.Stream != nil || rec.Hops() >= e.opt.MaxRedirects):
		return false
	}
	if v.Then == Reroute {
		return s.goElsewhere(rec, v, ran)
	}
	wait := min(v.After, maxAfter)
	if wait <= 0 {
		wait = retryPause(e.opt.BackoffMin, e.opt.BackoffMax, rec.Refusals())
	}
	enc := s.chunk.Encoded(rec)
	frame := append([]byte(nil), frames[s.skipped:]...)
	var ends []carry.End[entry]
	l.Lock()
	rec.Refused(ran)
	if e.state == stateClosed {
		l.Unlock()
		return false
	}
	gone := leaving(rec)
	ok, left := l.Refuse(rec, enc, frame, now+int64(wait), e.collect(&ends))
	if ok {
		e.count.Refusals++
		e.rouse() // the sweeper brings it back in time
	}
	l.Unlock()
	if ok {
		s.advance(true) // it is away and not in this chunk any more, whatever the completions do
	}
	s.conclude(ends)
	if !ok {
		return false
	}
	if left {
		s.left(gone)
	} else if e.opt.Observer != nil {
		s.stage = stageObserver
		e.observe(Event{Kind: EventRetried, Commands: 1, Addr: s.addr})
		s.stage = stageOwn
	}
	return true
}

// maxAfter bounds what a server may say in Verdict.After: a command that waits holds its room.
const maxAfter = time.Minute

// retryPause is a full-jitter pause that grows with the refusals of one command, never shorter than half the
// minimum, so that a server that refuses at once is not asked in a circle.
func retryPause(low, high time.Duration, n int) time.Duration {
	d := high
	if n < 30 && low<<n < high {
		d = low << n
	}
	return low/2 + time.Duration(rand.Int64N(int64(max(d-low/2, 1))))
}

// streamAnswered tells the stream of rec, if it has to know, that rec has its answer. s.gap: the answer is a refusal
// that was to go again and may not.
func (s *session) streamAnswered(rec *carry.Record[entry]) {
	e, gap := s.e, s.gap
	if rec.Stream == nil || !rec.Held() && !gap {
		return
	}
	var ends []carry.End[entry]
	e.log.Lock()
	if gap {
		e.log.Break(rec, e.collect(&ends))
	}
	e.log.Executed(rec, e.collect(&ends))
	e.log.Unlock()
	s.conclude(ends)
}

// leaver ends a call whose caller left while its reply was at hand.
func (s *session) leaver(rec *carry.Record[entry]) {
	x := leaving(rec)
	x.Sends++
	x.Fate = carry.MaybeExecuted
	s.left(x)
}

// leaving is the outcome of rec if its caller turns out to have left; to be taken before rec goes away.
func leaving(rec *carry.Record[entry]) carry.End[entry] {
	return carry.End[entry]{Owner: rec.Owner, Stream: rec.Stream, Start: rec.Start, Sends: rec.Sends(), Fate: rec.Fate(false)}
}

// left tells a caller who left that he may go.
func (s *session) left(x carry.End[entry]) {
	err := &CallError{Fate: x.Fate, Sends: x.Sends, Cause: errLeft}
	s.e.log.Lock()
	s.e.settled(x.Fate)
	s.e.log.Unlock()
	s.e.tell(x, err)
	if s.e.opt.Observer != nil {
		s.samples = append(s.samples, s.e.newSample(x.Start, x.Fate, x.Sends, err))
	}
}

// conclude is Engine.detach on the reader: it waits for no completion, since the caller whose reply is at hand may want to
// leave, and calls no observer in the middle of a chunk.
func (s *session) conclude(ends []carry.End[entry]) {
	s.e.tellApart(ends, nil, nil)
	if s.e.opt.Observer != nil {
		s.samples = s.e.samplesOf(s.samples, ends, nil, nil)
	}
}

var errLeft = errors.New("fdengine: the caller withdrew")
