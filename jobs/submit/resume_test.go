package submit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/jobs/state"
	"github.com/fdengine/fullduplex/jobs/submit"
)

// diary is a state file and what the fakes of all runs on it were given.
type diary struct {
	t    *testing.T
	path string
}

func newDiary(t *testing.T) *diary {
	return &diary{t: t, path: filepath.Join(t.TempDir(), "state")}
}

// run is one run with the state file.
func (d *diary) run(in string, f submit.Target, o submit.Options) (submit.Account, error) {
	d.t.Helper()
	return d.runLanded(in, f, o, state.Set{})
}

// runLanded is run with lines that turned out to be taken.
func (d *diary) runLanded(in string, f submit.Target, o submit.Options, landed state.Set) (submit.Account, error) {
	d.t.Helper()
	j, err := state.Open(d.path)
	require.NoError(d.t, err)
	require.NoError(d.t, submit.CheckInput(strings.NewReader(in), j.Past()))
	require.NoError(d.t, j.Start(state.Origin{}))
	o.Journal, o.Past = j, j.Past()
	r, err := submit.New(o)
	require.NoError(d.t, err)
	r.Landed(landed)
	a, err := r.Run(context.Background(), strings.NewReader(in), f)
	require.NoError(d.t, j.Close())
	return a, err
}

func (d *diary) past() *state.Past {
	d.t.Helper()
	p, err := state.Load(d.path)
	require.NoError(d.t, err)
	return p
}

// patchy has blank lines, corrupt ones, and jobs, of which some bring an id.
func patchy(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		switch {
		case i%7 == 0:
			b.WriteString("\n")
		case i%11 == 0:
			b.WriteString("{oops\n")
		case i%2 == 0:
			fmt.Fprintf(&b, "{\"id\":\"own-%d\",\"payload\":%d}\n", i, i)
		default:
			fmt.Fprintf(&b, "{\"payload\":%d}\n", i)
		}
	}
	return b.String()
}

// isJob says whether line n of patchy is one.
func isJob(n int64) bool { return n%7 != 0 && n%11 != 0 }

func mixed(c call) error {
	switch c.line % 10 {
	case 1:
		return maybe
	case 2:
		return notSent
	case 3:
		return refused
	}
	return nil
}

func onceIfOwn(j submit.Job) submit.Traits { return submit.Traits{Once: j.Own} }

func TestTheStateFileNeverCallsALineUnsentThatWasSent(t *testing.T) {
	const lines = 3000
	in := patchy(lines)
	d := newDiary(t)
	checks := 0
	for run := range 3 {
		f := &fake{async: run == 1, traits: onceIfOwn}
		f.answer = func(c call) error {
			if run == 2 && c.line%20 < 10 {
				return nil
			}
			return mixed(c)
		}
		// Submit sees the file as it would be after a kill -9 at that moment.
		f.refuse = func(c call) error {
			if checks++; checks%25 == 0 {
				p := d.past()
				require.True(t, p.Doubt(c.line), "line %d is on its way", c.line)
			}
			return nil
		}
		a, err := d.run(in, f, submit.Options{Window: 32})
		require.NoError(t, err)
		require.Zero(t, a.Unsettled())
	}
	require.Greater(t, checks, lines)
}

// crash is what is on the disk at the moment of a kill -9, and what had been sent and answered by then.
type crash struct {
	file     []byte
	sent, ok map[int64]bool
}

// crashes runs in and takes several crashes on its way.
func crashes(t *testing.T, in string, o submit.Options, f *fake) []crash {
	d := newDiary(t)
	var all []crash
	sent, ok := map[int64]bool{}, map[int64]bool{}
	f.refuse = func(c call) error {
		sent[c.line] = true
		if len(sent)%397 == 1 {
			b, err := os.ReadFile(d.path)
			require.NoError(t, err)
			cr := crash{file: b, sent: map[int64]bool{}, ok: map[int64]bool{}}
			for n := range sent {
				cr.sent[n] = true
			}
			for n := range ok {
				cr.ok[n] = true
			}
			all = append(all, cr)
		}
		return nil
	}
	answer := f.answer
	f.answer = func(c call) error {
		err := answer(c)
		ok[c.line] = err == nil
		return err
	}
	_, err := d.run(in, f, o)
	require.NoError(t, err)
	return all
}

