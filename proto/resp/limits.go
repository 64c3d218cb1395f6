package resp

import (
	"errors"
	"fmt"
	"math"
)

// Limits bound what a Scanner accepts. A zero field takes its default, a negative one means no limit.
type Limits struct {
	Depth    int // nested aggregates; default 128
	Elements int // values a frame still owes at any moment (a map counts keys and values); default 1<<27
	Line     int // bytes of one line with its end, for text types; default 1 MiB
	Bulk     int // bytes of one bulk payload; default DefaultBulk
}

// DefaultBulk is the default of Limits.Bulk, in bytes: what servers accept at most unless told otherwise.
const DefaultBulk = 512 << 20

const (
	defaultDepth    = 128
	defaultElements = 1 << 27
	defaultLine     = 1 << 20
	maxHeader       = 64 // bytes of a line that holds a number, its end included
)

// Validate returns all faults at once: the limits that common frames could not meet.
func (l Limits) Validate() error {
	var errs []error
	if l.Line > 0 && l.Line < minValue {
		errs = append(errs, fmt.Errorf("resp: Limits.Line is %d, at least %d is needed for an empty line", l.Line, minValue))
	}
	if l.Elements > 0 && l.Elements < 2 {
		errs = append(errs, fmt.Errorf("resp: Limits.Elements is %d, at least 2 is needed for a map of one pair", l.Elements))
	}
	return errors.Join(errs...)
}

// withDefaults resolves zero and negative fields. "No limit" is a sixteenth of what an int holds, so that
// sums and the bytes owed for announced values cannot overflow.
func (l Limits) withDefaults() Limits {
	const none = math.MaxInt / 16
	for _, f := range []struct {
		field *int
		def   int
	}{{&l.Depth, defaultDepth}, {&l.Elements, defaultElements}, {&l.Line, defaultLine}, {&l.Bulk, DefaultBulk}} {
		switch {
		case *f.field == 0:
			*f.field = f.def
		case *f.field < 0 || *f.field > none:
			*f.field = none
		}
	}
	return l
}
