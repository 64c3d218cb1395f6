package target

import (
	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/proto/resp"
)

// add is the XADD of one job. It lives as long as its ticket and is used again with it, so that a job costs no
// allocation.
type add struct {
	s    *stream
	job  submit.Job // valid until AppendRequest returned
	t    *submit.Ticket
	done submit.Done
}

// Spec implements fdengine.Speccer. XADD with an id made by the server is not idempotent: only who asked for
// retries, and so accepts that a job may be added twice, gets any.
func (a *add) Spec() fdengine.Spec {
	if a.s.retries > 0 {
		return fdengine.Spec{Class: carry.Replay, Budget: a.s.retries}
	}
	return fdengine.Spec{Class: carry.NoRetry}
}

// AppendRequest implements fdengine.Command.
func (a *add) AppendRequest(dst []byte) ([]byte, error) {
	dst = append(dst, a.s.head...)
	dst = resp.AppendBulk(dst, a.job.ID)
	dst = append(dst, "$5\r\nqueue\r\n"...)
	dst = resp.AppendBulk(dst, a.job.Queue)
	dst = append(dst, "$7\r\npayload\r\n"...)
	return resp.AppendBulk(dst, a.job.Payload), nil
}

// DecodeReply implements fdengine.Command. The new entry's id is not kept: the job's own id is in the entry.
func (a *add) DecodeReply(r fdengine.Reply) error {
	if r.Sends > 1 {
		a.s.resent.Add(int64(r.Sends - 1))
	}
	return refusal(r.Frame)
}

// head is what each XADD to stream begins with, up to the value of the field id.
func head(stream string) []byte {
	b := resp.AppendArrayHeader(nil, 9)
	for _, s := range []string{"XADD", stream, "*", "id"} {
		b = resp.AppendBulkString(b, s)
	}
	return b
}

// Refusal is an error reply of the server: its text.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// Fate implements what fdengine.FateOf looks for.
func (Refusal) Fate() carry.Fate { return carry.Answered }

// refusal returns the error that frame is, if it is one.
func refusal(frame []byte) error {
	r := resp.NewReader(frame)
	if t := r.Type(); t == resp.TypeError || t == resp.TypeBulkError {
		_, err := resp.Decode(frame)
		return Refusal(err.Error())
	}
	return nil
}

// completions routes the engine's outcomes to the tickets. One value serves all commands.
type completions struct{}

// Complete implements fdengine.Completion.
func (c *completions) Complete(cmd fdengine.Command, err error) {
	a := cmd.(*add)
	t, done := a.t, a.done
	a.t, a.done = nil, nil
	done.Done(t, err)
}
