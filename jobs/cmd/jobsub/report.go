package main

import (
	"fmt"
	"os"
)

// lateFile is the report. It is created when the target has answered, so that a run that never begins leaves the
// report of the run before; without a name it swallows what is written.
type lateFile struct {
	name string
	f    *os.File
}

func (l *lateFile) create() (err error) {
	if l.name != "" {
		l.f, err = os.Create(l.name)
	}
	return err
}

// Write implements io.Writer.
func (l *lateFile) Write(p []byte) (int, error) {
	if l.f == nil {
		return len(p), nil
	}
	return l.f.Write(p)
}

// Close implements io.Closer.
func (l *lateFile) Close() error {
	if l.f == nil {
		return nil
	}
	return l.f.Close()
}

// reportApart refuses a report that would be written over the input or the state file. A state file that was not
// there before can only be recognized once it is open, by whatever name.
func (w *work) reportApart() error {
	for _, name := range []string{w.input, w.resume} {
		if sameFile(w.report, name) {
			return fmt.Errorf("--report is %s: it would be written over %s", w.report, name)
		}
	}
	return nil
}

// sameFile says whether two names are of one file that is there.
func sameFile(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
