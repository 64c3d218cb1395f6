package redis

import (
	"fmt"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
)

// Tx runs commands between MULTI and EXEC: in one piece on the wire, with no command of another caller in
// between, and all of them or none (an error inside EXEC excepted: the others took effect then). It is one
// command for the engine: one fate, one budget, sent again whole or not at all. Each Cmd gets its own reply.
//
// Like a Cmd it belongs to the engine from submit to completion, and so do its commands.
type Tx struct {
	cmds    []*Cmd
	vouched bool
	budget  int
	timeout time.Duration
}

const (
	beginTx = "*1\r\n$5\r\nMULTI\r\n"
	endTx   = "*1\r\n$4\r\nEXEC\r\n"
	maxTx   = 65535 - 2 // the engine counts frames in 16 bits
)

// NewTx makes a transaction of commands.
func NewTx(cmds ...*Cmd) *Tx { return new(Tx).Add(cmds...) }

// Add appends commands.
func (t *Tx) Add(cmds ...*Cmd) *Tx {
	t.cmds = append(t.cmds, cmds...)
	return t
}

// AllowReplay says that running the whole transaction twice does no harm. It is believed when each command is of
// class Replay; without it a Tx is NoRetry.
func (t *Tx) AllowReplay() *Tx {
	t.vouched = true
	return t
}

// WithBudget sets how many re-sends may have executed; 0 = the engine's default, negative = none.
func (t *Tx) WithBudget(n int) *Tx {
	t.budget = n
	return t
}

// WithTimeout makes the transaction settle within d of its submit. Timeouts of its commands are ignored.
func (t *Tx) WithTimeout(d time.Duration) *Tx {
	t.timeout = d
	return t
}

// Cmds returns the commands in order.
func (t *Tx) Cmds() []*Cmd { return t.cmds }

// Spec implements fdengine.Speccer.
func (t *Tx) Spec() fdengine.Spec {
	class := carry.NoRetry
	if t.vouched {
		class = carry.Replay
		for _, c := range t.cmds {
			if c.Class() != carry.Replay {
				class = carry.NoRetry
			}
		}
	}
	return fdengine.Spec{Class: class, Budget: t.budget, Timeout: t.timeout, Frames: len(t.cmds) + 2}
}

// AppendRequest implements fdengine.Command. Commands that must not share a connection are refused here too.
func (t *Tx) AppendRequest(dst []byte) ([]byte, error) {
	if len(t.cmds) == 0 || len(t.cmds) > maxTx {
		return dst, fmt.Errorf("redis: a transaction of %d commands, it must have 1 to %d", len(t.cmds), maxTx)
	}
	out := append(dst, beginTx...)
	for i, c := range t.cmds {
		var err error
		if out, err = c.AppendRequest(out); err != nil {
			return dst, fmt.Errorf("redis: command %d of a transaction: %w", i, err)
		}
	}
	return append(out, endTx...), nil
}

// TxError says that a transaction did not run, or that a command in it failed. Err is the server's word.
type TxError struct {
	Index   int  // of the command that was refused or failed; -1: none in particular
	Aborted bool // nothing took effect; false: the other commands did
	Err     error
}

func (e *TxError) Error() string {
	s := "redis: transaction ran with a failed command"
	if e.Aborted {
		s = "redis: transaction aborted"
	}
	if e.Index >= 0 {
		s += fmt.Sprintf(" (number %d)", e.Index)
	}
	return s + ": " + e.Err.Error()
}

func (e *TxError) Unwrap() error { return e.Err }

// Fate is Answered.
func (e *TxError) Fate() carry.Fate { return carry.Answered }
