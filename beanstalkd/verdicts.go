package beanstalkd

import (
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/proto/beanstalk"
)

// refusal is one row of the table of refusals: what a word means on a connection to one server.
type refusal struct {
	word beanstalk.Word
	v    fdengine.Verdict
}

// refusals lists them all. Where nothing was carried out (RanNo) even a NoRetry command may go again, which it does
// where the server is likely to say yes later. DRAINING is for someone who knows another server; without one it is
// the answer. After a word that says that the server could not read the request, it may be reading a body as
// requests: nothing that comes from there can be trusted.
func refusals() []refusal {
	no := fdengine.Verdict{Ran: fdengine.RanNo}
	outOfStep := fdengine.Verdict{Ran: fdengine.RanNo, Conn: fdengine.Cut}
	return []refusal{
		{beanstalk.Draining, fdengine.Verdict{Then: fdengine.Reroute, Ran: fdengine.RanNo}},
		{beanstalk.OutOfMemory, fdengine.Verdict{Then: fdengine.RetryHere, Ran: fdengine.RanNo}},
		{beanstalk.JobTooBig, no},
		{beanstalk.NotFound, no},
		{beanstalk.NotIgnored, no},
		{beanstalk.ExpectedCRLF, outOfStep},
		{beanstalk.BadFormat, outOfStep},
		{beanstalk.UnknownCommand, outOfStep},
		{beanstalk.InternalError, fdengine.Verdict{Conn: fdengine.Retire}},
	}
}

// judge finds the verdict on a word. What is no refusal is delivered.
func judge(w beanstalk.Word) fdengine.Verdict {
	if w.Refusal() {
		for _, r := range refusals() {
			if r.word == w {
				return r.v
			}
		}
	}
	return fdengine.Verdict{}
}

// replies is a set of words.
type replies uint64

func setOf(ws ...beanstalk.Word) (s replies) {
	for _, w := range ws {
		s |= 1 << w
	}
	return s
}

func (s replies) has(w beanstalk.Word) bool { return s&(1<<w) != 0 }

// answer is the reply to a command, and to the `use` before it if there was one.
type answer struct {
	beanstalk.Reply
	use beanstalk.Word // Unknown: there was none
	odd string         // why it cannot be the reply to its command; empty: it can
}

// takeApart reads the frames of one command. tube is that of its `use`, empty without one. Any command may be
// answered by one of the words that say that the server is in trouble.
func takeApart(frames []byte, tube string, can replies) (a answer) {
	if tube != "" {
		r, n, err := beanstalk.Parse(frames)
		switch {
		case err != nil:
			a.odd = err.Error()
			return a
		case r.Word == beanstalk.Using && string(r.Name) != tube:
			a.odd = "USING of another tube"
		case r.Word != beanstalk.Using && !inTrouble.has(r.Word):
			a.odd = r.Word.String()
		}
		a.use, frames = r.Word, frames[n:]
	}
	r, n, err := beanstalk.Parse(frames)
	a.Reply = r
	switch {
	case err != nil:
		a.odd = err.Error()
	case n != len(frames):
		a.odd = "more than one reply"
	case !can.has(r.Word) && !inTrouble.has(r.Word):
		a.odd = r.Word.String()
	}
	return a
}

// inTrouble is what any command may be answered with. Never written.
var inTrouble = setOf(beanstalk.OutOfMemory, beanstalk.InternalError, beanstalk.BadFormat, beanstalk.UnknownCommand,
	beanstalk.Draining)

// verdict judges all frames of a command. A reply of the wrong kind shows that replies and commands are out of step.
// A refused `use` does not keep the command behind it from being carried out, in whatever tube was used before: then
// it is never sent again.
func (a *answer) verdict() fdengine.Verdict {
	if a.odd != "" {
		return fdengine.Verdict{Conn: fdengine.Cut}
	}
	v := judge(a.Word)
	if !a.use.Refusal() {
		return v
	}
	u := judge(a.use)
	u.Conn = max(u.Conn, v.Conn)
	switch {
	case !a.Word.Refusal():
		return fdengine.Verdict{Conn: u.Conn}
	case v.Ran != fdengine.RanNo:
		u.Ran = fdengine.RanMaybe
	}
	return u
}

// err is the error that the frames are; nil when the command was carried out as it was meant. name is the
// command's, tube that of its `use`, id the job that was stored.
func (a *answer) err(name, tube string, id uint64) error {
	switch {
	case a.odd != "":
		return &UnexpectedError{Command: name, Reply: a.odd}
	case a.use.Refusal() && !a.Word.Refusal():
		return &WrongTubeError{Tube: tube, ID: id, Err: refused(a.use)}
	case a.use.Refusal():
		return refused(a.use)
	case a.Word.Refusal():
		return refused(a.Word)
	}
	return nil
}
