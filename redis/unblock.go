package redis

import (
	"context"
	"errors"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
)

// A blocking pop must not be left alone on the server: what is pushed next would go to nobody. Closing the
// connection is not enough, because the server may serve the pop before it notices. So when the caller's ctx ends,
// the server is asked on the shared connection to unblock the lent one, and then the command has an answer: either
// there was nothing, or the caller gets what was popped.

// run sends cmd on n and waits. When ctx ends first, it takes up to Options.CancelWait longer, and the outcome is
// either the command's answer, or an error that matches ctx.Err(): of fate Answered when the server said that it
// had nothing, else by what is known. After that time, or when the server cannot be asked, the connection is cut.
func (c *Client) run(ctx context.Context, n *loan, cmd *Cmd) error {
	cmd.look()
	if ctx.Done() == nil || ctx.Err() != nil || cmd.entry.holds(&cmd.args) == 0 || c.options.CancelWait < 0 {
		return n.engine.Do(ctx, ownCmd{cmd})
	}
	held, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	returned, gone := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(gone)
		defer cut()
		c.unblock(n, returned)
	})
	err := n.engine.Do(held, ownCmd{cmd})
	close(returned)
	if stop() {
		return err
	}
	<-gone // an unblocking on its way must not meet the next command
	switch {
	case err == nil && cmd.null():
		return &fdengine.CallError{Fate: carry.Answered, Sends: 1, Cause: ctx.Err()}
	case err != nil && errors.Is(err, context.Canceled):
		var ce *fdengine.CallError
		if errors.As(err, &ce) && ce.Class == nil {
			return &fdengine.CallError{Fate: ce.Fate, Sends: ce.Sends, Cause: ctx.Err()}
		}
	}
	return err
}

// unblock makes the server answer the command that n waits for, or gives up; returned is closed when the answer
// is there.
func (c *Client) unblock(n *loan, returned <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), c.options.cancelWait())
	defer cancel()
	// It may reach the server before the command does: then it is asked again.
	for pause := time.Millisecond; ; pause *= 2 {
		id := n.tether.session()
		if id == 0 {
			return // nothing was sent, or the connection has just died
		}
		asked := Build("CLIENT").Arg("UNBLOCK").ArgInt(id)
		if err := c.Do(ctx, asked); err != nil {
			// It may be on its way and must not meet a later command.
			n.unfit = n.unfit || fdengine.FateOf(err) == carry.MaybeExecuted
			return
		}
		t := time.NewTimer(pause)
		select {
		case <-returned:
			t.Stop()
			return
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}