func TestAfterACrashNoLineIsSentTwiceExceptWhereItsIdProtectsIt(t *testing.T) {
	const lines = 3000
	in := patchy(lines)
	all := crashes(t, in, submit.Options{Window: 16}, &fake{traits: onceIfOwn, answer: mixed})
	require.Greater(t, len(all), 4)
	for _, cr := range all {
		d := newDiary(t)
		require.NoError(t, os.WriteFile(d.path, cr.file, 0o600))
		before := d.past()
		f := &fake{traits: onceIfOwn}
		a, err := d.run(in, f, submit.Options{})
		require.NoError(t, err)
		again := map[int64]bool{}
		for _, n := range f.lines() {
			require.False(t, again[n], "line %d went out twice in one run", n)
			again[n] = true
			if cr.sent[n] && n%2 == 1 {
				require.True(t, before.Free.Has(n), "line %d had been sent", n)
			}
		}
		doubt, earlier := int64(0), int64(0)
		for n := int64(1); n <= lines; n++ {
			switch {
			case !isJob(n):
			case again[n]:
			case n%2 == 0:
				require.True(t, cr.ok[n], "line %d has an id: it is sent until it is taken", n)
			case !cr.ok[n]:
				require.True(t, before.Doubt(n), "line %d is neither sent nor listed", n)
			}
			if isJob(n) && n%2 == 1 && before.Doubt(n) {
				doubt++
			}
			if isJob(n) && before.Acked.Has(n) {
				earlier++
			}
		}
		require.Equal(t, doubt, a.Maybe, "all that may have been sent are listed")
		require.EqualValues(t, len(again)+int(doubt), a.Accepted)
		require.Equal(t, earlier, a.Earlier)

		left := d.past()
		for n := int64(1); n <= lines; n++ {
			require.Equal(t, isJob(n) && n%2 == 1 && before.Doubt(n), isJob(n) && !left.Acked.Has(n), "line %d", n)
		}
		f = &fake{traits: onceIfOwn}
		a, err = d.run(in, f, submit.Options{ResendMaybe: true})
		require.NoError(t, err)
		require.Equal(t, doubt, a.Answered, "asked to, it sends these too")
		a, err = d.run(in, &fake{traits: onceIfOwn}, submit.Options{})
		require.NoError(t, err)
		require.Zero(t, a.Accepted, "then nothing is left")
	}
}

func TestALineInDoubtStaysSoWhenTheNewSendFails(t *testing.T) {
	for name, outcome := range map[string]error{"not sent": notSent, "refused": refused, "maybe": maybe} {
		t.Run(name, func(t *testing.T) {
			d := newDiary(t)
			_, err := d.run("a\n", &fake{answer: func(call) error { return maybe }}, submit.Options{})
			require.NoError(t, err)
			a, err := d.run("a\n", &fake{answer: func(call) error { return outcome }}, submit.Options{ResendMaybe: true})
			require.NoError(t, err)
			require.EqualValues(t, 1, a.Maybe, "the first send may have landed")
			p := d.past()
			require.True(t, p.Doubt(1))
		})
	}
}

func TestLinesThatWereRefusedOrNotSentGoOutAgain(t *testing.T) {
	d := newDiary(t)
	_, err := d.run(numbered(10), &fake{answer: mixed}, submit.Options{})
	require.NoError(t, err)
	f := &fake{}
	a, err := d.run(numbered(10), f, submit.Options{})
	require.NoError(t, err)
	require.Equal(t, []int64{2, 3}, f.lines())
	require.EqualValues(t, 1, a.Maybe)
	require.EqualValues(t, 7, a.Earlier)
}

func TestACorruptLineIsReportedByEachRunAndSentOnceItIsNone(t *testing.T) {
	d := newDiary(t)
	in := "short\n" + strings.Repeat("x", 50) + "\n\nlast\n"
	var corrupt []int64
	o := submit.Options{MaxLine: 10, Corrupt: func(n int64, _ error) { corrupt = append(corrupt, n) }}
	for range 2 {
		_, err := d.run(in, &fake{}, o)
		require.NoError(t, err)
	}
	require.Equal(t, []int64{2, 2}, corrupt)
	f := &fake{}
	_, err := d.run(in, f, submit.Options{MaxLine: 100})
	require.NoError(t, err)
	require.Equal(t, []int64{2}, f.lines())
}

func TestAnotherInputIsRefusedAndAGrownOneIsNot(t *testing.T) {
	d := newDiary(t)
	_, err := d.run("one\r\ntwo\nthree", &fake{}, submit.Options{})
	require.NoError(t, err)
	for in, want := range map[string]string{
		"one\r\ntwo\n":              "it has 2 lines, and 3 were dealt with",
		"":                          "it has 0 lines",
		"one\r\ntwo\nthree\n":       "",
		"one\r\ntwo\nthree\nmore":   "",
		"one\ntwo\nthree\n":         "first 3 lines have hash",
		"one\r\ntwo\nthree!\nmore":  "first 3 lines have hash",
		"one\r\ntw\nothree\nfour\n": "first 3 lines have hash",
	} {
		err := submit.CheckInput(strings.NewReader(in), d.past())
		if want == "" {
			require.NoError(t, err, "%q", in)
			continue
		}
		require.ErrorIs(t, err, submit.ErrOtherInput)
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, submit.CheckInput(errReader{errors.New("disk on fire")}, d.past()), "line 1: disk on fire")
	f := &fake{}
	_, err = d.run("one\r\ntwo\nthree\nmore\n", f, submit.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"more"}, f.payloads())
}

