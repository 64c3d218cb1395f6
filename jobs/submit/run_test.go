package submit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/jobs/submit"
)

func run(t *testing.T, in string, f *fake, o submit.Options) (submit.Account, error) {
	t.Helper()
	r, err := submit.New(o)
	require.NoError(t, err)
	return r.Run(context.Background(), strings.NewReader(in), f)
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "job %d\n", i+1)
	}
	return b.String()
}

// Covers: E-4
func TestTheAccountOfAMixedRunAddsUp(t *testing.T) {
	for _, async := range []bool{false, true} {
		t.Run(fmt.Sprintf("async %v", async), func(t *testing.T) {
			f := &fake{async: async}
			f.answer = func(c call) error {
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
			f.refuse = func(c call) error {
				if c.line%10 == 4 {
					return notSent
				}
				return nil
			}
			var report bytes.Buffer
			a, err := run(t, numbered(10_000), f, submit.Options{Window: 64, Report: &report})
			require.NoError(t, err)
			require.EqualValues(t, 10_000, a.Accepted)
			require.EqualValues(t, 1_000, a.Maybe)
			require.EqualValues(t, 2_000, a.NotSent)
			require.EqualValues(t, 1_000, a.Failed)
			require.EqualValues(t, 7_000, a.Answered)
			require.Zero(t, a.Unsettled())
			require.LessOrEqual(t, f.mu.maxOpen, 64, "the window bounds what is in flight")
			require.Equal(t, 1, f.mu.shut)

			lines := 0
			notes := map[int64]submit.Note{}
			for d := json.NewDecoder(&report); d.More(); {
				var n submit.Note
				require.NoError(t, d.Decode(&n))
				notes[n.Line] = n
				lines++
			}
			require.Len(t, notes, 4_000)
			require.Equal(t, 4_000, lines, "one note per job")
			require.Equal(t, submit.Note{Line: 11, ID: "11", Fate: "maybe executed", Error: maybe.Error()}, notes[11])
			require.Equal(t, "not sent", notes[14].Fate)
			require.Equal(t, "answered", notes[13].Fate)
		})
	}
}

func TestAJobWhoseOutcomeIsStillOpenAtTheEndIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{async: true}
		f.answer = func(c call) error {
			if c.line == 5 {
				time.Sleep(time.Minute) // the bubble's clock
			}
			return nil
		}
		a, err := run(t, numbered(5), f, submit.Options{})
		require.NoError(t, err)
		require.EqualValues(t, 5, a.Answered)
		require.Equal(t, time.Minute, a.Elapsed)
	})
}

func TestAnInterruptedRunDrainsWithinItsBoundAndSettlesTheRest(t *testing.T) {
	for name, tc := range map[string]struct {
		drain, took time.Duration
	}{
		"ten seconds by default": {0, 10 * time.Second},
		"as told":                {3 * time.Second, 3 * time.Second},
		"not at all":             {-1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{answer: func(c call) error {
					if c.line > 7 {
						return errOpen
					}
					return nil
				}}
				r, err := submit.New(submit.Options{Drain: tc.drain})
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(context.Background())
				in, out := io.Pipe()
				go func() {
					_, _ = io.WriteString(out, numbered(9))
					synctest.Wait()
					cancel()
				}()
				begin := time.Now()
				a, err := r.Run(ctx, in, f)
				require.ErrorIs(t, err, submit.ErrInterrupted)
				require.Equal(t, tc.took, time.Since(begin))
				require.EqualValues(t, 9, a.Accepted)
				require.EqualValues(t, 7, a.Answered)
				require.EqualValues(t, 2, a.Maybe)
				require.EqualValues(t, 9, a.Lines, "a later run starts behind line 9")
			})
		})
	}
}

func TestAnInterruptionWhileTheWindowIsFullIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(call) error { return errOpen }}
		r, err := submit.New(submit.Options{Window: 4, Drain: time.Second})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		a, err := r.Run(ctx, strings.NewReader(numbered(100)), f)
		require.ErrorIs(t, err, submit.ErrInterrupted)
		require.EqualValues(t, 4, a.Accepted)
		require.EqualValues(t, 4, a.Maybe)
	})
}

// room is a Target that has room for some jobs and lets the next one wait until its context ends.
type room struct {
	taker
	left int
}

func (r *room) Submit(ctx context.Context, j submit.Job, t *submit.Ticket, d submit.Done) error {
	if r.left == 0 {
		<-ctx.Done()
		return notSent
	}
	r.left--
	return r.taker.Submit(ctx, j, t, d)
}

