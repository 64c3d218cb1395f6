package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/jobs/target"
)

// ending is how a run ended.
type ending struct {
	account     submit.Account
	err         error // of the run
	began       bool  // the run came to reading jobs
	interrupted bool
	verdict     *submit.Verdict // nil: not verified
	verifyErr   error
	parts       []target.Part
	accounts    []submit.Account // of parts; those without a job may be missing
	reasons     []submit.Reason
}

// summary is what --json prints.
type summary struct {
	submit.Account
	Seconds     float64         `json:"seconds"`
	Rate        float64         `json:"rate"` // answered jobs per second
	Targets     []part          `json:"targets"`
	Interrupted bool            `json:"interrupted"`
	Error       string          `json:"error,omitempty"`
	Reasons     []submit.Reason `json:"reasons,omitempty"`
	Verify      *submit.Verdict `json:"verify"`
	Exit        int             `json:"exit"`
}

// part is one target in a summary.
type part struct {
	Name     string `json:"name"`
	Accepted int64  `json:"accepted"`
	Answered int64  `json:"answered"`
	Failed   int64  `json:"failed"`
	NotSent  int64  `json:"not_sent"`
	Maybe    int64  `json:"maybe"`
	Once     int64  `json:"once"`
	Known    int64  `json:"known"`
	Warning  string `json:"warning,omitempty"`
}

func (e *ending) perTarget() []part {
	ps := make([]part, len(e.parts))
	for i := range ps {
		var a submit.Account
		if i < len(e.accounts) {
			a = e.accounts[i]
		}
		ps[i] = part{e.parts[i].Name, a.Accepted, a.Answered, a.Failed, a.NotSent, a.Maybe, a.Once, a.Known, e.parts[i].Warning}
	}
	return ps
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
		Targets: e.perTarget(), Interrupted: e.interrupted, Reasons: e.reasons, Verify: e.verdict, Exit: code}
	if err := errors.Join(e.err, e.verifyErr); err != nil {
		s.Error = err.Error()
	}
	_ = json.NewEncoder(w.out).Encode(s) // the sink remembers
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
	case e.verdict.Lost+e.verdict.Unsent+e.verdict.Excess > 0, w.exact && e.verdict.Strange > 0:
		return exitFailed
	case e.verdict.Duplicated > e.verdict.Resent && w.retries == 0:
		return exitFailed
	}
	return exitDone
}

// tell writes the lines before the account, each only when there is something to say.
func (w *work) tell(e ending) {
	a := e.account
	if e.err != nil {
		w.say("%v", e.err)
	}
	for _, p := range e.perTarget() {
		if len(e.parts) > 1 {
			w.say("%s: accepted=%d answered=%d failed=%d not_sent=%d maybe=%d once=%d known=%d",
				p.Name, p.Accepted, p.Answered, p.Failed, p.NotSent, p.Maybe, p.Once, p.Known)
		}
		if p.Warning != "" {
			w.say("%s: %s", p.Name, p.Warning)
		}
	}
	if a.Corrupt > 0 {
		w.say("%d corrupt lines skipped", a.Corrupt)
	}
	if a.Failed > 0 {
		w.say("failed=%d: the server refused them", a.Failed)
	}
	for _, r := range e.reasons {
		w.say("%d %s: %s", r.Jobs, outcomes[r.Fate], r.Text)
	}
	if a.Once > 0 {
		w.say("once=%d: the server remembers the ids of these jobs, so each is there exactly once", a.Once)
	}
	if a.Known > 0 {
		w.say("known=%d: ids of these were there already, from an earlier run, line or send; nothing was added", a.Known)
	}
	open := a.Failed + a.NotSent + a.Maybe
	if w.report == "" && open > 0 {
		w.say("--report FILE lists the jobs that were not taken")
	}
	w.tellNext(e, open > 0)
	if e.verifyErr != nil {
		w.say("%v", e.verifyErr)
	}
	if e.verdict != nil {
		w.tellVerdict(e.verdict)
	}
}

// outcomes are the fates of jobs that were not taken, as they are told. Never written.
var outcomes = map[string]string{
	carry.Answered.String(): "refused", carry.NotSent.String(): "not sent", carry.MaybeExecuted.String(): "maybe taken",
}

// tellNext says how to go on with a run that left something open.
func (w *work) tellNext(e ending, open bool) {
	a := e.account
	switch {
	case w.resume == "" && e.err != nil && a.Lines > 0 && a.Open == 0:
		w.say("each job up to line %d was taken; --from-line %d goes on behind it", a.Lines, a.Lines+1)
	case w.resume == "" && (e.err != nil || open) && a.Open > 0:
		w.say("the first line that is not done is %d; --from-line %d begins there, and sends those behind it that were taken (up to line %d) once more: with --resume STATEFILE a run knows which", a.Open, a.Open, a.Lines)
	case w.resume != "" && a.Maybe > 0 && !w.options.ResendMaybe:
		w.say("maybe=%d: the same command goes on with all others; with --maybe resend it sends these again too, except that some may then be there twice", a.Maybe)
	case w.resume != "" && (e.err != nil && e.began || open):
		w.say("the same command goes on with what is left")
	}
}

func (w *work) tellVerdict(v *submit.Verdict) {
	if v.Landed > 0 {
		w.say("%d of the jobs in doubt are on the server", v.Landed)
	}
	if v.Before > 0 {
		w.say("%d of the known jobs are not among what was read back: their ids were there before the run, or came in with another payload", v.Before)
	}
	if v.Resent > 0 {
		w.say("%d copies are of jobs that this or an earlier run sent again although they may have been taken", v.Resent)
	}
	if v.Excess > 0 {
		w.say("%d copies more than were sent are on the server", v.Excess)
	}
	if v.Unsent > 0 {
		w.say("%d jobs reported as not sent are on the server: a defect of this program", v.Unsent)
	}
	if v.Strange > 0 {
		w.say("%d entries on the server are not jobs of this run", v.Strange)
	}
}

// say tells the user something, each line with the name of the program.
func (s std) say(format string, args ...any) {
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		fmt.Fprintf(s.err, "jobsub: %s\n", line)
	}
}
