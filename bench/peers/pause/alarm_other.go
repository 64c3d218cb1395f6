//go:build !linux

package pause

import "time"

// alarm is the timer of the runtime, which may be a millisecond late.
type alarm struct{}

func (alarm) open() error { return nil }

// Close does nothing.
func (alarm) Close() error { return nil }

func (alarm) wait(d time.Duration) error {
	time.Sleep(d)
	return nil
}
