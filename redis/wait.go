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
func (e *entry) holds(a *args) time.Duration {
	at, unit := a.count()-1, time.Second
	switch e.wait {
	case waitLast:
	case waitFirst:
		at = 1
	case waitLastMillis:
		unit = time.Millisecond
	case waitOption:
		at, unit = blockAt(a)+1, time.Millisecond
		if at == 1 {
			return 0
		}
	default:
		return 0
	}
	if at < 1 || at >= a.count() {
		return 0
	}
	walk := a.walk()
	walk.skip(at)
	n, err := strconv.ParseFloat(string(walk.next()), 64)
	switch {
	case err != nil || n < 0 || math.IsNaN(n):
		return 0
	case n == 0 || n*float64(unit) > math.MaxInt64/2:
		return -1
	}
	return time.Duration(math.Ceil(n * float64(unit)))
}

// blockAt is the position of the BLOCK option of an XREAD or XREADGROUP; 0 without one. Options are walked by
// position, so that a group, consumer or stream of that name is none.
func blockAt(a *args) int {
	walk := a.walk()
	for i := 0; i < a.count(); i++ {
		word, behind := walk.next(), 0
		switch {
		case i == 0:
		case isWord(word, "BLOCK"):
			return i
		case isWord(word, "COUNT"):
			behind = 1
		case isWord(word, "GROUP"):
			behind = 2
		case isWord(word, "STREAMS"):
			return 0
		} // NOACK, or an option of a newer server, whose arguments are looked at as if they were options
		behind = min(behind, a.count()-1-i)
		walk.skip(behind)
		i += behind
	}
	return 0
}
