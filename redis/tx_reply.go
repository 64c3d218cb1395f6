package redis

import (
	"fmt"
	"strings"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/proto/resp"
)

// txReply is the frames of a transaction, taken apart.
type txReply struct {
	begin  *ServerError // MULTI's
	queue  *ServerError // the first of the queueing replies that is an error
	index  int          // of queue
	end    *ServerError // EXEC's
	ran    bool         // MULTI was refused, and a command behind it ran by itself
	queued [][]byte     // the queueing replies
	exec   []byte       // EXEC's frame
}

// split takes apart the last frames of a record: a redirect may have put frames before them.
func (t *Tx) split(frames []byte) (x txReply, err error) {
	n := 0
	for r := resp.NewReader(frames); r.More(); n++ {
		if err := r.Skip(); err != nil {
			return x, err
		}
	}
	if n < len(t.cmds)+2 {
		return x, fmt.Errorf("redis: %d frames for a transaction of %d commands", n, len(t.cmds))
	}
	r := resp.NewReader(frames)
	next := func() []byte {
		raw, _ := r.Raw() // was skipped without an error above
		return raw
	}
	for range n - len(t.cmds) - 2 {
		next()
	}
	x.begin, x.index = errorOf(next()), -1
	x.queued = make([][]byte, len(t.cmds))
	for i := range x.queued {
		x.queued[i] = next()
		e := errorOf(x.queued[i])
		if e != nil && x.queue == nil {
			x.queue, x.index = e, i
		}
		x.ran = x.ran || x.begin != nil && e == nil
	}
	x.exec = next()
	x.end = errorOf(x.exec)
	return x, nil
}

// cause is the error that decides about a transaction that did not run: the server's reason for refusing MULTI,
// a command at queueing, or EXEC.
func (x *txReply) cause() *ServerError {
	switch {
	case x.begin != nil:
		return x.begin
	case x.queue != nil:
		return x.queue
	}
	if _, reason, ok := strings.Cut(x.end.Message, "because of: "); ok && x.end.Code == "EXECABORT" {
		return newServerError(resp.Error(reason))
	}
	return x.end
}

// Verdict implements fdengine.Verdicter. A transaction that the server discarded ran nothing, so it may go again
// when the reason permits. An error inside EXEC's reply is part of the answer, and so is everything when MULTI
// itself was refused and a command ran by itself.
func (t *Tx) Verdict(frames []byte, maybe bool) fdengine.Verdict {
	x, err := t.split(frames)
	if err != nil || x.end == nil {
		return fdengine.Verdict{}
	}
	v := judge(x.cause(), "", refusals(), false)
	if x.ran {
		return fdengine.Verdict{Conn: v.Conn}
	}
	return v
}

// DecodeReply implements fdengine.Command. Each command gets its reply, or the reason why there is none. The
// error is a *TxError, or ErrTxAborted when a watched key had changed.
func (t *Tx) DecodeReply(r fdengine.Reply) error {
	x, err := t.split(r.Frame)
	switch {
	case err != nil:
	case x.ran:
		for i, c := range t.cmds {
			_ = c.DecodeReply(fdengine.Reply{Frame: x.queued[i], Sends: r.Sends, Maybe: r.Maybe})
		}
		return &TxError{Index: -1, Err: x.begin}
	case x.end != nil:
		err = &TxError{Index: x.index, Aborted: true, Err: x.cause()}
	default:
		var failed error
		if failed, err = t.results(r, x.exec); err == nil {
			return failed
		}
	}
	for _, c := range t.cmds {
		c.fail(err)
	}
	return err
}

// results hands out the elements of EXEC's reply. failed is the first command's error among them; err says that
// the reply is not one of this transaction.
func (t *Tx) results(r fdengine.Reply, exec []byte) (failed, err error) {
	all := resp.NewReader(exec)
	n, err := all.Array()
	if err == resp.ErrNull {
		return nil, ErrTxAborted
	}
	if err != nil {
		return nil, own(err)
	}
	if n != len(t.cmds) {
		return nil, fmt.Errorf("redis: %d results for a transaction of %d commands", n, len(t.cmds))
	}
	for i, c := range t.cmds {
		raw, err := all.Raw()
		if err != nil {
			return nil, err
		}
		e := c.DecodeReply(fdengine.Reply{Frame: raw, Sends: r.Sends, Maybe: r.Maybe})
		if e != nil && failed == nil {
			failed = &TxError{Index: i, Err: e}
		}
	}
	return failed, nil
}
