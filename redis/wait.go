package redis

import (
	"math"
	"strconv"
	"time"
)

// waitForm says which argument of a blocking command is the time that the server may hold the reply. Zero there
// means for ever.
type waitForm uint8

const (
	noWait         waitForm = iota
	waitLast                // the last one, in seconds with fractions
	waitFirst               // the one behind the name, likewise
	waitLastMillis          // the last one, in milliseconds
	waitOption              // behind BLOCK, in milliseconds; without one it does not block
)

// holds is how long the server may hold the reply of a command with that entry: fdengine.Spec.Block. An argument
// that is no time gives 0: the server will refuse it at once.
func (e *entry) holds(args []arg) time.Duration {
	at, unit := len(args)-1, time.Second
	switch e.wait {
	case waitLast:
	case waitFirst:
		at = 1
	case waitLastMillis:
		unit = time.Millisecond
	case waitOption:
		at, unit = blockAt(args)+1, time.Millisecond
		if at == 1 {
			return 0
		}
	default:
		return 0
	}
	if at < 1 || at >= len(args) {
		return 0
	}
	n, ok := args[at].number()
	switch {
	case !ok || n < 0 || math.IsNaN(n):
		return 0
	case n == 0 || n*float64(unit) > math.MaxInt64/2:
		return -1
	}
	return time.Duration(math.Ceil(n * float64(unit)))
}

// number is the argument's value; false when it is none.
func (a *arg) number() (float64, bool) {
	var text string
	switch a.kind {
	case argInt:
		return float64(int64(a.n)), true
	case argUint:
		return float64(a.n), true
	case argFloat:
		return math.Float64frombits(a.n), true
	case argBytes:
		text = string(a.b)
	default:
		text = a.s
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil
}

// blockAt is the position of the BLOCK option of an XREAD or XREADGROUP; 0 without one. Options are walked by
// position, so that a group, consumer or stream of that name is none.
func blockAt(args []arg) int {
	for i := 1; i < len(args); i++ {
		a := &args[i]
		switch {
		case a.is("BLOCK"):
			return i
		case a.is("COUNT"):
			i++
		case a.is("GROUP"):
			i += 2
		case a.is("STREAMS"):
			return 0
		} // NOACK, or an option of a newer server, whose arguments are looked at as if they were options
	}
	return 0
}
