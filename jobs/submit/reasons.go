package submit

import (
	"cmp"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
)

// Reason is why some jobs were not taken.
type Reason struct {
	Fate string `json:"fate"` // as in Note
	Text string `json:"reason"`
	Jobs int64  `json:"jobs"`
}

// A run keeps so many different reasons, of so many bytes each, and counts the rest together.
const (
	mostReasons = 16
	reasonBytes = 240
	otherReason = "other reasons"
)

// reasons counts why jobs were not taken. One goroutine.
type reasons struct {
	counts map[Reason]int64
	others map[carry.Fate]int64
}

func (r *reasons) add(fate carry.Fate, err error) {
	if r.counts == nil {
		r.counts, r.others = map[Reason]int64{}, map[carry.Fate]int64{}
	}
	key := Reason{Fate: fate.String(), Text: reasonOf(err)}
	if _, known := r.counts[key]; !known && len(r.counts) == mostReasons {
		r.others[fate]++
		return
	}
	r.counts[key]++
}

func (r *reasons) all() []Reason {
	var all []Reason
	for key, n := range r.counts {
		key.Jobs = n
		all = append(all, key)
	}
	for fate, n := range r.others {
		all = append(all, Reason{fate.String(), otherReason, n})
	}
	slices.SortFunc(all, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Fate, b.Fate), cmp.Compare(a.Text, b.Text))
	})
	return all
}

// reasonOf is the part of an error that is the same for all jobs that failed so: without the number of sends and
// without the ports of a connection.
func reasonOf(err error) string {
	var parts []string
	for err != nil {
		var ce *fdengine.CallError
		var op *net.OpError
		if errors.As(err, &ce) {
			if ce.Class != nil {
				parts = append(parts, ce.Class.Error())
			}
			if err = ce.Cause; err == nil && ce.Class == nil {
				parts = append(parts, ce.Fate.String())
			}
			continue
		}
		if errors.As(err, &op) && op.Err != nil && op.Source != nil {
			if text := op.Err.Error(); strings.HasPrefix(text, op.Op+":") {
				parts = append(parts, text)
			} else {
				parts = append(parts, op.Op, text)
			}
		} else {
			parts = append(parts, err.Error())
		}
		break
	}
	text := strings.Join(strings.Fields(strings.ToValidUTF8(strings.Join(parts, ": "), "?")), " ")
	if len(text) > reasonBytes {
		text = strings.ToValidUTF8(text[:reasonBytes], "") + "..."
	}
	return text
}
