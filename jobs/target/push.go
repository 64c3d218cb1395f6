package target

import (
	"errors"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/redis"
)

// maxKept is the largest buffer, in bytes, that a push keeps for its next job.
const maxKept = 16 << 10

// push is the command that adds one job to a stream or a list. It lives as long as its ticket and is used again
// with it, so that a job costs no allocation.
type push struct {
	patient
	t      *server
	ticket *submit.Ticket
	done   submit.Done

	once  bool   // by the script
	whole bool   // the script's text went with it
	maybe bool   // an earlier command of this job may have run
	sends int    // of earlier commands of this job
	body  []byte // of a list
	job   submit.Job
	kept  []byte // what job points into: the script may have to be sent again with its text
}

// build makes it the command of one job. Its bytes are read once more when it is submitted.
func (p *push) build(t *server, job submit.Job, ticket *submit.Ticket, done submit.Done) error {
	p.t, p.ticket, p.done = t, ticket, done
	p.once, p.maybe, p.sends = ticket.Traits.Once, false, 0
	p.calm(t.patience)
	if p.once {
		job = p.keep(job)
	}
	return p.spell(job, !t.loaded.Load())
}

// keep copies what the command is made of.
func (p *push) keep(job submit.Job) submit.Job {
	b := append(append(append(p.kept[:0], job.ID...), job.Queue...), job.Payload...)
	id, queue := len(job.ID), len(job.ID)+len(job.Queue)
	job.ID, job.Queue, job.Payload = b[:id:id], b[id:queue:queue], b[queue:]
	p.kept, p.job = b, job
	return job
}

// spell writes the command, by the script with its text or its digest when the id is to be remembered. Adding a
// job is not idempotent by itself: only who asked for retries, and so accepts that a job may be added twice, gets
// any. With the script it is, whatever was asked for.
func (p *push) spell(job submit.Job, whole bool) (err error) {
	t := p.t
	verb := "XADD"
	if t.list {
		verb = "RPUSH"
		if p.body, err = t.body.append(p.body[:0], job); err != nil {
			return err
		}
	}
	if p.once {
		if p.whole = whole; whole {
			p.Reset("EVAL").Arg(script)
		} else {
			p.Reset("EVALSHA").Arg(scriptDigest)
		}
		p.Arg("2").Arg(t.key).Arg(t.idsKey).ArgBytes(job.ID).Arg(verb)
	} else {
		p.Reset(verb).Arg(t.key)
	}
	if t.list {
		p.ArgBytes(p.body)
	} else {
		p.Arg("*").Arg("id").ArgBytes(job.ID).Arg("queue").ArgBytes(job.Queue).Arg("payload").ArgBytes(job.Payload)
	}
	retries := t.retries.of(p.once)
	p.WithClass(carry.NoRetry)
	if retries > 0 {
		p.WithClass(carry.Replay).WithBudget(retries)
	}
	return nil
}

// known is the script's answer when it added nothing.
const known = ":0\r\n"

// DecodeReply implements fdengine.Command.
func (p *push) DecodeReply(r fdengine.Reply) error {
	p.ticket.Sends = p.sends + r.Sends
	p.maybe = p.maybe || r.Maybe
	p.ticket.Known = p.once && string(r.Frame) == known
	return p.Cmd.DecodeReply(r)
}

// completions routes the engine's outcomes to the tickets. One value serves all commands.
type completions struct{}

// Complete implements fdengine.Completion.
func (completions) Complete(cmd fdengine.Command, err error) { cmd.(*push).complete(err) }

func (p *push) complete(err error) {
	if p.once {
		if p.forgotten(err) {
			return
		}
		if err == nil && p.whole {
			p.t.loaded.Store(true)
		}
	}
	if p.spent && err != nil {
		err = p.refusedForTooLong(err)
	} else if p.once {
		if err != nil && p.maybe && fdengine.FateOf(err) != carry.MaybeExecuted {
			err = &fdengine.CallError{Fate: carry.MaybeExecuted, Sends: p.sends, Cause: err}
		}
	}
	t, done := p.ticket, p.done
	if err != nil {
		t.Sends = max(t.Sends, p.sends+sends(err))
	}
	p.rest()
	done.Done(t, err)
}

// refusedForTooLong makes of the last refusal what it is: the server was there and did not serve. Every send that was
// answered was refused, so nothing ran, unless another send had no answer.
func (p *push) refusedForTooLong(err error) error {
	e := &fdengine.CallError{Fate: carry.NotSent, Sends: p.ticket.Sends, Class: fdengine.ErrUnavailable, Cause: err}
	if p.maybe || fdengine.FateOf(err) == carry.MaybeExecuted {
		e.Fate = carry.MaybeExecuted
	}
	return e
}

// forgotten says that the server does not have the script (any more: it was started again, or another one took
// over), and that the command therefore goes out once more, with the script's text. Nothing ran.
func (p *push) forgotten(err error) bool {
	if p.whole || err == nil || !noScript(err) {
		return false
	}
	p.t.loaded.Store(false)
	p.sends = p.ticket.Sends
	p.maybe = p.maybe || fdengine.FateOf(err) == carry.MaybeExecuted
	if err := p.spell(p.job, true); err != nil {
		return false // cannot be: the same job was spelled before
	}
	p.t.again.add(p)
	return true
}

func noScript(err error) bool {
	var se *redis.ServerError
	return errors.As(err, &se) && se.Code == "NOSCRIPT"
}

// rest lets go of what is others' from Done on, and of large buffers.
func (p *push) rest() {
	p.ticket, p.done, p.job = nil, nil, submit.Job{}
	if cap(p.kept) > maxKept {
		p.kept = nil
	}
	if cap(p.body) > maxKept {
		p.body = nil
	}
}

// sends is how often a command without an answer left this process.
func sends(err error) int {
	var ce *fdengine.CallError
	if errors.As(err, &ce) {
		return ce.Sends
	}
	return 0
}
