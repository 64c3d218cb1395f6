package submit

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/jobs/state"
)

// flushEvery is how long outcomes stay unwritten.
const flushEvery = 200 * time.Millisecond

// ErrOtherInput: the input does not begin with the lines that the state speaks of.
var ErrOtherInput = errors.New("not the input of the earlier run")

// errInDoubt is the outcome of a job that is not sent because an earlier run may have sent it. Its fate is
// MaybeExecuted, as that of every error which does not know better.
var errInDoubt = errors.New("an earlier run may have sent it, and ended before the answer")

// CheckInput reads as much of in as earlier runs have dealt with and compares it with what they saw. It returns
// ErrOtherInput, wrapped, when it is something else. Lines behind those may have changed or come to be.
func CheckInput(in io.Reader, past *state.Past) error {
	l := newLines(in, 0) // the lines themselves do not matter, so none is kept
	l.sum = xxhash.New()
	for l.n < past.Sent {
		switch _, _, err := l.next(); {
		case err == nil, errors.Is(err, ErrLineTooLong):
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%w: it has %d lines, and %d were dealt with", ErrOtherInput, l.n, past.Sent)
		default:
			return fmt.Errorf("line %d: %w", l.n+1, err)
		}
	}
	if past.Sent > 0 && l.sum.Sum64() != past.Hash {
		return fmt.Errorf("%w: its first %d lines have hash %016x, those that were dealt with have %016x",
			ErrOtherInput, past.Sent, l.sum.Sum64(), past.Hash)
	}
	return nil
}

// announce tells the journal, and the disk, that the lines of b may be sent from now on. Lines that are no items
// are no jobs and need nothing more.
func (r *Run) announce(b *batch) error {
	if r.o.Journal == nil {
		return nil
	}
	if err := r.collect(0); err != nil {
		return err
	}
	next := max(r.upto, r.o.Past.Sent) + 1 // the first line that was never announced
	for i := range b.items {
		it := &b.items[i]
		switch {
		case it.last:
		case it.was == free:
			r.o.Journal.Again(it.job.Line)
		case it.was == inDoubt && r.o.ResendMaybe:
			r.o.Journal.Twice(it.job.Line)
		case it.job.Line >= next:
			r.o.Journal.Acked(next, it.job.Line-1)
			next = it.job.Line + 1
			if it.err != nil {
				r.o.Journal.Free(it.job.Line) // corrupt, unless other options are given one day
			}
		}
	}
	r.o.Journal.Acked(next, b.upto)
	r.upto = max(r.upto, b.upto)
	r.o.Journal.Sending(b.upto, b.hash)
	if err := r.flush(); err != nil {
		r.takeBack(b.items)
		return err
	}
	return nil
}

// takeBack tells the journal that items which were announced did not go out.
func (r *Run) takeBack(items []item) {
	if r.o.Journal == nil {
		return
	}
	for i := range items {
		if it := &items[i]; !it.last && it.err == nil && (it.was == unsent || it.was == free) {
			r.o.Journal.Free(it.job.Line)
		}
	}
}

// record tells the journal how a job ended.
func (r *Run) record(t *Ticket) {
	switch {
	case t.err == nil:
		r.o.Journal.Acked(t.Line, t.Line)
		if t.Known {
			r.o.Journal.Known(t.Line)
		}
	case t.fate != carry.MaybeExecuted: // which those in doubt always are
		r.o.Journal.Free(t.Line)
	}
}

// keepUp books what has come in and writes it.
func (r *Run) keepUp() error { return errors.Join(r.collect(0), r.flush()) }

// flush writes what the journal was told.
func (r *Run) flush() error {
	if r.o.Journal == nil {
		return nil
	}
	return r.o.Journal.Flush()
}
