package submit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/jobs/submit"
)

func TestAReadBackFindsWhatIsLostDoubledOrStrange(t *testing.T) {
	l := submit.NewLedger()
	f := &fake{answer: func(c call) error {
		switch {
		case c.line <= 5:
			return nil
		case c.line <= 8:
			return maybe
		case c.line == 9:
			return refused
		}
		return notSent
	}}
	_, err := run(t, numbered(10), f, submit.Options{Ledger: l})
	require.NoError(t, err)
	found := func(n int) {
		l.Found(fmt.Append(nil, n), []byte("default"), fmt.Appendf(nil, "job %d", n))
	}

	found(1)
	found(2)
	found(2) // doubled
	found(3)
	found(6) // landed
	found(7)
	found(7)  // landed, and doubled
	found(10) // said to be not sent
	l.Found([]byte("4"), []byte("default"), []byte("job 4 altered"))
	l.Found([]byte("5j"), []byte("efault"), []byte("ob 5")) // the same bytes, other borders
	require.Equal(t, submit.Verdict{Lost: 2, Duplicated: 2, Excess: 3, Landed: 2, Unsent: 1, Strange: 2}, l.Verdict())
}

func TestEqualJobsAreCountedTogether(t *testing.T) {
	l := submit.NewLedger()
	in := "{\"id\":\"a\",\"queue\":\"q\",\"payload\":1}\n"
	_, err := run(t, in+in, &fake{}, submit.Options{Ledger: l})
	require.NoError(t, err)
	require.EqualValues(t, 2, l.Verdict().Lost)
	l.Found([]byte("a"), []byte("q"), []byte("1"))
	l.Found([]byte("a"), []byte("q"), []byte("1"))
	require.Equal(t, submit.Verdict{}, l.Verdict())
	l.Found([]byte("a"), []byte("q"), []byte("1"))
	require.Equal(t, submit.Verdict{Duplicated: 1, Excess: 1}, l.Verdict())
}

func TestCopiesAreInExcessOnlyBeyondTheSends(t *testing.T) {
	l := submit.NewLedger()
	_, err := run(t, "job 1\n", &fake{sends: 3}, submit.Options{Ledger: l})
	require.NoError(t, err)
	for copies, want := range []submit.Verdict{{Lost: 1}, {}, {Duplicated: 1}, {Duplicated: 2}, {Duplicated: 3, Excess: 1}} {
		require.Equal(t, want, l.Verdict(), "%d copies", copies)
		l.Found([]byte("1"), []byte("default"), []byte("job 1"))
	}
}

func TestTheAccountLine(t *testing.T) {
	a := submit.Account{Accepted: 10, Answered: 7, NotSent: 2, Maybe: 1, Elapsed: 2 * time.Second}
	require.Equal(t, "account: accepted=10 answered=7 not_sent=2 maybe=1 lost=? duplicated=? rate=4/s", a.String())
	zero, two := int64(0), int64(2)
	a.Lost, a.Duplicated = &zero, &two
	require.Equal(t, "account: accepted=10 answered=7 not_sent=2 maybe=1 lost=0 duplicated=2 rate=4/s", a.String())
	require.Zero(t, submit.Account{}.Rate())
}
