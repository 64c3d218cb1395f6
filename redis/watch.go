package redis

import (
	"context"
	"errors"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
)

// ErrTxAborted says that a transaction under Watch did not run: a watched key had changed, or the connection that
// watched was lost. Nothing of it took effect; the usual answer is to begin again with Watch.
var ErrTxAborted = errors.New("redis: transaction aborted: a watched key has changed")

// abortedError is an abort for another reason.
type abortedError struct{ cause error }

func (e *abortedError) Error() string     { return "redis: transaction aborted: " + e.cause.Error() }
func (e *abortedError) Unwrap() error     { return e.cause }
func (e *abortedError) Is(err error) bool { return err == ErrTxAborted }

// WatchTx is what Client.Watch gives to its function: the connection that watches. It must not be used after the
// function returned, and by one goroutine at a time.
type WatchTx struct {
	l    *Lent
	done bool // EXEC was sent: nothing is watched any more
}

var errTxDone = errors.New("redis: the transaction under Watch is over")

// Watch lets the server watch keys on a lent connection and runs fn, which reads what it needs with tx.Do and
// then writes with tx.Exec. Watch returns what fn returned. There is no second attempt by itself: on ErrTxAborted
// the caller may call Watch again.
//
// Everything in fn runs on one connection. When that is lost, nothing is sent on another one: tx.Do then fails with
// ErrSessionLost, and tx.Exec with an error that matches ErrTxAborted as well, unless EXEC was already on its way
// (MaybeExecuted).
func (c *Client) Watch(ctx context.Context, fn func(tx *WatchTx) error, keys ...string) error {
	n, err := c.lender.take(ctx)
	if err != nil {
		return err
	}
	defer func() { c.lender.give(n) }() // also when fn panics
	n.unfit = true                      // until the server has said that nothing is watched
	for pinned := false; !pinned; pinned = n.tether.pin() {
		// Until it is pinned nothing depends on the connection, so it may be any.
		watch := putAll(Build("WATCH"), keys).WithClass(carry.Replay)
		if len(keys) == 0 {
			watch = Ping()
		}
		if err := n.engine.Do(ctx, ownCmd{watch}); err != nil {
			return err
		}
	}
	tx := &WatchTx{l: &Lent{c: c, n: n}}
	err = fn(tx)
	tx.l.closed = true
	if !tx.done {
		n.unfit = n.engine.Do(ctx, ownCmd{Build("UNWATCH")}) != nil || tx.l.dirty
	}
	return err
}

// Do runs a command on the connection that watches, before Exec: reads, usually. It takes effect at once.
func (t *WatchTx) Do(ctx context.Context, cmd *Cmd) error {
	if t.done {
		return notSent(nil, errTxDone)
	}
	return t.l.Do(ctx, cmd)
}

// Exec runs commands between MULTI and EXEC, if no watched key has changed: else ErrTxAborted. Errors of commands
// are a *TxError. It may be called once.
func (t *WatchTx) Exec(ctx context.Context, cmds ...*Cmd) error {
	tx := NewTx(cmds...)
	if t.done {
		return notSent(nil, errTxDone)
	}
	t.done = true
	err := t.l.Do(ctx, tx)
	if errors.Is(err, ErrSessionLost) && fdengine.FateOf(err) == carry.NotSent {
		return &abortedError{err}
	}
	if fdengine.FateOf(err) == carry.Answered {
		// Whether EXEC ran or was discarded, the server watches nothing now; unless it refused MULTI.
		var te *TxError
		t.l.n.unfit = errors.As(err, &te) && te.Index < 0 && !te.Aborted || t.l.dirty
	}
	return err
}
