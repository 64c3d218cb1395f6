package target

import (
	"errors"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/redis"
)

// add is the XADD of one job. It lives as long as its ticket and is used again with it, so that a job costs no
// allocation.
type add struct {
	redis.Cmd
	ticket *submit.Ticket
	done   submit.Done
}

// build makes it the command of one job, whose bytes are read once more when it is submitted. XADD with an id
// made by the server is not idempotent: only who asked for retries, and so accepts that a job may be added twice,
// gets any.
func (a *add) build(stream string, retries int, job submit.Job, t *submit.Ticket, done submit.Done) {
	c := a.Reset("XADD").Arg(stream).Arg("*").
		Arg("id").ArgBytes(job.ID).Arg("queue").ArgBytes(job.Queue).Arg("payload").ArgBytes(job.Payload).
		WithClass(carry.NoRetry)
	if retries > 0 {
		c.WithClass(carry.Replay).WithBudget(retries)
	}
	a.ticket, a.done = t, done
	t.Sends = 0
}

// DecodeReply implements fdengine.Command.
func (a *add) DecodeReply(r fdengine.Reply) error {
	a.ticket.Sends = r.Sends
	return a.Cmd.DecodeReply(r)
}

// completions routes the engine's outcomes to the tickets. One value serves all commands.
type completions struct{}

// Complete implements fdengine.Completion.
func (completions) Complete(cmd fdengine.Command, err error) {
	a := cmd.(*add)
	t, done := a.ticket, a.done
	a.ticket, a.done = nil, nil // from Done on they are others'
	if err != nil {
		t.Sends = max(t.Sends, sends(err))
	}
	done.Done(t, err)
}

// sends is how often a command without an answer left this process.
func sends(err error) int {
	var ce *fdengine.CallError
	if errors.As(err, &ce) {
		return ce.Sends
	}
	return 0
}
