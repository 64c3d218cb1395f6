package plan

import (
	"time"

	"github.com/fdengine/fullduplex/bench/peers/load"
)

// For how long disturbed cells are measured again, so that a run has an end: 30 minutes, quick 4.
const (
	FullBudget  = 8 * time.Minute
	QuickBudget = 20 * time.Second
)

const (
	aroundCell = 200 * time.Millisecond // a process, a connection, a look at the machine
	fillCell   = 3 * time.Second        // to put a million commands under way and get them back
	mostTries  = 3                      // of a cell that the machine disturbs
)

// Estimate is how long a run of tables takes at most: with each cell tried again as often as it may be until budget is
// used up, and none after that.
func Estimate(tables []Table, bars []Bar, s Size, budget time.Duration) time.Duration {
	once := time.Duration(0)
	for i := range tables {
		t := &tables[i]
		t.Elect(nil, nil)
		compared := t.compared(bars, fictitious(t))
		for j := range t.Rows {
			r := &t.Rows[j]
			spec, rounds := t.Spec(r), r.Rounds
			for _, l := range compared {
				if l == r.Label {
					rounds = max(rounds, t.More)
				}
			}
			each := aroundCell + spec.Warm + spec.Length
			if spec.Face == load.Replay || spec.Window >= replayed {
				each += fillCell
			}
			once += time.Duration(rounds) * each
		}
	}
	// What is done by the end of the budget is at least a third of what it could have been.
	return min(mostTries*once, budget+max(0, once-budget/mostTries))
}

// fictitious is t with a result in each row.
func fictitious(t *Table) *Table {
	c := *t
	c.Rows = nil
	for _, r := range t.Rows {
		r.Results = []load.Result{{CPU: 1, Rate: 1, P99: 1, Peak: 1, Limit: 1}}
		c.Rows = append(c.Rows, r)
	}
	return &c
}
