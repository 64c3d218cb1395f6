package submit_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/jobs/state"
	"github.com/fdengine/fullduplex/jobs/submit"
)

// opened lets in be read as often as one likes.
func opened(in string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(in)), nil }
}

// Jobs without an id whose run was killed were sent again by --maybe resend, although a stream shows their lines.
func TestJobsInDoubtThatTheTargetHasAreNotSentAgain(t *testing.T) {
	in := numbered(10)
	d := newDiary(t)
	_, err := d.run(in, &fake{answer: func(c call) error {
		if c.line > 6 {
			return maybe
		}
		return nil
	}}, submit.Options{})
	require.NoError(t, err)
	past := d.past()
	require.EqualValues(t, 4, past.Doubts())

	o := submit.Options{Past: past}
	doubts, err := submit.FindDoubts(opened(in), o, &fake{})
	require.NoError(t, err)
	require.Equal(t, 4, doubts.Count())
	for _, found := range []string{"1", "7", "7", "10"} { // a copy more than there can be changes nothing
		doubts.Found([]byte(found), []byte("default"), []byte("job "+found))
	}
	doubts.Found([]byte("8"), []byte("default"), []byte("another's"))
	landed := doubts.Landed()
	require.Equal(t, []state.Range{{First: 7, Last: 7}, {First: 10, Last: 10}}, landed.Ranges())

	for _, traits := range []submit.Traits{{Once: true}, {Bare: true}} {
		none, err := submit.FindDoubts(opened(in), o, &fake{traits: func(submit.Job) submit.Traits { return traits }})
		require.NoError(t, err)
		require.Zero(t, none.Count(), "protected, or not to be told from others")
	}
	none, err := submit.FindDoubts(func() (io.ReadCloser, error) { return nil, errors.New("not opened") }, submit.Options{}, &fake{})
	require.NoError(t, err)
	require.Zero(t, none.Count())

	f := &fake{}
	l := submit.NewLedger()
	a, err := d.runLanded(in, f, submit.Options{ResendMaybe: true, Ledger: l}, landed)
	require.NoError(t, err)
	require.Equal(t, []int64{8, 9}, f.lines())
	require.Equal(t, []int64{2, 2, 8}, []int64{a.Accepted, a.Answered, a.Earlier})
	require.Zero(t, d.past().Doubts(), "and are never asked for again")
	require.Equal(t, []state.Range{{First: 8, Last: 9}}, d.past().Twice.Ranges())
}

func TestAJobInDoubtIsNotTakenForAnEqualOneThatWasTaken(t *testing.T) {
	line := `{"id":"same","queue":"q","payload":1}` + "\n"
	in := line + line + line
	past := &state.Past{Sent: 3}
	past.Acked.Add(1, 1)
	for copies, want := range [][]state.Range{nil, nil, {{First: 2, Last: 2}}, {{First: 2, Last: 3}}} {
		d, err := submit.FindDoubts(opened(in), submit.Options{Past: past}, &fake{})
		require.NoError(t, err)
		for range copies {
			d.Found([]byte("same"), []byte("q"), []byte("1"))
		}
		landed := d.Landed()
		require.Equal(t, want, slices.Clip(landed.Ranges()), "%d copies", copies)
	}
	past.Twice.Add(1, 1)
	d, err := submit.FindDoubts(opened(in), submit.Options{Past: past}, &fake{})
	require.NoError(t, err)
	d.Found([]byte("same"), []byte("q"), []byte("1"))
	d.Found([]byte("same"), []byte("q"), []byte("1"))
	landed := d.Landed()
	require.Zero(t, landed.Count(), "both may be of line 1")
}

// A run that verified after an earlier one had sent its jobs in doubt again called their copies an error.
func TestCopiesOfJobsThatWereSentAgainInDoubtAreExplainedInEachLaterRun(t *testing.T) {
	in := numbered(4)
	found := func(l *submit.Ledger, ids ...string) submit.Verdict {
		for _, id := range ids {
			l.Found([]byte(id), []byte("default"), []byte("job "+id))
		}
		return l.Verdict()
	}
	d := newDiary(t)
	_, err := d.run(in, &fake{answer: func(c call) error {
		if c.line == 3 {
			return maybe
		}
		return nil
	}}, submit.Options{})
	require.NoError(t, err)
	for range 2 { // the one that sends it again, and a later one
		l := submit.NewLedger()
		a, err := d.run(in, &fake{}, submit.Options{Ledger: l, ResendMaybe: true})
		require.NoError(t, err)
		require.Zero(t, a.Maybe)
		require.Equal(t, submit.Verdict{Duplicated: 1, Resent: 1}, found(l, "1", "2", "3", "3", "4"))
		require.Equal(t, submit.Verdict{Duplicated: 2, Resent: 1, Excess: 1}, found(l, "3"))
	}
	l := submit.NewLedger()
	_, err = d.run(in, &fake{}, submit.Options{Ledger: l})
	require.NoError(t, err)
	require.Equal(t, submit.Verdict{Duplicated: 2, Resent: 1, Excess: 1}, found(l, "1", "1", "2", "3", "3", "4"))
}

func TestCopiesThatAnEarlierRunWasAllowedToMakeAreExplained(t *testing.T) {
	past := &state.Past{Sent: 2, Again: 2}
	past.Acked.Add(1, 2)
	l := submit.NewLedger()
	r, err := submit.New(submit.Options{Past: past, Ledger: l})
	require.NoError(t, err)
	_, err = r.Run(t.Context(), strings.NewReader(numbered(2)), &fake{})
	require.NoError(t, err)
	for range 3 {
		l.Found([]byte("1"), []byte("default"), []byte("job 1"))
	}
	l.Found([]byte("2"), []byte("default"), []byte("job 2"))
	require.Equal(t, submit.Verdict{Duplicated: 2, Resent: 2}, l.Verdict())
}

func TestACopyOfAJobWhoseIDIsRememberedIsAlwaysTooMuch(t *testing.T) {
	line := `{"id":"a","queue":"q","payload":1}` + "\n"
	l := submit.NewLedger()
	f := &fake{sends: 3, traits: func(submit.Job) submit.Traits { return submit.Traits{Once: true} }, answer: func(c call) error {
		c.ticket.Known = c.line > 1
		return nil
	}}
	_, err := run(t, line+line, f, submit.Options{Ledger: l})
	require.NoError(t, err)
	found := func() { l.Found([]byte("a"), []byte("q"), []byte("1")) }
	found()
	require.Equal(t, submit.Verdict{}, l.Verdict(), "the line that repeats it is not from before")
	found()
	require.Equal(t, submit.Verdict{Duplicated: 1, Excess: 1}, l.Verdict())
}
