package submit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/jobs/state"
)

var (
	// ErrInterrupted: ctx ended before the input did, or before everything was answered.
	ErrInterrupted = errors.New("interrupted")
	// ErrUnanswered: an interrupted run did not wait longer for the answers.
	ErrUnanswered = errors.New("without an answer when the run was ended")
	// ErrCorrupt: a corrupt line ended the run (Options.Strict).
	ErrCorrupt = errors.New("corrupt line")
	// ErrHopeless: an outcome ended the run (Options.Hopeless).
	ErrHopeless = errors.New("gave up")
)

// settleGrace bounds the wait for outcomes that a Target owes after its Shutdown returned.
const settleGrace = 5 * time.Second

// Run is one submission. Make it with New and use it once.
type Run struct {
	o      Options
	desk   *desk
	pace   *pacer
	landed state.Set
	notes  *notes
	free   []*Ticket // owned by the goroutine of Run, as all below
	made   int
	parts  []Account // by Traits.Part
	why    reasons
	told   bool             // Options.Formatted has been called
	upto   int64            // last line that was announced to the journal
	tick   <-chan time.Time // time to flush the journal; nil without one
}

// New checks the options.
func New(o Options) (*Run, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	return &Run{o: o, desk: newDesk(o.Window), pace: newPacer(o.Rate), notes: newNotes(o.Report)}, nil
}

// Parts are the accounts of each of several targets, by Traits.Part, once Run has returned. They have no Lines, Corrupt,
// Earlier or Elapsed.
func (r *Run) Parts() []Account { return r.parts }

// Landed tells lines in doubt that turned out to be taken; see Doubts. Before Run.
func (r *Run) Landed(lines state.Set) { r.landed = lines }

// Reasons are why jobs were not taken, the most frequent first, once Run has returned.
func (r *Run) Reasons() []Reason { return r.why.all() }

// Account is a snapshot, from any goroutine, at any time.
func (r *Run) Account() Account { return r.desk.snapshot() }

// Run submits the jobs of in until it ends, then waits until each is settled and shuts the target down. It
// blocks that long. When ctx ends it stops reading (in is closed if it is a Closer, since a read cannot be
// interrupted otherwise), waits Options.Drain for the answers of what was accepted, and has the target settle the
// rest. Errors: ErrInterrupted, ErrCorrupt, ErrHopeless (with the outcome), an error of in, of the report, of the
// target's Shutdown, ErrUnanswered. A job that was refused or not sent is no error of Run: see the account.
func (r *Run) Run(ctx context.Context, in io.Reader, to Target) (Account, error) {
	if r.o.Journal != nil {
		t := time.NewTicker(flushEvery)
		defer t.Stop()
		r.tick = t.C
	}
	f := startFeed(in, r.o, &r.landed)
	err := r.read(ctx, f, to)
	f.end(in)
	// Of several errors of the way the first tells most; the ones of the end are told as well.
	if e := r.settleAll(ctx); err == nil {
		err = e
	}
	if ctx.Err() != nil {
		if e := r.drain(); err == nil {
			err = e
		}
		if !errors.Is(err, ErrInterrupted) {
			err = errors.Join(err, ErrInterrupted)
		}
	}
	err = errors.Join(err, r.shutdown(to), r.flush(), r.notes.flush())
	return r.Account(), err
}

// read submits until the input ends (nil) or something ends the run.
func (r *Run) read(ctx context.Context, f *feed, to Target) error {
	for {
		select {
		case b, ok := <-f.out:
			if !ok {
				return nil
			}
			if err := r.formatted(b.format); err != nil {
				return err
			}
			if err := r.announce(b); err != nil {
				return err
			}
			for i := range b.items {
				if err := r.one(ctx, &b.items[i], to); err != nil {
					r.takeBack(b.items[i:])
					return err
				}
			}
			f.recycle(b)
		case <-r.tick:
			if err := r.keepUp(); err != nil {
				return err
			}
		case <-ctx.Done():
			return ErrInterrupted
		}
	}
}

// formatted tells how the input is read, once that is known. Nothing of it has been handed over then.
func (r *Run) formatted(f Format) error {
	if r.told || f == FormatAuto {
		return nil
	}
	r.told = true
	return r.o.Formatted(f)
}

// one deals with one line: nil to go on.
func (r *Run) one(ctx context.Context, it *item, to Target) error {
	switch {
	case it.last:
		if it.err != nil {
			return fmt.Errorf("line %d: %w", it.job.Line, it.err)
		}
		r.desk.line.Store(it.job.Line)
		return nil
	case it.err != nil:
		r.desk.line.Store(it.job.Line)
		r.desk.corrupt.Add(1)
		r.o.Corrupt(it.job.Line, it.err)
		if r.o.Strict {
			r.desk.open(it.job.Line)
			return fmt.Errorf("%w %d: %w", ErrCorrupt, it.job.Line, it.err)
		}
		return nil
	}
	traits := to.Traits(it.job)
	if it.was == acked || it.was == landed {
		r.skip(it, traits)
		return nil
	}
	if err := r.pace.wait(ctx); err != nil {
		return ErrInterrupted
	}
	select {
	case <-r.tick:
		if err := r.keepUp(); err != nil {
			return err
		}
	default:
	}
	t, err := r.ticket(ctx)
	if err != nil {
		return err
	}
	r.fill(t, it, traits)
	before := r.desk.line.Load()
	r.desk.accept(it.job.Line)
	if t.doubt && !traits.Once && !r.o.ResendMaybe {
		r.desk.Done(t, errInDoubt)
		return nil
	}
	err = to.Submit(ctx, it.job, t, r.desk)
	switch {
	case err == nil:
	case ctx.Err() != nil && fdengine.FateOf(err) == carry.NotSent:
		// Interrupted while it waited for room: it stays in the input, and a later run begins with it.
		r.desk.withdraw(before)
		r.free = append(r.free, t)
		return ErrInterrupted
	default:
		r.desk.Done(t, err)
	}
	return nil
}

// fill makes t the ticket of a job.
func (r *Run) fill(t *Ticket, it *item, traits Traits) {
	t.Line, t.ID = it.job.Line, append(t.ID[:0], it.job.ID...)
	t.Traits, t.Sends, t.Known, t.doubt = traits, 0, false, it.was == inDoubt
	t.before = 0
	if t.doubt {
		t.before = r.before(it)
	}
	if r.o.Ledger != nil {
		t.key = keyOf(it.job, traits)
	}
}

// skip books a job that an earlier run has dealt with.
func (r *Run) skip(it *item, traits Traits) {
	r.desk.line.Store(it.job.Line)
	r.desk.earlier.Add(1)
	if it.was == landed && r.o.Journal != nil {
		r.o.Journal.Acked(it.job.Line, it.job.Line)
	}
	if r.o.Ledger != nil {
		r.o.Ledger.earlier(keyOf(it.job, traits), traits, r.before(it), r.o.Past.Known.Has(it.job.Line))
	}
}

// before is how often earlier runs may have sent a job, at most.
func (r *Run) before(it *item) int {
	n := 1 + int(r.o.Past.Again)
	if r.o.Past.Twice.Has(it.job.Line) {
		n *= 2
	}
	return n
}
