package redis

import (
	"context"
	"time"

	"github.com/fdengine/fullduplex/fdengine"
)

// Blocking runs one command that may block (BLPOP and its relatives, XREAD and XREADGROUP with BLOCK, WAIT) on a
// lent connection, and waits for its reply. It blocks for as long as the server holds the reply, and before that
// while all Options.Lent connections are out. The shared connection does not notice.
//
// When ctx ends, the server is told to stop blocking, and nothing is lost: either the command has taken something
// after all, and Blocking returns nil with that reply; or it returns an error that matches ctx.Err(), with fate
// Answered when the server said that it took nothing. That takes one round trip longer than ctx, at most
// Options.CancelWait. When the server cannot be asked (no right to CLIENT UNBLOCK, no answer), the connection is
// cut, fate MaybeExecuted.
func (c *Client) Blocking(ctx context.Context, cmd *Cmd) error {
	if err := cmd.checkOwn(false); err != nil {
		return notSent(nil, err)
	}
	bound, cancel := within(ctx, cmd.timeout)
	defer cancel()
	n, err := c.lender.take(bound)
	if err == nil {
		err = c.run(bound, n, cmd)
		c.lender.give(n)
	}
	return timedOut(ctx, bound, err)
}

// null says whether the reply is a null.
func (c *Cmd) null() bool {
	r, err := c.Reader()
	return err == nil && r.Null()
}

// timedOut puts the class of the command's own timeout into an error that came of it.
func timedOut(ctx, bound context.Context, err error) error {
	if ce, ok := err.(*fdengine.CallError); ok && ce.Class == nil && ce.Cause == context.DeadlineExceeded &&
		bound.Err() != nil && ctx.Err() == nil {
		return &fdengine.CallError{Fate: ce.Fate, Sends: ce.Sends, Class: fdengine.ErrTimeout, Cause: ce.Cause}
	}
	return err
}

// Lent is a connection that its borrower alone uses: for commands that block or change the connection's state,
// several in a row. It belongs to one goroutine at a time. Close gives it back.
//
// It is one connection for all its life: when that is lost, commands fail with ErrSessionLost and none is sent on
// another one. Its window is one command.
type Lent struct {
	c      *Client
	n      *loan
	closed bool
	dirty  bool // something may have been left on the connection
}

// Lend borrows a connection. It waits while all Options.Lent are out, and for the connection.
func (c *Client) Lend(ctx context.Context) (*Lent, error) {
	n, err := c.lender.take(ctx)
	if err != nil {
		return nil, err
	}
	// The ping makes the engine have a connection; it may be lost again before it is pinned.
	for {
		if err = n.engine.Ping(ctx); err != nil {
			c.lender.give(n)
			return nil, err
		}
		if n.tether.pin() {
			return &Lent{c: c, n: n}, nil
		}
	}
}

// Do sends cmd and waits for its reply, as Client.Do and, for one that blocks, as Client.Blocking. WATCH, SELECT,
// CLIENT TRACKING and the like are allowed here; afterwards the connection is not lent again. A *Tx, under the
// watches set here, is never sent again by itself.
func (l *Lent) Do(ctx context.Context, cmd fdengine.Command) error {
	if l.closed {
		return notSent(fdengine.ErrClosed, nil)
	}
	var own *Cmd
	var timeout time.Duration
	switch v := cmd.(type) {
	case *Cmd:
		if err := v.checkOwn(true); err != nil {
			return notSent(nil, err)
		}
		l.dirty = l.dirty || v.entry.why.lasting()
		own, timeout = v, v.timeout
	case *Tx:
		cmd, timeout = ownTx{v}, v.timeout
	default:
		l.dirty = true // nobody knows what it leaves behind
	}
	bound, cancel := within(ctx, timeout)
	defer cancel()
	var err error
	if own != nil {
		err = l.c.run(bound, l.n, own)
	} else {
		err = l.n.engine.Do(bound, cmd)
	}
	return timedOut(ctx, bound, err)
}

// Lost says whether the connection is gone.
func (l *Lent) Lost() bool { return l.closed || !l.n.tether.has() }

// Close gives the connection back. No command may be running. Repeated calls do nothing.
func (l *Lent) Close() {
	if !l.closed {
		l.closed = true
		l.n.unfit = l.n.unfit || l.dirty
		l.c.lender.give(l.n)
	}
}
