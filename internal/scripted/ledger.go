package scripted

import (
	"context"
	"sync"

	"github.com/fdengine/fullduplex/fdengine"
)

// Ledger is an fdengine.Completion that keeps every outcome, for many commands at once. The zero value is not
// ready: use NewLedger.
type Ledger struct {
	mu struct {
		sync.Mutex
		times map[fdengine.Command]int
		errs  map[fdengine.Command]error
		order []fdengine.Command
	}
	changed *sync.Cond
}

var _ fdengine.Completion = (*Ledger)(nil)

// NewLedger makes an empty ledger.
func NewLedger() *Ledger {
	l := &Ledger{}
	l.changed = sync.NewCond(&l.mu.Mutex)
	l.mu.times, l.mu.errs = map[fdengine.Command]int{}, map[fdengine.Command]error{}
	return l
}

// Complete notes an outcome; the first error of a command is the one kept.
func (l *Ledger) Complete(cmd fdengine.Command, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.times[cmd]++; l.mu.times[cmd] == 1 {
		l.mu.errs[cmd] = err
	}
	l.mu.order = append(l.mu.order, cmd)
	l.changed.Broadcast()
}

// Wait blocks until n completions ran in all, or ctx ends with its error.
func (l *Ledger) Wait(ctx context.Context, n int) error {
	stop := context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.changed.Broadcast()
	})
	defer stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.mu.order) < n {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.changed.Wait()
	}
	return nil
}

// Err is the outcome of cmd; settled is false while it has none.
func (l *Ledger) Err(cmd fdengine.Command) (err error, settled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.errs[cmd], l.mu.times[cmd] > 0
}

// Times is how often cmd was completed: once is right.
func (l *Ledger) Times(cmd fdengine.Command) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.times[cmd]
}

// Order is the commands in the order of their completions.
func (l *Ledger) Order() []fdengine.Command {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]fdengine.Command(nil), l.mu.order...)
}
