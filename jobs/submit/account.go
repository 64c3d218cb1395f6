package submit

import (
	"fmt"
	"time"

	"github.com/fdengine/fullduplex/carry"
)

// Account counts jobs by what became of them. Accepted = Answered + NotSent + Maybe once everything is settled.
type Account struct {
	Accepted int64 `json:"accepted"` // well-formed jobs that were handed to the target
	Answered int64 `json:"answered"` // the server replied, Failed included
	Failed   int64 `json:"failed"`   // of Answered: the reply was a refusal
	NotSent  int64 `json:"not_sent"` // the server cannot have taken it
	Maybe    int64 `json:"maybe"`    // the server may have taken it
	Corrupt  int64 `json:"corrupt"`  // lines that are no job; not Accepted
	Lines    int64 `json:"lines"`    // number of the last line that was dealt with; a later run may start behind it

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

// String is the account line that every run ends with. Numbers that were not verified are shown as ?.
func (a Account) String() string {
	return fmt.Sprintf("account: accepted=%d answered=%d not_sent=%d maybe=%d lost=%s duplicated=%s rate=%.0f/s",
		a.Accepted, a.Answered, a.NotSent, a.Maybe, known(a.Lost), known(a.Duplicated), a.Rate())
}

func known(n *int64) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

func (a *Account) settle(fate carry.Fate, err error) {
	switch {
	case fate == carry.NotSent:
		a.NotSent++
	case fate == carry.MaybeExecuted:
		a.Maybe++
	case err != nil:
		a.Answered++
		a.Failed++
	default:
		a.Answered++
	}
}
