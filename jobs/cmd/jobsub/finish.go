package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/jobs/target"
)

// ending is how a run ended.
type ending struct {
	account     submit.Account
	err         error // of the run
	interrupted bool
	verdict     *submit.Verdict // nil: not verified
	verifyErr   error
}

// summary is what --json prints.
type summary struct {
	submit.Account
	Seconds     float64         `json:"seconds"`
	Rate        float64         `json:"rate"` // answered jobs per second
	Target      string          `json:"target"`
	Interrupted bool            `json:"interrupted"`
	Error       string          `json:"error,omitempty"`
	Verify      *submit.Verdict `json:"verify"`
	Exit        int             `json:"exit"`
}

// finish tells what there is to tell, the account last, and returns the exit code.
func (w *work) finish(e ending) int {
	if e.verdict != nil {
		e.account.Lost, e.account.Duplicated = &e.verdict.Lost, &e.verdict.Duplicated
	}
	code := w.exitCode(e)
	w.tell(e)
	if !w.json {
		fmt.Fprintln(w.out, e.account)
		return code
	}
	s := summary{Account: e.account, Seconds: e.account.Elapsed.Seconds(), Rate: e.account.Rate(),
		Target: target.Redact(w.to), Interrupted: e.interrupted, Verify: e.verdict, Exit: code}
	if err := errors.Join(e.err, e.verifyErr); err != nil {
		s.Error = err.Error()
	}
	if err := json.NewEncoder(w.out).Encode(s); err != nil {
		fmt.Fprintf(w.err, "jobsub: %v\n", err)
		code = max(code, exitFailed)
	}
	fmt.Fprintln(w.err, e.account)
	return code
}

// exitCode is 130 after an interruption, 0 when all went well, else 1.
func (w *work) exitCode(e ending) int {
	a := e.account
	switch {
	case e.interrupted:
		return exitInterrupted
	case e.err != nil, e.verifyErr != nil, a.Failed+a.NotSent+a.Maybe+a.Unsettled() > 0:
		return exitFailed
	case e.verdict == nil:
		return exitDone
	case e.verdict.Lost+e.verdict.Unsent+e.verdict.Excess > 0, w.retries == 0 && e.verdict.Duplicated > 0, w.exact && e.verdict.Strange > 0:
		return exitFailed
	}
	return exitDone
}

// tell writes the lines before the account, each only when there is something to say.
func (w *work) tell(e ending) {
	say := func(format string, args ...any) { fmt.Fprintf(w.err, "jobsub: "+format+"\n", args...) }
	a := e.account
	if e.err != nil {
		say("%v", e.err)
	}
	if a.Corrupt > 0 {
		say("%d corrupt lines skipped", a.Corrupt)
	}
	if a.Failed > 0 {
		say("failed=%d: the server refused them", a.Failed)
	}
	if w.report == "" && a.Failed+a.NotSent+a.Maybe > 0 {
		say("--report FILE lists the jobs that were not taken")
	}
	if e.err != nil && a.Lines > 0 {
		say("lines up to %d were dealt with; --from-line %d goes on behind them", a.Lines, a.Lines+1)
	}
	if e.verifyErr != nil {
		say("%v", e.verifyErr)
	}
	if v := e.verdict; v != nil {
		if v.Landed > 0 {
			say("%d of the jobs in doubt are on the server", v.Landed)
		}
		if v.Excess > 0 {
			say("%d copies more than were sent are on the server", v.Excess)
		}
		if v.Unsent > 0 {
			say("%d jobs reported as not sent are on the server: a defect of this program", v.Unsent)
		}
		if v.Strange > 0 {
			say("%d entries on the server are not jobs of this run", v.Strange)
		}
	}
}
