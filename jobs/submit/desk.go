package submit

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
)

// desk is where the target's goroutines and the goroutine of Run meet: outcomes are put on it in passing and
// collected in heaps. It never holds more tickets than the window, since Run makes no more.
type desk struct {
	wake     chan struct{} // cap 1: the collector's call
	accepted atomic.Int64  // these are written by Run only
	corrupt  atomic.Int64
	earlier  atomic.Int64
	line     atomic.Int64

	mu struct {
		sync.Mutex
		counts  Account // Answered, Failed, NotSent, Maybe, Open
		settled []*Ticket
		need    int // wake the collector at this many settled; 0 = it is not waiting
		start   time.Time
		end     time.Time // zero while the run lasts
	}
}

func newDesk(window int) *desk {
	d := &desk{wake: make(chan struct{}, 1)}
	d.mu.settled = make([]*Ticket, 0, window)
	return d
}

// Done implements Done.
func (d *desk) Done(t *Ticket, err error) {
	t.err, t.fate = err, fdengine.FateOf(err)
	left := err != nil
	if t.doubt && err != nil {
		t.fate = carry.MaybeExecuted // whatever became of this send, the earlier one may have landed
	}
	d.mu.Lock()
	d.mu.counts.settle(t)
	if left {
		d.openLocked(t.Line)
	}
	d.mu.settled = append(d.mu.settled, t)
	call := d.mu.need > 0 && len(d.mu.settled) >= d.mu.need
	if call {
		d.mu.need = 0
	}
	d.mu.Unlock()
	if call {
		select {
		case d.wake <- struct{}{}:
		default: // an earlier call is still unheard and will do
		}
	}
}

// open notes that the work of a line is not done.
func (d *desk) open(line int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.openLocked(line)
}

func (d *desk) openLocked(line int64) {
	if first := d.mu.counts.Open; first == 0 || line < first {
		d.mu.counts.Open = line
	}
}

func (d *desk) accept(line int64) {
	d.line.Store(line)
	if d.accepted.Add(1) == 1 {
		d.mu.Lock()
		d.mu.start = time.Now()
		d.mu.Unlock()
	}
}

// withdraw undoes accept for a job that the target did not take; line is the one before it.
func (d *desk) withdraw(line int64) {
	d.accepted.Add(-1)
	d.line.Store(line)
}

// collect returns all settled tickets, appended to into. When there are none it asks for a call once need of
// them have come in, and the caller waits on wake.
func (d *desk) collect(into []*Ticket, need int) []*Ticket {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.mu.settled) == 0 {
		d.mu.need = need
		return into
	}
	into = append(into, d.mu.settled...)
	d.mu.settled = d.mu.settled[:0]
	d.mu.need = 0
	return into
}

// stop freezes the clock of the account.
func (d *desk) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.end = time.Now()
}

func (d *desk) snapshot() Account {
	d.mu.Lock()
	a, start, end := d.mu.counts, d.mu.start, d.mu.end
	d.mu.Unlock()
	// Read after the outcomes, so that a snapshot never shows more settled jobs than accepted ones.
	a.Accepted, a.Corrupt, a.Lines = d.accepted.Load(), d.corrupt.Load(), d.line.Load()
	a.Earlier = d.earlier.Load()
	switch {
	case start.IsZero():
	case end.IsZero():
		a.Elapsed = time.Since(start)
	default:
		a.Elapsed = end.Sub(start)
	}
	return a
}
