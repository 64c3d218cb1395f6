package plan

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/fdengine/fullduplex/bench/peers/contend"
	"github.com/fdengine/fullduplex/bench/peers/load"
)

// Bar is a promise about numbers. Its value is a ratio, or an absolute number where it says so.
type Bar struct {
	ID      string
	What    string   // in words
	Tables  []string // that it needs
	Must    float64  // NaN: only a goal
	Goal    float64  // NaN: only a limit
	AtLeast bool     // higher is better: the value must be at least Must
	value   func(Set) Value
	rank    func(*Table) []*Row // its peers, best first; nil when it has none
	own     []string            // labels of the rows that it compares beside the best peer
}

// Outcome is a bar with its value.
type Outcome struct {
	ID      string   `json:"id"`
	What    string   `json:"what"`
	Ratio   *float64 `json:"ratio"`          // null: not measured
	Low     float64  `json:"low,omitempty"`  // the extremes of the ratio over the rounds
	High    float64  `json:"high,omitempty"` //
	Against string   `json:"against,omitempty"`
	Noise   float64  `json:"noise,omitempty"`
	Must    *float64 `json:"must,omitempty"`
	Goal    *float64 `json:"goal,omitempty"`
	AtLeast bool     `json:"at_least,omitempty"`
	State   State    `json:"state"`
	Reached bool     `json:"goal_reached"`
}

// State says whether a bar holds.
type State string

const (
	OK         State = "ok"
	Short      State = "SHORT"      // the limit is missed
	Noisy      State = "noise"      // beyond the limit, but not beyond the noise of the engine against itself
	Open       State = "open"       // there is only a goal, and it is not reached
	Unmeasured State = "unmeasured" // something that it needs was not measured
)

// Judge evaluates the bar on what was measured.
func (b Bar) Judge(s Set) Outcome {
	v := b.value(s)
	o := Outcome{
		ID: b.ID, What: b.What, Against: v.Against, Noise: v.Noise, AtLeast: b.AtLeast,
		Ratio: known(v.Ratio), Must: known(b.Must), Goal: known(b.Goal),
	}
	if o.Ratio == nil {
		o.State = Unmeasured
		return o
	}
	o.Low, o.High = v.Low, v.High
	o.Reached = o.Goal == nil || b.holds(v.Ratio, b.Goal)
	switch {
	case o.Must == nil && !o.Reached:
		o.State = Open
	case o.Must == nil || b.holds(v.Ratio, b.Must):
		o.State = OK
	case b.holds(v.Ratio, b.Must*max(1, v.Noise)):
		o.State = Noisy
	default:
		o.State = Short
	}
	return o
}

// holds compares to two digits, as they are printed.
func (b Bar) holds(v, bound float64) bool {
	v, bound = math.Round(v*100), math.Round(bound*100)
	if b.AtLeast {
		return v >= bound
	}
	return v <= bound
}

func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// String is the line of a bar.
func (o Outcome) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "bar %s ratio=%s", o.ID, number(o.Ratio))
	if o.Ratio != nil && o.High > 0 {
		fmt.Fprintf(&b, " spread=%.2f..%.2f", o.Low, o.High)
	}
	if o.Must != nil {
		fmt.Fprintf(&b, " must=%s", number(o.Must))
	}
	if o.Goal != nil {
		fmt.Fprintf(&b, " goal=%s", number(o.Goal))
	}
	if o.Noise != 0 {
		fmt.Fprintf(&b, " noise=%s", number(&o.Noise))
	}
	return b.String() + " " + string(o.State)
}

func number(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *v)
}

var errNoBar = errors.New("plan: there is no such bar")

// Choose returns the bars that names ask for, all of them without names. A name is an id or what comes before its
// dot: B1 or B1.64.
func Choose(names []string) ([]Bar, error) {
	if len(names) == 0 {
		return Bars(), nil
	}
	var out []Bar
	for _, n := range names {
		found := false
		for _, b := range Bars() {
			if b.ID == n || strings.HasPrefix(b.ID, n+".") {
				out, found = append(out, b), true
			}
		}
		if !found {
			return nil, fmt.Errorf("%w: %q", errNoBar, n)
		}
	}
	return out, nil
}

var none = math.NaN()

func anyPeer(*Row, contend.Contender) bool          { return true }
func defaultPeer(_ *Row, c contend.Contender) bool  { return c.Default }
func multiplexing(_ *Row, c contend.Contender) bool { return !c.Sync }
func synchronous(_ *Row, c contend.Contender) bool  { return c.Sync }
func inBatches(r *Row, _ contend.Contender) bool    { return r.Cell == nil }

// Bars lists all bars.
func Bars() []Bar {
	var out []Bar
	for _, b := range []struct {
		n          int
		must, goal float64
	}{{64, 0.75, 0.60}, {256, 0.70, 0.58}, {1024, 0.70, 0.58}, {8192, 0.55, 0.40}} {
		out = append(out, best(id("B1", b.n), id("blocking", b.n), ours, "CPU per op", CPU, false, anyPeer, b.must, b.goal))
	}
	out = append(out,
		best("B2", "blocking.16", ours, "CPU per op", CPU, false, anyPeer, 0.75, 0.60),
		best("B3", "blocking.1", ours, "ops/s", Rate, true, multiplexing, 0.95, none),
		best("B3.sync", "blocking.1", ours, "ops/s", Rate, true, synchronous, none, 0.90),
		best("B4", batchTable, oursAsync, "CPU per op", CPU, false, anyPeer, 0.55, 0.35),
		best("B4.single", batchTable, oursSingle, "CPU per op", CPU, false, anyPeer, none, 0.55),
		limit("B4.raw", batchTable, oursAsync, rawAsync, "CPU per op", CPU, false, none, 4),
		best("B5", batchTable, ours, "CPU per op", CPU, false, inBatches, 0.70, 0.50),
		limit("B6.256", "redis.256", ours, rawRow, "ops/s", Rate, true, 0.85, 0.95),
		limit("B6.1024", "redis.1024", ours, rawRow, "ops/s", Rate, true, 0.80, 0.90),
		limit("B6.one.256", "redis.256", onOne(ours), rawRow, "ops/s", Rate, true, none, 0.85),
		limit("B6.one.1024", "redis.1024", onOne(ours), rawRow, "ops/s", Rate, true, none, 0.80),
		tail("B7.64", "blocking.64", 0.7, 0.4),
		tail("B7.1024", "blocking.1024", 0.5, 0.25),
		tail("B7.8192", "blocking.8192", 0.5, 0.3),
		absolute("B8.do", "blocking.64", ours, "allocations per Do", Allocs, 0, 0),
		absolute("B8.submit", batchTable, oursSingle, "allocations per Submit", Allocs, 0, 0),
		absolute("B8.lot", batchTable, oursAsync, "allocations per command of SubmitBatch", Allocs, 0, 0),
		absolute("B8.batch", batchTable, ours, "allocations per command of DoBatch", Allocs, 0, 0),
		starved("B9.1", "starved.1"),
		starved("B9.64", "starved.64"),
		replayTime(),
		absolute("B10.memory", windowsTable, replayRow, "bytes per command under way beside its encoding",
			func(r load.Result) float64 { return r.InFlight - r.Encoded }, 128, none),
		best("B11", "put", oursPut, "CPU per op", CPU, false, anyPeer, 0.50, 0.25),
		best("B11.rate", "put", oursPut, "ops/s", Rate, true, anyPeer, 0.95, none),
		limit("B11.raw", "put", oursPut, rawPut, "ops/s", Rate, true, none, 1),
		flat(),
	)
	return append(out, largeBars()...)
}
