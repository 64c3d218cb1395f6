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
// of them; how many of those were sent again while in doubt; and what was found.
type entry struct {
	sure, known, open, sends, again, seen int32
	once                                  bool // the target remembers the id
}

// copies is how many there may be, sent as often as they were submitted.
func (e *entry) copies() int32 {
	if e.once { // those that were known are the one that was taken, or from before
		return max(e.sure, min(1, e.known+e.open))
	}
	return e.sure + e.known + e.open
}

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
	e.sent(t.Traits, t.before+t.Sends)
	if t.doubt && !t.Traits.Once {
		e.again += int32(t.before + t.Sends - 1)
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

// sent adds n sends of one job.
func (e *entry) sent(traits Traits, n int) {
	if e.once = e.once || traits.Once; traits.Once {
		n = min(n, 1) // whatever was sent, one copy is all that may be there
	}
	e.sends += int32(n)
}

// earlier adds a job that an earlier run has seen taken.
func (l *Ledger) earlier(k uint64, traits Traits, sends int, known bool) {
	e := l.jobs[k]
	e.sent(traits, sends)
	if !traits.Once {
		e.again += int32(sends - 1)
	}
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
	Resent     int64 `json:"resent"`     // of Duplicated: sent again although in doubt, or by an earlier run that was allowed to
	Landed     int64 `json:"landed"`     // of those whose fate was open: found
	Before     int64 `json:"before"`     // the target had their ids already, with another payload or from before the part that was read back
	Unsent     int64 `json:"unsent"`     // reported as not sent, and yet found: a defect of the client
	Strange    int64 `json:"strange"`    // found, but not ours, or not as it was submitted
}

// Verdict compares what was found with what was submitted.
func (l *Ledger) Verdict() Verdict {
	v := Verdict{Strange: l.odd}
	for _, e := range l.jobs {
		all := e.copies()
		allowed := all
		if !e.once {
			allowed = max(e.sends, all)
		}
		v.Excess += int64(max(0, e.seen-allowed))
		v.Resent += int64(max(0, min(e.seen-all, e.again)))
		more := e.seen - e.sure // beyond those that must be there
		if before := e.known - max(0, more); !e.once || e.seen == 0 {
			v.Before += int64(max(0, before))
		}
		switch {
		case more < 0:
			v.Lost -= int64(more)
		case e.sure+e.known+e.open == 0:
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
