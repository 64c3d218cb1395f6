package fdengine

import (
	"context"
	"iter"
)

// allWindow bounds what SubmitAll has under way.
const allWindow = 4096

// SubmitAll submits the commands of in to s and yields each with its outcome, in the order of in. At most 4,096 are
// under way, so memory is bounded whatever the length of in. When a submit fails (ctx ended, engine closed, queue
// full for a submitter that does not block) its error is that command's outcome and the rest is tried all the same.
// Breaking out of the loop leaves what is under way to the engine.
func SubmitAll[C Command](ctx context.Context, s Submitter, in iter.Seq[C]) iter.Seq2[C, error] {
	return func(yield func(C, error) bool) {
		var ring []*slot[C]
		head := 0
		out := func(w *slot[C]) bool {
			err := <-w.done
			return yield(w.cmd, err)
		}
		for cmd := range in {
			w := &slot[C]{cmd: cmd, done: make(chan error, 1)}
			if err := s.Submit(ctx, cmd, w); err != nil {
				w.done <- err
			}
			ring = append(ring, w)
			for len(ring)-head > 0 && (len(ring)-head >= allWindow || len(ring[head].done) > 0) {
				w := ring[head]
				ring[head] = nil
				if head++; head == allWindow {
					ring = append(ring[:0], ring[head:]...)
					head = 0
				}
				if !out(w) {
					return
				}
			}
		}
		for ; head < len(ring); head++ {
			if !out(ring[head]) {
				return
			}
		}
	}
}

// slot is one command under way in SubmitAll.
type slot[C Command] struct {
	cmd  C
	done chan error
}

// Complete keeps the outcome; the channel has room for it.
func (w *slot[C]) Complete(_ Command, err error) { w.done <- err }
