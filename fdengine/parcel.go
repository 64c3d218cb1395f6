package fdengine

import (
	"context"
	"slices"
	"time"

	"github.com/fdengine/fullduplex/carry"
)

const (
	parcelCommands = 1024
	parcelBytes    = 64 << 10
)

// parcel is several requests on their way into the log: what a caller makes of its commands before the lock is taken,
// which is then taken once for all of them.
type parcel struct {
	recs    []carry.Record[entry]
	encs    [][]byte
	size    int // bytes of encs
	scratch []byte
	used    int // of scratch
	draft   draft
	stream  *carry.Stream[entry] // of all; may be nil
	until   int64                // their settle-by time; 0 = none of the caller's
}

func newParcel() any { return new(parcel) }

// full says that p is worth a lock, and that more would make others wait.
func (p *parcel) full() bool { return len(p.recs) >= parcelCommands || p.size >= parcelBytes }

// add prepares cmd, whose outcome is told to done, as the next request of p. Its record is returned for the caller to complete.
// An error is NotSent, and p is as it was.
func (p *parcel) add(ctx context.Context, e *Engine, cmd Command, done Completion) (*carry.Record[entry], error) {
	if cap(p.scratch) == 0 {
		p.scratch = make([]byte, parcelBytes+carry.BigRequest)
	}
	// The capacity keeps a request that is to become a block of its own out of the shared buffer.
	room := min(len(p.scratch)-p.used, carry.BigRequest-1)
	n := len(p.recs)
	if n == cap(p.recs) {
		p.recs = slices.Grow(p.recs, 1) // the new ones are zero
	}
	p.recs = p.recs[:n+1]
	rec := &p.recs[n]
	d := &p.draft
	d.rec, d.enc = rec, p.scratch[p.used:p.used:p.used+room]
	if err := e.prepare(ctx, cmd, d); err != nil {
		*rec = carry.Record[entry]{}
		p.recs = p.recs[:n]
		return nil, err
	}
	if len(d.enc) <= room {
		p.used += len(d.enc)
	}
	p.size += len(d.enc)
	rec.Owner, rec.Stream = entry{cmd, done}, p.stream
	rec.SettleBy = int64(d.spec.Timeout) // made absolute when it is appended
	p.encs = append(p.encs, d.enc)
	return rec, nil
}

// clear empties p for the next commands of the same call.
func (p *parcel) clear() {
	clear(p.recs)
	clear(p.encs)
	p.recs, p.encs, p.size, p.used, p.draft = p.recs[:0], p.encs[:0], 0, 0, draft{}
}

// admitParcel appends the requests of p in their order, as many under one lock as the limits have room for. It returns how many:
// fewer than all with an error, NotSent.
func (e *Engine) admitParcel(ctx context.Context, p *parcel) (n int, err error) {
	for n < len(p.recs) {
		to, size := e.partOf(p, n)
		if err := e.admitPart(ctx, p, n, to, size); err != nil {
			return n, err
		}
		n = to
	}
	return n, nil
}

// partOf returns the end, and the bytes, of the requests of p from index from on that may be under way together. A single request
// may exceed the limits, alone.
func (e *Engine) partOf(p *parcel, from int) (to, size int) {
	if from == 0 && len(p.recs) <= e.room.cmds && p.size <= e.room.bytes {
		return len(p.recs), p.size
	}
	to, size = from+1, len(p.encs[from])
	for to < len(p.recs) && to-from < e.room.cmds && size+len(p.encs[to]) <= e.room.bytes {
		size += len(p.encs[to])
		to++
	}
	return to, size
}

// admitPart appends the requests of p in [from, to), of size bytes, or none of them.
func (e *Engine) admitPart(ctx context.Context, p *parcel, from, to, size int) error {
	l := &e.log
	l.Lock()
	if err := e.refuses(p.stream); err != nil {
		l.Unlock()
		return err
	}
	if e.room.first != nil || !e.fits(to-from, size) {
		if err := e.makeRoom(ctx, p.stream, to-from, size); err != nil {
			l.Unlock()
			return err
		}
	}
	for j := from; j < to; j++ {
		r := &p.recs[j]
		timeout := time.Duration(r.SettleBy)
		if r.SettleBy != p.until {
			r.SettleBy = p.until
		}
		e.append(r, p.encs[j], timeout)
	}
	e.narrow()
	wake := e.parked && e.due() && e.unpark()
	l.Unlock()
	if wake {
		e.signal()
	}
	return nil
}