func TestAJobInterruptedWhileItWaitsForRoomStaysInTheInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := submit.New(submit.Options{})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		a, err := r.Run(ctx, strings.NewReader("\n\n"+numbered(10)), &room{left: 4})
		require.ErrorIs(t, err, submit.ErrInterrupted)
		require.EqualValues(t, 4, a.Accepted)
		require.EqualValues(t, 4, a.Answered)
		require.EqualValues(t, 6, a.Lines, "two blank lines and four jobs: the next run begins with line 7")
	})
}

func TestAHopelessOutcomeEndsTheRun(t *testing.T) {
	f := &fake{answer: func(c call) error {
		if c.line >= 100 {
			return notSent
		}
		return nil
	}}
	a, err := run(t, numbered(100_000), f, submit.Options{
		Window:   16,
		Hopeless: func(err error) bool { return errors.Is(err, notSent) },
	})
	require.ErrorIs(t, err, submit.ErrHopeless)
	require.ErrorIs(t, err, notSent, "the outcome is named")
	require.Less(t, a.Accepted, int64(200))
	require.Zero(t, a.Unsettled())
}

func TestARateIsKeptAndNotMadeUpForAfterAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var at []time.Duration
		f := &fake{answer: func(c call) error {
			at = append(at, time.Since(begin))
			if c.line == 500 {
				time.Sleep(time.Minute) // a stall of the server, which holds the submitter up
			}
			return nil
		}}
		_, err := run(t, numbered(1000), f, submit.Options{Rate: 100})
		require.NoError(t, err)
		require.InDelta(t, 4990*time.Millisecond, at[499], float64(20*time.Millisecond))
		after := at[999] - at[500]
		require.InDelta(t, 4990*time.Millisecond, after, float64(200*time.Millisecond), "the minute's 6,000 jobs are not made up for")
	})
}

func TestAHighRateIsKeptToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		_, err := run(t, numbered(50_000), &fake{}, submit.Options{Rate: 25_000})
		require.NoError(t, err)
		require.InDelta(t, 2*time.Second, time.Since(begin), float64(20*time.Millisecond))
	})
}

func TestEachLineOfASlowPipeIsSubmittedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		in, out := io.Pipe()
		r, err := submit.New(submit.Options{})
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() {
			_, err := r.Run(context.Background(), in, f)
			ended <- err
		}()
		for i := range 5 {
			_, err := fmt.Fprintf(out, "line %d\n", i)
			require.NoError(t, err)
			synctest.Wait()
			require.EqualValues(t, i+1, r.Account().Answered)
		}
		require.NoError(t, out.Close())
		require.NoError(t, <-ended)
	})
}

func TestAReadErrorEndsTheRunAndWhatWasReadIsSettled(t *testing.T) {
	broken := errors.New("disk on fire")
	f := &fake{async: true}
	r, err := submit.New(submit.Options{})
	require.NoError(t, err)
	a, err := r.Run(context.Background(), io.MultiReader(strings.NewReader(numbered(300)), errReader{broken}), f)
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "line 301")
	require.EqualValues(t, 300, a.Answered)
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

func TestAllFaultsOfTheOptionsAreToldAtOnce(t *testing.T) {
	_, err := submit.New(submit.Options{MaxLine: -1, Window: 1 << 30, Rate: -3, FromLine: -2, Format: 9})
	for _, want := range []string{"MaxLine is -1", "Window is 1073741824", "Rate is -3", "FromLine is -2", "Format is 9"} {
		require.ErrorContains(t, err, want)
	}
}

func TestSubmittingCostsNoAllocationPerJob(t *testing.T) {
	const n = 20_000
	// Plain lines: json.Valid keeps its scanner in a sync.Pool, which forgets on purpose under the race detector.
	in := []byte(strings.Repeat("a job\n", n))
	got := testing.AllocsPerRun(1, func() {
		r, err := submit.New(submit.Options{Window: 256})
		require.NoError(t, err)
		_, err = r.Run(context.Background(), bytes.NewReader(in), taker{})
		require.NoError(t, err)
	})
	require.Less(t, got, float64(n/20), "set-up and one ticket per window slot, but nothing per job")
}

// taker answers at once and allocates nothing.
type taker struct{}

func (taker) Traits(submit.Job) submit.Traits { return submit.Traits{} }

func (taker) Submit(_ context.Context, _ submit.Job, t *submit.Ticket, d submit.Done) error {
	d.Done(t, nil)
	return nil
}
func (taker) Shutdown(context.Context) error { return nil }
