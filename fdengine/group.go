package fdengine

import (
	"context"
	"errors"
	"sync/atomic"
)

// Group is a Completion for many commands that one goroutine waits for together:
//
//	g.Add(len(cmds))
//	for _, c := range cmds {
//		if err := e.Submit(ctx, c, g); err != nil {
//			g.Complete(c, err)
//		}
//	}
//	err := g.Wait(ctx)
//
// It is the cheapest completion: the reader tells it the outcomes of a run of its commands at once, and runs nobody's
// code for them. It keeps the first error only; what each command was answered is in the command. Any goroutine may add and
// complete, one at a time may wait. A Group may be used again after Wait has returned nil or the error of a command. Make it with NewGroup.
type Group struct {
	open   atomic.Int64 // announced, and not told yet
	failed atomic.Pointer[error]
	ready  chan struct{} // cap 1: open has come to 0
}

// NewGroup makes a Group that has nothing to wait for.
func NewGroup() *Group { return &Group{ready: make(chan struct{}, 1)} }

// Add announces n commands that are about to be submitted with g as their completion. A negative n takes back
// those that are not going to be.
func (g *Group) Add(n int) { g.settle(-n) }

// Complete implements Completion. For a command that was not accepted the caller calls it, with the error of Submit.
func (g *Group) Complete(_ Command, err error) {
	g.fail(err)
	g.settle(1)
}

// Wait blocks until all that was announced has its outcome, and returns the first error among them since the last Wait; or the
// error of ctx, when that ends first: then the outcomes are still coming, and may be waited for again. More outcomes than were
// announced are an error from then on, since nobody knows any more what is under way.
func (g *Group) Wait(ctx context.Context) error {
	if g.ready == nil {
		return errNoGroup
	}
	for g.open.Load() > 0 {
		if done := ctx.Done(); done == nil {
			<-g.ready
		} else {
			select {
			case <-g.ready:
			case <-done:
				return ctx.Err()
			}
		}
	}
	if g.open.Load() < 0 {
		return errUnannounced
	}
	if err := g.failed.Swap(nil); err != nil {
		return *err
	}
	return nil
}

var (
	errNoGroup     = errors.New("fdengine: the completion is a Group that NewGroup did not make")
	errUnannounced = errors.New("fdengine: a Group was told more outcomes than Add announced")
)

// fail keeps the first error.
func (g *Group) fail(err error) {
	if err != nil {
		g.failFirst(err)
	}
}

// failFirst is apart so that only an error is on the heap.
func (g *Group) failFirst(err error) { g.failed.CompareAndSwap(nil, &err) }

// settle counts n outcomes. The last one wakes who waits; a word that nobody took is found by the next Wait, which looks again.
func (g *Group) settle(n int) {
	if g.open.Add(-int64(n)) == 0 {
		select {
		case g.ready <- struct{}{}:
		default:
		}
	}
}
