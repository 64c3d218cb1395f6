package target

import (
	"fmt"

	"github.com/fdengine/fullduplex/jobs/submit"
)

// IDs says which jobs a Redis server remembers by their id, so that each is added once however often it is sent.
type IDs uint8

const (
	IDsAuto   IDs = iota // those that brought an id; none in the embedded server
	IDsAlways            // those whose id was made of file name and line too
	IDsNever
)

// ParseIDs reads auto, always or never.
func ParseIDs(s string) (IDs, error) {
	for i, name := range []string{"auto", "always", "never"} {
		if s == name {
			return IDs(i), nil
		}
	}
	return 0, fmt.Errorf("ids %q: want auto, always or never", s)
}

func (i IDs) remembers(job submit.Job) bool {
	return i == IDsAlways || i == IDsAuto && job.Own
}

// retries is Options.Retries.
type retries int

// onceRetries is how often a job is sent again by default where that does no harm.
const onceRetries = 16

// of is how often a job that may have been taken is sent again.
func (r retries) of(once bool) int {
	if r == 0 && once {
		return onceRetries
	}
	return max(0, int(r))
}
