package submit

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fdengine/fullduplex/jobs/state"
)

// Options configure a Run. Zero fields take the stated default, negative ones mean none where that is stated.
type Options struct {
	Format   Format        // of the input; default: by its first line
	MaxLine  int           // bytes of one line without its end; default 1 MiB
	FromLine int64         // lines before this one are skipped; default 1
	IDPrefix string        // of the ids of jobs that bring none; the line number follows
	Queue    string        // of jobs that name none; default "default"
	Window   int           // jobs in flight; default 4,096
	Rate     float64       // jobs per second; default none
	Drain    time.Duration // how long an interrupted run waits for answers; default 10 s, negative = not at all
	Strict   bool          // the first corrupt line ends the run

	Past        *state.Past    // what earlier runs on the same input did; nil = there were none. See CheckInput
	Journal     *state.Journal // is kept up to date; nil = none. Past must be its own then, and the input a file
	ResendMaybe bool           // jobs that an earlier run may have sent are sent again also where that may leave two

	Ledger  *Ledger                     // remembers every job for a later comparison; nil = none
	Report  io.Writer                   // gets one JSON line per job that was not answered well; nil = none
	Corrupt func(line int64, err error) // is told of each corrupt line, on the goroutine of Run
	// Formatted is told the format once it is known, on the goroutine of Run, before any job is handed over. An error
	// ends the run.
	Formatted func(Format) error
	Hopeless  func(err error) bool // says that after this outcome no further job will fare better; ends the run
}

func (o Options) withDefaults() Options {
	if o.MaxLine == 0 {
		o.MaxLine = 1 << 20
	}
	if o.FromLine == 0 {
		o.FromLine = 1
	}
	if o.Queue == "" {
		o.Queue = "default"
	}
	if o.Window == 0 {
		o.Window = 4096
	}
	if o.Drain == 0 {
		o.Drain = 10 * time.Second
	}
	if o.Past == nil {
		o.Past = &state.Past{Fresh: true}
	}
	if o.Report == nil {
		o.Report = io.Discard
	}
	if o.Corrupt == nil {
		o.Corrupt = func(int64, error) {}
	}
	if o.Formatted == nil {
		o.Formatted = func(Format) error { return nil }
	}
	if o.Hopeless == nil {
		o.Hopeless = func(error) bool { return false }
	}
	return o
}

// Validate returns all faults at once.
func (o Options) Validate() error {
	var errs []error
	bound := func(name string, v, min, max int64) {
		if v != 0 && (v < min || v > max) {
			errs = append(errs, fmt.Errorf("%s is %d: want %d to %d", name, v, min, max))
		}
	}
	if o.Format > FormatLines {
		errs = append(errs, fmt.Errorf("Format is %d: want at most %d", o.Format, FormatLines))
	}
	bound("MaxLine", int64(o.MaxLine), 1, 256<<20)
	bound("FromLine", o.FromLine, 1, 1<<62)
	bound("Window", int64(o.Window), 1, 1<<20)
	if o.FromLine > 1 && (o.Past != nil || o.Journal != nil) {
		errs = append(errs, fmt.Errorf("FromLine is %d: want none together with Past or Journal", o.FromLine))
	}
	if o.Rate < 0 || o.Rate > 1e9 || o.Rate != o.Rate {
		errs = append(errs, fmt.Errorf("Rate is %v: want 0 to 1e9", o.Rate))
	}
	return errors.Join(errs...)
}
