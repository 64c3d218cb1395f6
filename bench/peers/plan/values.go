package plan

import (
	"fmt"
	"math"

	"github.com/fdengine/fullduplex/bench/peers/contend"
	"github.com/fdengine/fullduplex/bench/peers/load"
)

// best compares the engine with the best peer that fits.
func best(id, table, us, what string, m Metric, highest bool, fit among, must, goal float64) Bar {
	return Bar{
		ID: id, What: what + ", " + us + " / best peer", Tables: []string{table}, Must: must, Goal: goal, AtLeast: highest,
		own:  []string{us},
		rank: func(t *Table) []*Row { return t.ranked(us, m, highest, fit) },
		value: func(s Set) Value {
			t := s.Table(table)
			return over(t.Row(us), t.best(us, m, highest, fit), m)
		},
	}
}

// limit compares the engine with a row that is no peer.
func limit(id, table, us, them, what string, m Metric, highest bool, must, goal float64) Bar {
	return Bar{
		ID: id, What: what + ", " + us + " / " + them, Tables: []string{table}, Must: must, Goal: goal, AtLeast: highest,
		own: []string{us, them},
		value: func(s Set) Value {
			t := s.Table(table)
			return over(t.Row(us), t.Row(them), m)
		},
	}
}

// tail compares 99th percentiles with the best peer in its default setting.
func tail(id, table string, must, goal float64) Bar {
	return Bar{
		ID: id, What: "p99, fullduplex / best peer in its default setting", Tables: []string{table}, Must: must, Goal: goal,
		own:  []string{ours, Again},
		rank: func(t *Table) []*Row { return t.ranked(ours, P99, false, defaultPeer) },
		value: func(s Set) Value {
			t := s.Table(table)
			return noisy(t, t.Row(ours), t.best(ours, P99, false, defaultPeer))
		},
	}
}

// noisy is the ratio of the 99th percentiles of two rows, with the noise of the engine against itself.
func noisy(t *Table, us, them *Row) Value {
	v := over(us, them, P99)
	if noise := spread(us, t.Row(Again), P99); !math.IsNaN(noise) {
		v.Noise = noise
	}
	return v
}

// starved compares the engine with itself without yields.
func starved(id, table string) Bar {
	return Bar{
		ID: id, What: "p99 beside CPU-bound goroutines, fullduplex / the same without yields", Tables: []string{table},
		Must: 1.3, Goal: 1.1, own: []string{ours, unyield, Again},
		value: func(s Set) Value {
			t := s.Table(table)
			return noisy(t, t.Row(ours), t.Row(unyield))
		},
	}
}

// absolute is a number of the engine itself.
func absolute(id, table, us, what string, m Metric, must, goal float64) Bar {
	return Bar{
		ID: id, What: what, Tables: []string{table}, Must: must, Goal: goal, own: []string{us},
		value: func(s Set) Value {
			r := s.Table(table).Row(us)
			if r == nil {
				return unmeasured
			}
			var all []float64
			for _, res := range r.Results {
				all = append(all, m(res))
			}
			return summary(all, "")
		},
	}
}

// replayTime compares the time to get the commands of a cut connection answered with the time the same number takes
// when nothing is wrong.
func replayTime() Bar {
	return Bar{
		ID: "B10", What: "time to drain 1,000,000 unanswered commands after a cut / at steady rate",
		Tables: []string{windowsTable}, Must: 2, Goal: 1.2, own: []string{underWay(replayed), replayRow},
		value: func(s Set) Value {
			t := s.Table(windowsTable)
			return over(t.Row(underWay(replayed)), t.Row(replayRow), Rate)
		},
	}
}

// flat is the dearest window over the cheapest, each seen against the others of its round.
func flat() Bar {
	b := Bar{
		ID: "B12", What: "CPU per op from 1,000 to 1,000,000 under way, dearest / cheapest", Tables: []string{windowsTable},
		Must: 1.5, Goal: 1.2,
	}
	for _, n := range windows {
		b.own = append(b.own, underWay(n))
	}
	b.value = func(s Set) Value {
		t := s.Table(windowsTable)
		first := t.Row(underWay(windows[0]))
		low, high := math.Inf(1), math.Inf(-1)
		v := Value{Low: math.Inf(1), High: math.Inf(-1), Against: "itself"}
		for _, n := range windows {
			of := over(t.Row(underWay(n)), first, CPU)
			if math.IsNaN(of.Ratio) {
				return unmeasured
			}
			low, high = min(low, of.Ratio), max(high, of.Ratio)
		}
		for i := range first.Results {
			cheap, dear := math.Inf(1), math.Inf(-1)
			for _, n := range windows {
				if r := t.Row(underWay(n)); i < len(r.Results) {
					cheap, dear = min(cheap, r.Results[i].CPU), max(dear, r.Results[i].CPU)
				}
			}
			v.Low, v.High = min(v.Low, dear/cheap), max(v.High, dear/cheap)
		}
		v.Ratio = high / low
		return v
	}
	return b
}

// far says how much of what a window allows over a long round trip is reached: the window's commands in each round
// trip, or what the CPUs allow, which the row without delay shows. A round trip takes as long as the shortest that the raw connection
// had: the delay, and the threads of proxy and server that have to be woken on the way.
func far(window int, must, goal float64) Bar {
	return Bar{
		ID: id("FAR", window), Tables: []string{farTable}, Must: must, Goal: goal, AtLeast: true,
		What: "ops/s over a round trip of 20 ms / window per round trip as it is, or what there is without delay if that is less",
		own:  []string{farRow(window), nearRow, wayRow},
		value: func(s Set) Value {
			t := s.Table(farTable)
			r, near := t.Row(farRow(window)), t.Row(nearRow)
			if r == nil {
				return unmeasured
			}
			allowed := float64(window) / roundTrip.Seconds()
			if way := t.Row(wayRow); way != nil && len(way.Results) > 0 {
				trips := 0.0 // a second, one behind the other
				for _, res := range way.Results {
					trips = max(trips, res.Rate)
				}
				allowed = min(allowed, float64(window)*trips)
			}
			against := "window / round trip"
			var all []float64
			for i, res := range r.Results {
				most := allowed
				if near != nil && i < len(near.Results) && near.Results[i].Rate < most {
					most, against = near.Results[i].Rate, nearRow
				}
				if res.Rate > 0 {
					all = append(all, res.Rate/most)
				}
			}
			return summary(all, against)
		},
	}
}

// bounded says how much the heap grew before a server that does not keep up, over what the limits of the engine allow.
func bounded(size int) Bar {
	row := slowRow(size)
	return absolute(id("SLOW", size), slowTable, row, "heap before a slow server / the engine's limits in bytes", func(r load.Result) float64 {
		return r.Peak / r.Limit
	}, 1.5, none)
}

// open compares 99th percentiles at the same share of each client's own capacity.
func open(table, server string, share int) Bar {
	group := func(r *Row, _ contend.Contender) bool {
		return r.Offer != nil && r.Offer.Of != "" && offered(r) == share
	}
	return best("OPEN."+id(server, share), table, openRow(ours, share),
		fmt.Sprintf("p99 from the time due, arrivals at %d %% of capacity", share), P99, false, group, none, 1)
}

// same compares 99th percentiles when all are offered the same.
func same(table, server string) Bar {
	group := func(r *Row, _ contend.Contender) bool { return r.Offer != nil && r.Offer.Of == "" }
	return best("OPEN."+server+".same", table, sameRow(ours), "p99 from the time due, all at half of what the slowest takes", P99, false,
		group, none, 1)
}
