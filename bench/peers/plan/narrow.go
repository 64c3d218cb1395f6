package plan

import (
	"slices"

	"github.com/fdengine/fullduplex/bench/peers/contend"
)

// Needed keeps the tables that the bars need.
func Needed(tables []Table, bars []Bar) []Table {
	return slices.DeleteFunc(tables, func(t Table) bool {
		return !slices.ContainsFunc(bars, func(b Bar) bool { return slices.Contains(b.Tables, t.ID) })
	})
}

// bestPeers is how many peers a quick run keeps for each bar.
const bestPeers = 2

// Narrow leaves in each table only the limits, the engine, and for each bar the peers that were best in an earlier
// run. A table for which that run says nothing keeps all its rows. The second row of the engine and the rows beside
// CPU-bound goroutines stay.
func Narrow(tables []Table, bars []Bar, earlier Set) {
	for i := range tables {
		t := &tables[i]
		old := earlier.Table(t.ID)
		if old == nil {
			continue
		}
		var keep []string
		ranked := false
		for _, b := range bars {
			if b.rank == nil || !slices.Contains(b.Tables, t.ID) {
				continue
			}
			rows := b.rank(old)
			ranked = ranked || len(rows) > 0
			for _, r := range rows[:min(bestPeers, len(rows))] {
				keep = append(keep, r.Label)
			}
		}
		t.Rows = slices.DeleteFunc(t.Rows, func(r Row) bool {
			c, err := contend.Find(r.Contender)
			if err != nil || c.Group != contend.Peer {
				return false
			}
			return (ranked || noPeers(t, bars)) && !slices.Contains(keep, r.Label)
		})
	}
}

// noPeers says that no bar compares peers in t: a quick run leaves them all out.
func noPeers(t *Table, bars []Bar) bool {
	return !slices.ContainsFunc(bars, func(b Bar) bool { return b.rank != nil && slices.Contains(b.Tables, t.ID) })
}
