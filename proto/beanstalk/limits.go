package beanstalk

import (
	"fmt"
	"math"
)

// Limits bound what a Scanner accepts. A zero field takes its default, a negative one means no limit.
type Limits struct {
	Line int // bytes of a reply's line with its end; default 1 KiB, more than four times the longest there is
	Body int // bytes of a body without its line end; default DefaultBody
}

const (
	// DefaultBody is the default of Limits.Body, in bytes: the largest job that a server can be told to take.
	DefaultBody = 1 << 30
	defaultLine = 1 << 10
	minLine     = len("OK 0\r\n")
)

// Validate returns all faults at once.
func (l Limits) Validate() error {
	if l.Line > 0 && l.Line < longestLine {
		return fmt.Errorf("beanstalk: Limits.Line is %d, the longest line of the protocol needs %d", l.Line, longestLine)
	}
	return nil
}

// longestLine is USING with the longest name.
const longestLine = len("USING ") + MaxName + 2

// withDefaults resolves zero and negative fields. "No limit" leaves room for sums.
func (l Limits) withDefaults() Limits {
	const none = math.MaxInt / 4
	for _, f := range []struct {
		field *int
		def   int
	}{{&l.Line, defaultLine}, {&l.Body, DefaultBody}} {
		switch {
		case *f.field == 0:
			*f.field = f.def
		case *f.field < 0 || *f.field > none:
			*f.field = none
		}
	}
	return l
}
