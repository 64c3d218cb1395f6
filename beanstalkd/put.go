package beanstalkd

import (
	"bytes"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/proto/beanstalk"
)

// DefaultTTR is the time to run of a Put that names none.
const DefaultTTR = time.Minute

// Put is one job to store, and the place for its id. Fill in the upper fields, give it to a Client or Stream, and
// read the lower ones when the call has returned or the completion runs; then it may be filled in anew. From submit
// to completion it belongs to the engine; it must not be copied. Body is copied when the Put is submitted and not
// read after that call.
type Put struct {
	Body     []byte
	Priority uint32        // the smaller the more urgent; below 1,024 counts as urgent in statistics
	Delay    time.Duration // not to be reserved before that; whole seconds, rounded up
	TTR      time.Duration // time to run, once reserved; whole seconds, rounded up; default DefaultTTR
	Tube     string        // default Options.Tube; another one only with Options.ManyTubes
	// Replay vouches that storing the job twice does no harm, because those who work on it see to that. Without it a
	// Put that may have been stored is never sent again.
	Replay  bool
	Budget  int           // with Replay: re-sends that may have been carried out; 0 = the engine's, negative = none
	Timeout time.Duration // settle within that of the submit, to about 10 ms; 0 = none

	// ID is the job's. Ids are counted from 1 by a server that has no binlog and is started again: they do not
	// identify a job for ever.
	ID uint64
	// Buried warns that the server stored the job but had no memory to make it ready: it must be kicked.
	Buried bool
	Sends  int  // how often it left this process
	Maybe  bool // an earlier send may have stored it as well

	place place
}

// putReplies is never written.
var putReplies = setOf(beanstalk.Inserted, beanstalk.Buried, beanstalk.JobTooBig, beanstalk.ExpectedCRLF)

// Spec implements fdengine.Speccer.
func (p *Put) Spec() fdengine.Spec {
	s := fdengine.Spec{Budget: p.Budget, Timeout: p.Timeout}
	if p.Replay {
		s.Class = carry.Replay
	}
	if p.place.resolve(p.Tube) != "" {
		s.Frames = 2
	}
	return s
}

// AppendRequest implements fdengine.Command. Results of an earlier use are forgotten.
func (p *Put) AppendRequest(dst []byte) ([]byte, error) {
	p.ID, p.Buried, p.Sends, p.Maybe = 0, false, 0, false
	ttr := p.TTR
	if ttr == 0 {
		ttr = DefaultTTR
	}
	run, err := seconds("Put.TTR", ttr)
	if err != nil {
		return dst, err
	}
	delay, err := seconds("Put.Delay", p.Delay)
	if err != nil {
		return dst, err
	}
	if dst, err = appendUse(dst, p.place.resolve(p.Tube)); err != nil {
		return dst, err
	}
	return beanstalk.AppendPut(dst, p.Priority, delay, run, p.Body), nil
}

// Verdict implements fdengine.Verdicter.
func (p *Put) Verdict(frames []byte, maybe bool) fdengine.Verdict {
	if p.place.use == "" && bytes.HasPrefix(frames, stored) {
		return fdengine.Verdict{}
	}
	a := p.answer(frames)
	return a.verdict()
}

// stored begins the usual reply. Never written.
var stored = []byte("INSERTED ")

// answer is takeApart, with the number that BURIED has only here.
func (p *Put) answer(frames []byte) answer {
	a := takeApart(frames, p.place.use, putReplies)
	if a.odd == "" && a.Word == beanstalk.Buried && !a.HasNumber {
		a.odd = "BURIED without an id"
	}
	return a
}

// DecodeReply implements fdengine.Command. The error is a *ServerError, a *WrongTubeError or an *UnexpectedError.
func (p *Put) DecodeReply(r fdengine.Reply) error {
	p.Sends, p.Maybe = r.Sends, r.Maybe
	a := p.answer(r.Frame)
	if a.odd == "" && !a.Word.Refusal() {
		p.ID, p.Buried = a.Number, a.Word == beanstalk.Buried
	}
	return a.err("put", p.place.use, p.ID)
}
