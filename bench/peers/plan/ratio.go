package plan

import (
	"math"
	"slices"

	"github.com/fdengine/fullduplex/bench/peers/contend"
)

// Value is what a bar came to: the median over the rounds of a ratio inside one round. The machine has slow phases
// that last from seconds to minutes; two cells of one round were measured next to each other, medians of two rows may
// be from different phases.
type Value struct {
	Ratio     float64 // NaN: not measured
	Low, High float64 // the extremes over the rounds
	Against   string  // the row it is a ratio to
	Noise     float64 // factor by which the engine differs from itself; 0 = the bar has none
}

var unmeasured = Value{Ratio: math.NaN()}

// ratios are a / b in each round that both took.
func ratios(a, b *Row, m Metric) (out []float64) {
	if a == nil || b == nil {
		return nil
	}
	for i := range min(len(a.Results), len(b.Results)) {
		if x, y := m(a.Results[i]), m(b.Results[i]); x > 0 && y > 0 {
			out = append(out, x/y)
		}
	}
	return out
}

// summary is the median of some ratios with their extremes.
func summary(of []float64, against string) Value {
	if len(of) == 0 {
		return unmeasured
	}
	return Value{Ratio: median(of), Low: slices.Min(of), High: slices.Max(of), Against: against}
}

// over is the ratio of two rows.
func over(us, them *Row, m Metric) Value {
	if them == nil {
		return unmeasured
	}
	return summary(ratios(us, them, m), them.Label)
}

// spread is the median of how far two rows are from each other, as a factor.
func spread(a, b *Row, m Metric) float64 {
	of := ratios(a, b, m)
	for i, r := range of {
		of[i] = max(r, 1/r)
	}
	return median(of)
}

// among says which rows a bar may compare the engine with.
type among func(*Row, contend.Contender) bool

// ranked lists the measured peers that fit, best first, by their ratio to us round by round; by their medians when we
// were not measured.
func (t *Table) ranked(us string, m Metric, highest bool, fit among) []*Row {
	if t == nil {
		return nil
	}
	type ranked struct {
		row  *Row
		cost float64
	}
	var all []ranked
	own := t.Row(us)
	for i := range t.Rows {
		r := &t.Rows[i]
		c, err := contend.Find(r.Contender)
		if err != nil || c.Group != contend.Peer || len(r.Results) == 0 || !fit(r, c) {
			continue
		}
		cost := median(ratios(r, own, m))
		if own == nil || len(own.Results) == 0 {
			cost = r.Median(m)
		}
		if highest {
			cost = 1 / cost
		}
		all = append(all, ranked{r, cost})
	}
	slices.SortStableFunc(all, func(a, b ranked) int {
		switch {
		case a.cost < b.cost || math.IsNaN(b.cost) && !math.IsNaN(a.cost):
			return -1
		case a.cost > b.cost || math.IsNaN(a.cost) && !math.IsNaN(b.cost):
			return 1
		}
		return 0
	})
	var out []*Row
	for _, r := range all {
		out = append(out, r.row)
	}
	return out
}

// best is the peer beside which we look worst.
func (t *Table) best(us string, m Metric, highest bool, fit among) *Row {
	if r := t.ranked(us, m, highest, fit); len(r) > 0 {
		return r[0]
	}
	return nil
}
