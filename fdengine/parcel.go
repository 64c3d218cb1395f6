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
	size    int      // bytes of encs
	scratch []byte   // small requests lie one behind the other in it
	used    int      // of it
	large   [][]byte // buffers for big requests, of which each keeps its own
	big     int      // room for one like the last big one; 0 = none was lately
	misses  int      // small ones since then
	draft   draft
	stream  *carry.Stream[entry] // of all; may be nil
	until   int64                // their settle-by time; 0 = none of the caller's
}

// mostMisses is how many small requests in a row end the guess that the next one is big: a copy of each is cheaper than a new buffer for
// a big one between them.
const mostMisses = 8

// largeBuffers is how many big requests a parcel can have, and so as many buffers are of use to it.
const largeBuffers = parcelBytes/carry.BigRequest + 1

func newParcel() any { return &parcel{scratch: make([]byte, parcelBytes+carry.BigRequest)} }

// full says that p is worth a lock, and that more would make others wait.
func (p *parcel) full() bool { return len(p.recs) >= parcelCommands || p.size >= parcelBytes }

// add prepares cmd, whose outcome is told to done, as the next request of p. Its record is returned for the caller to complete.
// An error is NotSent, and p is as it was.
func (p *parcel) add(ctx context.Context, e *Engine, cmd Command, done Completion) (*carry.Record[entry], error) {
	n := len(p.recs)
	if n == cap(p.recs) {
		p.recs = slices.Grow(p.recs, 1) // the new ones are zero
	}
	p.recs = p.recs[:n+1]
	rec := &p.recs[n]
	d := &p.draft
	d.rec, d.enc = rec, p.room()
	if p.big > 0 { // the next one may be as large
		d.enc = p.buffer()
	}
	room := d.enc
	if err := e.prepare(ctx, cmd, d); err != nil {
		if p.big > 0 {
			p.spare(room)
		}
		*rec = carry.Record[entry]{}
		p.recs = p.recs[:n]
		return nil, err
	}
	p.keep(d)
	rec.Owner, rec.Stream = entry{cmd, done}, p.stream
	rec.SettleBy = int64(d.spec.Timeout) // made absolute when it is appended
	p.encs = append(p.encs, d.enc)
	p.size += len(d.enc)
	return rec, nil
}

// room is where a small request goes: behind the last one. Its capacity is that of no big request, which has to have a buffer of its own,
// because the log keeps it.
func (p *parcel) room() []byte { return p.scratch[p.used : p.used : p.used+carry.BigRequest-1] }

// buffer is where a big request goes.
func (p *parcel) buffer() []byte {
	last := len(p.large) - 1
	if last < 0 {
		return make([]byte, 0, p.big)
	}
	b := p.large[last]
	p.large[last] = nil
	p.large = p.large[:last]
	return b[:0]
}

// keep makes what was encoded the next request of p.
func (p *parcel) keep(d *draft) {
	if len(d.enc) >= carry.BigRequest {
		p.big, p.misses = min(cap(d.enc), keepScratch), 0
		return
	}
	if p.big > 0 { // the guess was wrong
		if p.misses++; p.misses >= mostMisses {
			p.big = 0
		}
		p.spare(d.base)
		d.enc = append(p.room(), d.enc...)
	}
	p.used += len(d.enc)
}

// spare takes a buffer for a later big request.
func (p *parcel) spare(b []byte) {
	size := cap(b)
	for _, b := range p.large {
		size += cap(b)
	}
	if b != nil && size <= keepScratch && len(p.large) < largeBuffers {
		p.large = append(p.large, b)
	}
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

// partShare of the limits is what a part of a parcel may be: one that takes all the room waits until nothing is under way.
const partShare = 4

// partOf returns the end, and the bytes, of the requests of p from index from on that enter together. A single request
// may exceed the limits, alone.
func (e *Engine) partOf(p *parcel, from int) (to, size int) {
	cmds, bytes := e.room.cmds/partShare, e.room.bytes/partShare
	if from == 0 && len(p.recs) <= cmds && p.size <= bytes {
		return len(p.recs), p.size
	}
	to, size = from+1, len(p.encs[from])
	for to < len(p.recs) && to-from < cmds && size+len(p.encs[to]) <= bytes {
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
		if e.append(r, p.encs[j], timeout) {
			p.spare(l.Spare())
		}
	}
	e.narrow()
	wake := e.parked && e.due() && e.unpark()
	l.Unlock()
	if wake {
		e.signal()
	}
	return nil
}
