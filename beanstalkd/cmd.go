package beanstalkd

import (
	"errors"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/proto/beanstalk"
)

// Cmd is one command other than a put, and the place for its reply. Build it, give it to a Client, Stream or
// Consumer, and read the reply when the call has returned or the completion runs. It may be sent again then. From
// submit to completion it belongs to the engine; it must not be copied.
type Cmd struct {
	id      verbID
	tube    string
	job     uint64
	prio    uint32 // or the bound of a kick
	seconds uint32
	class   carry.Class
	budget  int
	timeout time.Duration
	bad     error // of the arguments
	lent    bool  // it runs on a connection of its own

	place place
	reply
}

// reply is what a Cmd keeps of its reply.
type reply struct {
	answered bool
	err      error
	number   uint64
	text     []byte // body or name
	replayed bool
}

func newCmd(id verbID) *Cmd { return &Cmd{id: id, class: table[id].class} }

func (c *Cmd) verb() *verb { return &table[c.id] }

// WithClass says what may be done with the command when it may have been carried out, in place of the table. A
// Delete of class Replay that finds nothing when it is sent again is a success; see Replayed.
func (c *Cmd) WithClass(class carry.Class) *Cmd {
	c.class = class
	return c
}

// WithBudget sets how many re-sends may have been carried out; 0 = the engine's default, negative = none.
func (c *Cmd) WithBudget(n int) *Cmd {
	c.budget = n
	return c
}

// WithTimeout makes the command settle within d of its submit, to about 10 ms.
func (c *Cmd) WithTimeout(d time.Duration) *Cmd {
	c.timeout = d
	return c
}

// Name is the command's name as the protocol spells it.
func (c *Cmd) Name() string { return c.verb().name }

// Spec implements fdengine.Speccer.
func (c *Cmd) Spec() fdengine.Spec {
	s := fdengine.Spec{Class: c.class, Budget: c.budget, Timeout: c.timeout}
	if c.prefix() != "" {
		s.Frames = 2
	}
	return s
}

// prefix is the tube of the `use` that goes before the command; empty: none.
func (c *Cmd) prefix() string {
	if !c.verb().tubed {
		return ""
	}
	return c.place.resolve(c.tube)
}

var errNoVerb = errors.New("beanstalkd: the zero Cmd is no command")

// AppendRequest implements fdengine.Command. A command that must not share the connection gives a *NotSharedError.
// The reply of an earlier use is forgotten.
func (c *Cmd) AppendRequest(dst []byte) ([]byte, error) {
	c.reply = reply{text: c.text[:0]}
	v := c.verb()
	switch {
	case c.id == noVerb:
		return dst, errNoVerb
	case c.bad != nil:
		return dst, c.bad
	case v.why != shares && !c.lent:
		why, instead := v.why.describe()
		return dst, &NotSharedError{Command: v.name, Why: why, Instead: instead}
	}
	dst, err := appendUse(dst, c.prefix())
	if err != nil {
		return dst, err
	}
	switch c.id {
	case vPeek:
		return beanstalk.AppendPeek(dst, c.job), nil
	case vPeekReady:
		return beanstalk.AppendPeekReady(dst), nil
	case vPeekDelayed:
		return beanstalk.AppendPeekDelayed(dst), nil
	case vPeekBuried:
		return beanstalk.AppendPeekBuried(dst), nil
	case vKick:
		return beanstalk.AppendKick(dst, c.prio), nil
	case vKickJob:
		return beanstalk.AppendKickJob(dst, c.job), nil
	case vPauseTube:
		return beanstalk.AppendPauseTube(dst, c.tube, c.seconds)
	case vStats:
		return beanstalk.AppendStats(dst), nil
	case vStatsJob:
		return beanstalk.AppendStatsJob(dst, c.job), nil
	case vStatsTube:
		return beanstalk.AppendStatsTube(dst, c.tube)
	case vListTubes:
		return beanstalk.AppendListTubes(dst), nil
	case vListTubesWatched:
		return beanstalk.AppendListTubesWatched(dst), nil
	case vReserve:
		return beanstalk.AppendReserve(dst), nil
	case vReserveWithTimeout:
		return beanstalk.AppendReserveWithTimeout(dst, c.seconds), nil
	case vReserveJob:
		return beanstalk.AppendReserveJob(dst, c.job), nil
	case vDelete:
		return beanstalk.AppendDelete(dst, c.job), nil
	case vRelease:
		return beanstalk.AppendRelease(dst, c.job, c.prio, c.seconds), nil
	case vBury:
		return beanstalk.AppendBury(dst, c.job, c.prio), nil
	case vTouch:
		return beanstalk.AppendTouch(dst, c.job), nil
	case vWatch:
		return beanstalk.AppendWatch(dst, c.tube)
	case vIgnore:
		return beanstalk.AppendIgnore(dst, c.tube)
	}
	return beanstalk.AppendListTubeUsed(dst), nil
}

// Verdict implements fdengine.Verdicter.
func (c *Cmd) Verdict(frames []byte, maybe bool) fdengine.Verdict {
	a := takeApart(frames, c.place.use, c.verb().can)
	return a.verdict()
}

// DecodeReply implements fdengine.Command. The error is a *ServerError, a *WrongTubeError or an *UnexpectedError.
func (c *Cmd) DecodeReply(r fdengine.Reply) error {
	a := takeApart(r.Frame, c.place.use, c.verb().can)
	c.answered = true
	c.number = a.Number
	c.text = append(append(c.text[:0], a.Name...), a.Body...)
	c.err = a.err(c.Name(), c.place.use, 0)
	switch {
	case c.err != nil && c.id == vDelete && r.Maybe && a.odd == "" && a.Word == beanstalk.NotFound:
		c.err, c.replayed = nil, true // the earlier send has done it
	case c.err == nil && (a.Word == beanstalk.TimedOut || a.Word == beanstalk.DeadlineSoon),
		c.err == nil && c.id == vRelease && a.Word == beanstalk.Buried:
		c.err = refused(a.Word)
	}
	return c.err
}
