// Package pause waits for less than a millisecond and means it: a Go process that is otherwise idle rounds its timers
// up to the next millisecond. Where the kernel has timers that are read like files, a Timer is one of those, so that
// waiting blocks a goroutine and neither a thread nor a CPU. It knows nothing of what is waited for.
package pause

import "time"

// Timer is used by one goroutine at a time. Close it when it is no longer waited for.
type Timer struct{ alarm }

// New makes a timer. It fails when the process has no more file descriptors.
func New() (*Timer, error) {
	t := new(Timer)
	return t, t.open()
}

// Until returns when the clock, which counts from start, shows at: never before, and on linux usually less than a
// tenth of a millisecond late.
func (t *Timer) Until(start time.Time, at time.Duration) error {
	for {
		left := at - time.Since(start)
		if left <= 0 {
			return nil
		}
		if err := t.wait(left); err != nil {
			return err
		}
	}
}