func TestAnInterruptedRunCallsWhatItDidNotSendUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary(t)
		j, err := state.Open(d.path)
		require.NoError(t, err)
		require.NoError(t, j.Start(state.Origin{}))
		r, err := submit.New(submit.Options{Journal: j, Past: j.Past()})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		_, err = r.Run(ctx, strings.NewReader(numbered(10)), &room{left: 4})
		require.ErrorIs(t, err, submit.ErrInterrupted)
		require.NoError(t, j.Close())
		p := d.past()
		require.Equal(t, []state.Range{{First: 1, Last: 4}}, p.Acked.Ranges())
		require.Equal(t, []state.Range{{First: 5, Last: 10}}, p.Free.Ranges(), "announced, and certainly not sent")
	})
}

func TestOutcomesReachTheDiskWhileNoNewLineComesIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary(t)
		j, err := state.Open(d.path)
		require.NoError(t, err)
		require.NoError(t, j.Start(state.Origin{}))
		r, err := submit.New(submit.Options{Journal: j, Past: j.Past()})
		require.NoError(t, err)
		in, out := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			_, err := r.Run(context.Background(), in, &fake{})
			ended <- err
		}()
		_, err = io.WriteString(out, numbered(1024)) // one batch
		require.NoError(t, err)
		time.Sleep(time.Second) // the bubble's clock
		p := d.past()
		require.EqualValues(t, 1024, p.Acked.Count())
		require.NoError(t, out.Close())
		require.NoError(t, <-ended)
		require.NoError(t, j.Close())
	})
}

func TestAFullDiskEndsTheRunBeforeAnythingIsSentThatIsNotWritten(t *testing.T) {
	d := newDiary(t)
	j, err := state.Open(d.path)
	require.NoError(t, err)
	require.NoError(t, j.Start(state.Origin{}))
	require.NoError(t, j.Close()) // each write fails from now on
	f := &fake{}
	r, err := submit.New(submit.Options{Journal: j, Past: j.Past()})
	require.NoError(t, err)
	a, err := r.Run(context.Background(), strings.NewReader(numbered(10)), f)
	require.ErrorContains(t, err, "state file")
	require.Zero(t, a.Accepted)
	require.Empty(t, f.lines())
}

func TestAReadBackAfterAResumeCoversTheEarlierRuns(t *testing.T) {
	d := newDiary(t)
	_, err := d.run(numbered(4), &fake{answer: func(c call) error {
		if c.line == 3 {
			return maybe
		}
		return nil
	}}, submit.Options{})
	require.NoError(t, err)
	l := submit.NewLedger()
	_, err = d.run(numbered(6), &fake{}, submit.Options{Ledger: l})
	require.NoError(t, err)
	for _, n := range []int{1, 2, 3, 5, 6, 6} {
		l.Found(fmt.Append(nil, n), []byte("default"), fmt.Appendf(nil, "job %d", n))
	}
	require.Equal(t, submit.Verdict{Lost: 1, Landed: 1, Duplicated: 1, Excess: 1}, l.Verdict())
}

func TestFromLineAndAStateFileExcludeEachOther(t *testing.T) {
	_, err := submit.New(submit.Options{FromLine: 5, Past: &state.Past{}})
	require.ErrorContains(t, err, "FromLine is 5")
}

func TestPartsAddUpToTheAccount(t *testing.T) {
	f := &fake{async: true, answer: mixed, traits: func(j submit.Job) submit.Traits { return submit.Traits{Part: int(j.Line % 3)} }}
	r, err := submit.New(submit.Options{})
	require.NoError(t, err)
	a, err := r.Run(context.Background(), strings.NewReader(numbered(1000)), f)
	require.NoError(t, err)
	var sum submit.Account
	for _, p := range r.Parts() {
		require.Positive(t, p.Accepted)
		sum.Accepted += p.Accepted
		sum.Answered += p.Answered
		sum.Failed += p.Failed
		sum.NotSent += p.NotSent
		sum.Maybe += p.Maybe
	}
	require.Len(t, r.Parts(), 3)
	require.Equal(t, []int64{a.Accepted, a.Answered, a.Failed, a.NotSent, a.Maybe},
		[]int64{sum.Accepted, sum.Answered, sum.Failed, sum.NotSent, sum.Maybe})
}
