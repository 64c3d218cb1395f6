package submit

import (
	"github.com/cespare/xxhash/v2"

	"github.com/fdengine/fullduplex/carry"
)

// Ledger remembers every job, as a hash of id, queue and payload, so that a read-back of the server can be
// compared with it. It takes about 40 bytes a job. Jobs that are equal in all three are counted together. One
// goroutine at a time.
type Ledger struct {
	jobs map[uint64]entry
	odd  int64
}

// entry counts jobs that were answered well, that the target had already, and that may be there; the sends of all
// of them; and what was found.
type entry struct{ sure, known, open, sends, seen int32 }

// NewLedger returns an empty one.
func NewLedger() *Ledger { return &Ledger{jobs: make(map[uint64]entry)} }

// keyOf is the key of a job as a read-back of its target will show it.
func keyOf(job Job, t Traits) uint64 {
	if t.Bare {
		return key(nil, nil, job.Payload)
	}
	return key(job.ID, job.Queue, job.Payload)
}

func key(id, queue, payload []byte) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(uint64(len(id))<<32 + uint64(len(queue))) // so that the borders between the parts count
	_, _ = d.Write(id)                                        // a hash does not fail
	_, _ = d.Write(queue)
	_, _ = d.Write(payload)
	return d.Sum64()
}

func (l *Ledger) settled(t *Ticket) {
	e := l.jobs[t.key]
	e.sends += int32(t.Sends)
	if t.doubt {
		e.sends++ // by the earlier run
	}
	switch {
	case t.err == nil && t.Known:
		e.known++
	case t.err == nil:
		e.sure++
	case t.fate != carry.NotSent:
		e.open++ // a refusal may follow a send that ran
	}
	l.jobs[t.key] = e
}

// earlier adds a job that an earlier run has seen taken.
func (l *Ledger) earlier(k uint64, known bool) {
	e := l.jobs[k]
	e.sends++
	if known {
		e.known++
	} else {
		e.sure++
	}
	l.jobs[k] = e
}

// Found records one job that the server has.
func (l *Ledger) Found(id, queue, payload []byte) {
	k := key(id, queue, payload)
	e, ok := l.jobs[k]
	if !ok {
		l.odd++
		return
	}
	e.seen++
	l.jobs[k] = e
}

// Verdict is what a read-back proved.
type Verdict struct {
	Lost       int64 `json:"lost"`       // answered, not found
	Duplicated int64 `json:"duplicated"` // found more often than submitted
	Excess     int64 `json:"excess"`     // of Duplicated: found more often than sent
	Landed     int64 `json:"landed"`     // of those whose fate was open: found
	Before     int64 `json:"before"`     // the target had them already, and from before the part that was read back
	Unsent     int64 `json:"unsent"`     // reported as not sent, and yet found: a defect of the client
	Strange    int64 `json:"strange"`    // found, but not ours, or not as it was submitted
}

// Verdict compares what was found with what was submitted.
func (l *Ledger) Verdict() Verdict {
	v := Verdict{Strange: l.odd}
	for _, e := range l.jobs {
		all := e.sure + e.known + e.open
		v.Excess += int64(max(0, e.seen-max(e.sends, all)))
		more := e.seen - e.sure // beyond those that must be there
		v.Before += int64(max(0, e.known-max(0, more)))
		switch {
		case more < 0:
			v.Lost -= int64(more)
		case all == 0:
			v.Unsent += int64(e.seen)
		case e.seen > all:
			v.Landed += int64(e.open)
			v.Duplicated += int64(e.seen - all)
		default:
			v.Landed += int64(max(0, more-e.known))
		}
	}
	return v
}
