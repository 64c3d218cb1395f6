package submit_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/jobs/submit"
)

// lost is the end of a job whose connection died; each has other ports and another number of sends.
func lost(n int) error {
	return &fdengine.CallError{Fate: carry.MaybeExecuted, Sends: n, Class: fdengine.ErrBudget, Cause: &net.OpError{
		Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: n}, Err: os.NewSyscallError("read", syscall.ECONNRESET),
	}}
}

// Why jobs ended as they did was told by --report only.
func TestEachReasonIsKeptOnceWithItsCount(t *testing.T) {
	f := &fake{answer: func(c call) error {
		switch {
		case c.line <= 500:
			return lost(int(c.line))
		case c.line <= 800:
			return refused
		case c.line <= 900:
			return notSent
		}
		return nil
	}}
	r, err := submit.New(submit.Options{})
	require.NoError(t, err)
	_, err = r.Run(context.Background(), strings.NewReader(numbered(1000)), f)
	require.NoError(t, err)
	require.Equal(t, []submit.Reason{
		{Fate: "maybe executed", Text: "retry budget spent: read: connection reset by peer", Jobs: 500},
		{Fate: "answered", Text: "OOM command not allowed", Jobs: 300},
		{Fate: "not sent", Text: "no usable connection", Jobs: 100},
	}, r.Reasons())
}

func TestReasonsAreBoundedInNumberAndLength(t *testing.T) {
	f := &fake{answer: func(c call) error {
		return serverError(fmt.Sprintf("ERR of line %d\n%s", c.line, strings.Repeat("é", 1000)))
	}}
	r, err := submit.New(submit.Options{})
	require.NoError(t, err)
	_, err = r.Run(context.Background(), strings.NewReader(numbered(1000)), f)
	require.NoError(t, err)
	all := r.Reasons()
	require.Len(t, all, 17)
	require.Equal(t, submit.Reason{Fate: "answered", Text: "other reasons", Jobs: 984}, all[0])
	sum := int64(0)
	for _, reason := range all {
		sum += reason.Jobs
		require.LessOrEqual(t, len(reason.Text), 243)
		require.NotContains(t, reason.Text, "\n")
	}
	require.EqualValues(t, 1000, sum)
}

func TestTheFirstLineThatIsNotDoneIsKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		in    string
		fails []int64
		o     submit.Options
		want  int64
	}{
		"all taken":            {numbered(9), nil, submit.Options{}, 0},
		"some not":             {numbered(9), []int64{7, 3, 5}, submit.Options{}, 3},
		"a corrupt one":        {"{}\n{\"payload\":1}\n", nil, submit.Options{}, 0},
		"a corrupt one, at it": {"{\"payload\":1}\n{}\n{\"payload\":1}\n", nil, submit.Options{Strict: true}, 2},
	} {
		f := &fake{async: true, answer: func(c call) error {
			for _, n := range tc.fails {
				if c.line == n {
					return maybe
				}
			}
			return nil
		}}
		a, _ := run(t, tc.in, f, tc.o)
		require.Equal(t, tc.want, a.Open, name)
	}
}

// A file whose first line began with a bracket was read as plain lines, and nobody was told.
func TestTheFormatIsToldBeforeAnythingIsSent(t *testing.T) {
	no := errors.New("not this one")
	for in, want := range map[string]submit.Format{
		"\n \n[1]\n[2]\n": submit.FormatLines, "{\"payload\":1}\n{\"payload\":2}\n": submit.FormatNDJSON, "\n\n": submit.FormatAuto, "": submit.FormatAuto,
	} {
		var told []submit.Format
		f := &fake{}
		o := submit.Options{Formatted: func(got submit.Format) error {
			require.Empty(t, f.mu.calls)
			told = append(told, got)
			return nil
		}}
		_, err := run(t, in, f, o)
		require.NoError(t, err)
		if want == submit.FormatAuto {
			require.Empty(t, told)
			continue
		}
		require.Equal(t, []submit.Format{want}, told)
		require.Len(t, f.mu.calls, 2)

		f = &fake{}
		a, err := run(t, in, f, submit.Options{Formatted: func(submit.Format) error { return no }})
		require.ErrorIs(t, err, no)
		require.Empty(t, f.mu.calls)
		require.Zero(t, a.Accepted)
	}
	require.Equal(t, "ndjson", submit.FormatNDJSON.String())
	require.Equal(t, "Format(7)", submit.Format(7).String())
}

// impatient is a fake whose Shutdown, like that of the engine, returns the error of its context.
type impatient struct{ *fake }

func (f impatient) Shutdown(ctx context.Context) error {
	return errors.Join(f.fake.Shutdown(ctx), ctx.Err())
}

// The end of the wait for answers was told as "context canceled".
func TestAnInterruptedRunThatDoesNotWaitLongerSaysForHowManyJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(c call) error {
			if c.line > 2 {
				return errOpen
			}
			return nil
		}}
		ctx, cancel := context.WithCancel(context.Background())
		over := time.AfterFunc(time.Second, cancel)
		defer over.Stop()
		in, out := net.Pipe()
		go func() { _, _ = fmt.Fprint(out, numbered(5)) }() // and then nothing comes
		defer out.Close()
		r, err := submit.New(submit.Options{Drain: 3 * time.Second})
		require.NoError(t, err)
		a, err := r.Run(ctx, in, impatient{f})
		require.ErrorIs(t, err, submit.ErrInterrupted)
		require.ErrorIs(t, err, submit.ErrUnanswered)
		require.ErrorContains(t, err, "without an answer when the run was ended: 3 jobs, 3s after the interruption")
		require.NotContains(t, err.Error(), "context canceled")
		require.Equal(t, []int64{5, 2, 3}, []int64{a.Accepted, a.Answered, a.Maybe})
	})
}

func TestEveryOptionHasADefaultOrIsCheckedOrMayBeAnything(t *testing.T) {
	// Any value of these is fine, and zero means that there is none.
	free := map[string]bool{"IDPrefix": true, "Strict": true, "ResendMaybe": true, "Ledger": true}
	src, err := os.ReadFile("options.go")
	require.NoError(t, err)
	_, code, found := strings.Cut(string(src), "func (o Options) withDefaults()")
	require.True(t, found)
	fields := reflect.TypeFor[submit.Options]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		handled := regexp.MustCompile(`\bo\.` + name + `\b`).MatchString(code)
		require.NotEqual(t, free[name], handled, "%s: neither filled nor checked, or both that and free", name)
		delete(free, name)
	}
	require.Empty(t, free, "of another name")
}
