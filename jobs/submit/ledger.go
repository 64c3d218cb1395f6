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

type entry struct{ sure, open, sends, seen int32 } // answered well; may be there; sends of both; found

// NewLedger returns an empty one.
func NewLedger() *Ledger { return &Ledger{jobs: make(map[uint64]entry)} }

func key(id, queue, payload []byte) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(uint64(len(id))<<32 + uint64(len(queue))) // so that the borders between the parts count
	_, _ = d.Write(id)                                        // a hash does not fail
	_, _ = d.Write(queue)
	_, _ = d.Write(payload)
	return d.Sum64()
}

func (l *Ledger) settled(k uint64, fate carry.Fate, sends int, err error) {
	e := l.jobs[k]
	e.sends += int32(sends)
	switch {
	case err == nil:
		e.sure++
	case fate != carry.NotSent:
		e.open++ // a refusal may follow a send that ran
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
	Unsent     int64 `json:"unsent"`     // reported as not sent, and yet found: a defect of the client
	Strange    int64 `json:"strange"`    // found, but not ours, or not as it was submitted
}

// Verdict compares what was found with what was submitted.
func (l *Ledger) Verdict() Verdict {
	v := Verdict{Strange: l.odd}
	for _, e := range l.jobs {
		v.Excess += int64(max(0, e.seen-max(e.sends, e.sure+e.open)))
		switch {
		case e.seen < e.sure:
			v.Lost += int64(e.sure - e.seen)
		case e.sure+e.open == 0:
			v.Unsent += int64(e.seen)
		case e.seen > e.sure+e.open:
			v.Landed += int64(e.open)
			v.Duplicated += int64(e.seen - e.sure - e.open)
		default:
			v.Landed += int64(e.seen - e.sure)
		}
	}
	return v
}
