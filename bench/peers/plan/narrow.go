package plan

import (
	"slices"

	"github.com/fdengine/fullduplex/bench/peers/contend"
)

// Needed keeps the tables that the bars need.
func Needed(tables []Table, bars []Bar) []Table {
	needs := func(id string) bool {
		return slices.ContainsFunc(bars, func(b Bar) bool { return slices.Contains(b.Tables, id) })
	}
	return slices.DeleteFunc(tables, func(t Table) bool { return !needs(t.ID) })
}

// Narrow leaves in each table only the limits, the engine, and for each bar the peers that were best in an earlier
// run. A table for which that run says nothing keeps all its rows. The second row of the engine and the rows beside
// CPU-bound goroutines stay.
func Narrow(tables []Table, bars []Bar, earlier Set) {
	for i := range tables {
		t := &tables[i]
		old := earlier.Table(t.ID)
		if old == nil || t.BestOf != "" {
			continue
		}
		keep := t.compared(bars, old)
		ranked := slices.ContainsFunc(keep, func(label string) bool { return isPeer(t.Row(label)) })
		t.Rows = slices.DeleteFunc(t.Rows, func(r Row) bool {
			return isPeer(&r) && (ranked || noPeers(t, bars)) && !slices.Contains(keep, r.Label)
		})
	}
}

func isPeer(r *Row) bool {
	c, err := contend.Find(r.Contender)
	return err == nil && c.Group == contend.Peer
}

// noPeers says that no bar compares peers in t: a quick run leaves them all out.
func noPeers(t *Table, bars []Bar) bool {
	return !slices.ContainsFunc(bars, func(b Bar) bool { return b.rank != nil && slices.Contains(b.Tables, t.ID) })
}

// Elect leaves in t only those peers that were best in the table that it names: in this run, else in an earlier one,
// else the two that usually are.
func (t *Table) Elect(now, earlier Set) {
	if t.BestOf == "" {
		return
	}
	var best []string
	for _, s := range []Set{now, earlier} {
		for _, r := range s.Table(t.BestOf).ranked(ours, CPU, false, anyPeer) {
			if len(best) < bestPeers && !slices.Contains(best, r.Contender) {
				best = append(best, r.Contender)
			}
		}
	}
	if len(best) == 0 {
		best = []string{"rueidis 20us", "go-redis auto"}
	}
	t.Rows = slices.DeleteFunc(t.Rows, func(r Row) bool { return isPeer(&r) && !slices.Contains(best, r.Contender) })
}

// Rate is how many commands a second r is offered; 0 when nobody knows, or r takes what it can.
func (t *Table) Rate(r *Row) float64 {
	if r.Offer == nil {
		return 0
	}
	least := 0.0
	for i := range t.Rows {
		of := &t.Rows[i]
		if of.Label != r.Offer.Of && (r.Offer.Of != "" || of.Offer != nil) || len(of.Results) == 0 {
			continue
		}
		if rate := of.Median(Rate); least == 0 || rate < least {
			least = rate
		}
	}
	return r.Offer.Share * least
}
