package submit

import (
	"fmt"
	"time"

	"github.com/fdengine/fullduplex/carry"
)

// Account counts jobs by what became of them. Accepted = Answered + NotSent + Maybe once everything is settled.
type Account struct {
	Accepted int64 `json:"accepted"`   // well-formed jobs that were handed to the target
	Answered int64 `json:"answered"`   // the server replied, Failed included
	Failed   int64 `json:"failed"`     // of Answered: the reply was a refusal
	NotSent  int64 `json:"not_sent"`   // the server cannot have taken it
	Maybe    int64 `json:"maybe"`      // the server may have taken it
	Corrupt  int64 `json:"corrupt"`    // lines that are no job; not Accepted
	Earlier  int64 `json:"earlier"`    // jobs that an earlier run has dealt with; not Accepted
	Once     int64 `json:"once"`       // of Answered: there exactly once, since the target remembers the id
	Known    int64 `json:"known"`      // of Once: the target had the id already and added nothing
	Lines    int64 `json:"lines"`      // number of the last line that was dealt with
	Open     int64 `json:"first_open"` // number of the first line whose job was not taken, or that was corrupt and ended the run; 0 = none

	Lost       *int64 `json:"lost"`       // answered jobs that a read-back did not find; nil = not verified
	Duplicated *int64 `json:"duplicated"` // copies beyond the first that a read-back found; nil = not verified

	Elapsed time.Duration `json:"-"` // from the first job to the last settled one
}

// Unsettled is how many accepted jobs are still open.
func (a Account) Unsettled() int64 { return a.Accepted - a.Answered - a.NotSent - a.Maybe }

// Rate is answered jobs per second.
func (a Account) Rate() float64 {
	if a.Elapsed <= 0 {
		return 0
	}
	return float64(a.Answered) / a.Elapsed.Seconds()
}

// String is the account line that every run ends with. Numbers that were not verified are shown as ?; once, known and
// earlier only when there are any.
func (a Account) String() string {
	s := fmt.Sprintf("account: accepted=%d answered=%d not_sent=%d maybe=%d lost=%s duplicated=%s rate=%.0f/s",
		a.Accepted, a.Answered, a.NotSent, a.Maybe, known(a.Lost), known(a.Duplicated), a.Rate())
	if a.Once > 0 {
		s += fmt.Sprintf(" once=%d known=%d", a.Once, a.Known)
	}
	if a.Earlier > 0 {
		s += fmt.Sprintf(" earlier=%d", a.Earlier)
	}
	return s
}

func known(n *int64) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

// settle books one ticket.
func (a *Account) settle(t *Ticket) {
	switch {
	case t.fate == carry.NotSent:
		a.NotSent++
		return
	case t.fate == carry.MaybeExecuted:
		a.Maybe++
		return
	}
	a.Answered++
	switch {
	case t.err != nil:
		a.Failed++
	case t.Traits.Once:
		a.Once++
		if t.Known {
			a.Known++
		}
	}
}
