package panics_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/panics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Covers: S4-14
func TestCatchTurnsAPanicIntoAnErrorThatNamesItsBorder(t *testing.T) {
	cause := errors.New("boom")
	for name, tc := range map[string]struct {
		f    func() error
		want any
	}{
		"error value":  {func() error { panic(cause) }, cause},
		"string value": {func() error { panic("text") }, "text"},
	} {
		t.Run(name, func(t *testing.T) {
			err := panics.Catch("DecodeReply", tc.f)
			var pe *panics.Error
			require.ErrorAs(t, err, &pe)
			require.Equal(t, "DecodeReply", pe.Boundary)
			require.Equal(t, tc.want, pe.Value)
			require.Contains(t, string(pe.Stack), "panics_test", "the stack must show the panicking code")
			require.Contains(t, err.Error(), "DecodeReply")
		})
	}
	require.ErrorIs(t, panics.Catch("x", func() error { panic(cause) }), cause, "an error value is unwrapped")
}

// Covers: S4-14
func TestCatchSeesPanicNil(t *testing.T) {
	err := panics.Catch("x", func() error { panic(nil) })
	var ne *runtime.PanicNilError
	require.ErrorAs(t, err, &ne)
}

func TestCatchReturnsWhatTheFunctionReturns(t *testing.T) {
	cause := errors.New("plain")
	require.NoError(t, panics.Catch("x", func() error { return nil }))
	require.Same(t, cause, panics.Catch("x", func() error { return cause }))
}

// Covers: S4-14
func TestGuardTellsOfGoexitAndTheGoroutineEnds(t *testing.T) {
	told := make(chan *panics.Error, 1)
	ended := make(chan bool, 1)
	go func() {
		returned := false
		defer func() { ended <- !returned }()
		_ = panics.Guard("Complete", func(e *panics.Error) { told <- e }, func() error {
			runtime.Goexit()
			return nil
		})
		returned = true
	}()
	e := <-told
	require.Equal(t, "Complete", e.Boundary)
	require.ErrorIs(t, e, panics.ErrGoexit)
	require.True(t, <-ended, "a Goexit cannot be stopped: Guard must not return")
}

// Covers: S4-14
func TestIsolateSurvivesGoexitAndPanic(t *testing.T) {
	require.ErrorIs(t, panics.Isolate("dial", func() error { runtime.Goexit(); return nil }), panics.ErrGoexit)
	var pe *panics.Error
	require.ErrorAs(t, panics.Isolate("dial", func() error { panic(7) }), &pe)
	require.Equal(t, 7, pe.Value)
	require.NoError(t, panics.Isolate("dial", func() error { return nil }))
}

func TestCatchCostsNoAllocation(t *testing.T) {
	n := 0
	got := testing.AllocsPerRun(1000, func() {
		_ = panics.Catch("x", func() error { n++; return nil })
	})
	require.Zero(t, got)
}

// Covers: S4-14
func TestTheOnlyRecoverOfTheRepositoryIsHere(t *testing.T) {
	call := regexp.MustCompile(`\brecover\(\)`)
	seen := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(src), "\n") {
			code, _, _ := strings.Cut(line, "//")
			if !call.MatchString(code) {
				continue
			}
			seen++
			require.Equal(t, "../panics/panics.go", filepath.ToSlash(path), "recover on line %d", i+1)
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 1, seen)
}
