package redis

import (
	"context"
	"errors"
	"time"

	"github.com/fdengine/fullduplex/fdengine"
)

// ownCmd is a Cmd on a connection that its caller alone uses; what it may be was checked before. Its timeout is
// kept by the caller's ctx: an engine that only forgets a command leaves it armed on the server.
type ownCmd struct{ *Cmd }

func (o ownCmd) Spec() fdengine.Spec {
	s := o.Cmd.Spec()
	o.look()
	s.Timeout, s.Block = 0, o.entry.holds(&o.args)
	return s
}

func (o ownCmd) AppendRequest(dst []byte) ([]byte, error) {
	o.answered, o.err = false, nil
	return o.appendTo(dst), nil
}

// ownTx is a Tx on such a connection. What discards it also ends the watch, so it is never sent again by itself.
type ownTx struct{ *Tx }

func (o ownTx) Spec() fdengine.Spec {
	s := o.Tx.Spec()
	s.Timeout = 0
	return s
}

func (o ownTx) Verdict(frames []byte, maybe bool) fdengine.Verdict {
	v := o.Tx.Verdict(frames, maybe)
	return fdengine.Verdict{Conn: v.Conn}
}

// checkOwn says why the command cannot run on a connection that its caller alone uses; nil when it can. lasting:
// it may leave something behind there.
func (c *Cmd) checkOwn(lasting bool) error {
	err := c.check()
	if errors.Is(err, ErrNotShared) && c.entry.why.lendable() && (lasting || !c.entry.why.lasting()) {
		return nil
	}
	return err
}

// within gives ctx the command's own timeout; 0 and less: none.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}
