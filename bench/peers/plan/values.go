package plan

import (
	"math"

	"github.com/fdengine/fullduplex/bench/peers/contend"
)

// best compares the engine with the best peer that fits, by medians.
func best(id, table, us, what string, m Metric, highest bool, fit func(contend.Contender) bool, must, goal float64) Bar {
	return Bar{
		ID: id, What: what + ", " + us + " / best peer", Tables: []string{table}, Must: must, Goal: goal, AtLeast: highest,
		rank: func(t *Table) []*Row { return t.ranked(m, highest, fit) },
		value: func(s Set) Value {
			t := s.Table(table)
			return over(t.Row(us), t.best(m, highest, fit), m)
		},
	}
}

func over(us, them *Row, m Metric) Value {
	if us == nil || them == nil {
		return Value{Ratio: math.NaN()}
	}
	n := min(len(us.Results), len(them.Results))
	return Value{Ratio: quotient(us.First(n, m), them.First(n, m)), Against: them.Label}
}

// quotient is a / b; NaN unless both were measured.
func quotient(a, b float64) float64 {
	if a > 0 && b > 0 {
		return a / b
	}
	return math.NaN()
}

// limit compares the engine with a row that is no peer.
func limit(id, table, us, them, what string, m Metric, highest bool, must, goal float64) Bar {
	return Bar{
		ID: id, What: what + ", " + us + " / " + them, Tables: []string{table}, Must: must, Goal: goal, AtLeast: highest,
		value: func(s Set) Value {
			t := s.Table(table)
			return over(t.Row(us), t.Row(them), m)
		},
	}
}

// bestOfBatchAndAsync is B4: the peers have batches and, one of them, an asynchronous face; the best of both counts.
func bestOfBatchAndAsync() Bar {
	return Bar{
		ID: "B4", What: "CPU per op, fullduplex asynchronous / best batch or asynchronous face of a peer",
		Tables: []string{"async.4096", "batch"}, Must: 0.55, Goal: 0.35,
		rank: func(t *Table) []*Row { return t.ranked(CPU, false, anyPeer) },
		value: func(s Set) Value {
			us := s.Table("async.4096").Row(ours)
			a := over(us, s.Table("async.4096").best(CPU, false, anyPeer), CPU)
			b := over(us, s.Table("batch").best(CPU, false, anyPeer), CPU)
			if math.IsNaN(b.Ratio) || a.Ratio > b.Ratio {
				return a
			}
			return b
		},
	}
}

// tail compares 99th percentiles pair by pair with the best peer in its default setting.
func tail(id, table string, must, goal float64) Bar {
	return Bar{
		ID: id, What: "p99, fullduplex / best peer in its default setting", Tables: []string{table}, Must: must, Goal: goal,
		rank: func(t *Table) []*Row { return t.ranked(P99, false, defaultPeer) },
		value: func(s Set) Value {
			t := s.Table(table)
			return paired(t, t.Row(ours), t.best(P99, false, defaultPeer))
		},
	}
}

// paired is the median ratio of the 99th percentiles of two rows, and the noise of the engine against itself.
func paired(t *Table, us, them *Row) Value {
	if us == nil || them == nil {
		return Value{Ratio: math.NaN()}
	}
	ratio, _ := pairs(us, them, P99)
	v := Value{Ratio: ratio, Against: them.Label}
	if _, noise := pairs(us, t.Row(Again), P99); !math.IsNaN(noise) {
		v.Noise = noise
	}
	return v
}

// starved compares the engine with itself without yields.
func starved(id, table string) Bar {
	return Bar{
		ID: id, What: "p99 beside CPU-bound goroutines, fullduplex / the same without yields", Tables: []string{table},
		Must: 1.3, Goal: 1.1,
		value: func(s Set) Value {
			t := s.Table(table)
			return paired(t, t.Row(ours), t.Row(unyield))
		},
	}
}

// absolute is a number of the engine itself.
func absolute(id, table, us, what string, m Metric, must, goal float64) Bar {
	return Bar{
		ID: id, What: what, Tables: []string{table}, Must: must, Goal: goal,
		value: func(s Set) Value { return Value{Ratio: s.Table(table).Row(us).Median(m)} },
	}
}

// replayTime compares the time to get the commands of a cut connection answered with the time the same number takes
// when nothing is wrong.
func replayTime() Bar {
	steady := id("async", replayed)
	return Bar{
		ID: "B10", What: "time to drain 1,000,000 unanswered commands after a cut / at steady rate",
		Tables: []string{"replay", steady}, Must: 2, Goal: 1.2,
		value: func(s Set) Value {
			rate, again := s.Table(steady).Row(oursRaw).Median(Rate), s.Table("replay").Row(oursRaw).Median(Rate)
			return Value{Ratio: quotient(rate, again), Against: oursRaw}
		},
	}
}

// flat is the dearest window over the cheapest.
func flat() Bar {
	b := Bar{ID: "B12", What: "CPU per op from 1,000 to 1,000,000 under way, dearest / cheapest", Must: 1.5, Goal: 1.2}
	for _, n := range windows {
		if n != 4096 {
			b.Tables = append(b.Tables, id("async", n))
		}
	}
	b.value = func(s Set) Value {
		low, high := math.Inf(1), math.Inf(-1)
		for _, t := range b.Tables {
			v := s.Table(t).Row(oursRaw).Median(CPU)
			if math.IsNaN(v) || v <= 0 {
				return Value{Ratio: math.NaN()}
			}
			low, high = min(low, v), max(high, v)
		}
		return Value{Ratio: high / low, Against: oursRaw}
	}
	return b
}
