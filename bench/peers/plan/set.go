package plan

import (
	"math"
	"slices"

	"github.com/fdengine/fullduplex/bench/peers/contend"
	"github.com/fdengine/fullduplex/bench/peers/load"
)

// Row is one contender in one table, with what it gave in each round.
type Row struct {
	Label     string        `json:"label"` // the contender's name, or what tells it from another row of the same
	Contender string        `json:"contender"`
	Unyield   bool          `json:"unyield,omitempty"` // run by the program whose engine does not yield
	Rounds    int           `json:"rounds"`            // how many are wanted
	Results   []load.Result `json:"results"`
	Disturbed int           `json:"disturbed,omitempty"` // of them, those the machine was not quiet for
}

// Table is one set of rows that were measured in turn.
type Table struct {
	ID     string    `json:"id"`
	Title  string    `json:"title"`
	Server string    `json:"server"` // "null", "redis", "beanstalkd"
	Cell   load.Spec `json:"cell"`   // what every row runs; contender and addresses are filled in
	Rows   []Row     `json:"rows"`
}

// Row returns the row with that label, or nil.
func (t *Table) Row(label string) *Row {
	if t == nil {
		return nil
	}
	i := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Label == label })
	if i < 0 {
		return nil
	}
	return &t.Rows[i]
}

// Metric is one number of a result.
type Metric func(load.Result) float64

// The metrics that bars and tables are made of.
func CPU(r load.Result) float64    { return r.CPU }
func Rate(r load.Result) float64   { return r.Rate }
func P99(r load.Result) float64    { return r.P99 }
func Allocs(r load.Result) float64 { return r.Allocs }

// Median is the median of a metric over the rounds; NaN without any.
func (r *Row) Median(m Metric) float64 {
	if r == nil {
		return math.NaN()
	}
	var vs []float64
	for _, res := range r.Results {
		vs = append(vs, m(res))
	}
	return median(vs)
}

// First is the median over the first n rounds. Rows of a table may have different numbers of rounds, because tail latencies
// need more; only rounds that two rows took side by side can be compared, since the machine has slow and fast phases.
func (r *Row) First(n int, m Metric) float64 {
	if r == nil {
		return math.NaN()
	}
	part := Row{Results: r.Results[:min(n, len(r.Results))]}
	return part.Median(m)
}

// shared is how many rounds all rows took that were measured at all and are no limits.
func (t *Table) shared() int {
	n := 0
	for i := range t.Rows {
		c, err := contend.Find(t.Rows[i].Contender)
		if got := len(t.Rows[i].Results); err == nil && c.Group != contend.Limit && got > 0 && (n == 0 || got < n) {
			n = got
		}
	}
	return n
}

func median(vs []float64) float64 {
	if len(vs) == 0 {
		return math.NaN()
	}
	vs = slices.Sorted(slices.Values(vs))
	if n := len(vs); n%2 == 0 {
		return (vs[n/2-1] + vs[n/2]) / 2
	}
	return vs[len(vs)/2]
}

// Set is what a run has measured, by table.
type Set []Table

// Table returns the table of that id, or nil.
func (s Set) Table(id string) *Table {
	i := slices.IndexFunc(s, func(t Table) bool { return t.ID == id })
	if i < 0 {
		return nil
	}
	return &s[i]
}

// best returns the row of the peers that fit which has the lowest median (highest: the highest); nil without any.
func (t *Table) best(m Metric, highest bool, fit func(contend.Contender) bool) *Row {
	ranked := t.ranked(m, highest, fit)
	if len(ranked) == 0 {
		return nil
	}
	return ranked[0]
}

// ranked lists the measured peers that fit, best first.
func (t *Table) ranked(m Metric, highest bool, fit func(contend.Contender) bool) []*Row {
	if t == nil {
		return nil
	}
	var out []*Row
	for i := range t.Rows {
		r := &t.Rows[i]
		c, err := contend.Find(r.Contender)
		if err == nil && c.Group == contend.Peer && len(r.Results) > 0 && fit(c) {
			out = append(out, r)
		}
	}
	n := t.shared()
	slices.SortStableFunc(out, func(a, b *Row) int {
		x, y := a.First(n, m), b.First(n, m)
		switch {
		case x == y:
			return 0
		case (x < y) != highest:
			return -1
		}
		return 1
	})
	return out
}

// pairs is the median of the ratios of two rows round by round, and of how far they are from 1 as a factor.
func pairs(a, b *Row, m Metric) (ratio, spread float64) {
	if a == nil || b == nil {
		return math.NaN(), math.NaN()
	}
	var ratios, spreads []float64
	for i := range min(len(a.Results), len(b.Results)) {
		x, y := m(a.Results[i]), m(b.Results[i])
		if x <= 0 || y <= 0 {
			continue
		}
		ratios = append(ratios, x/y)
		spreads = append(spreads, max(x/y, y/x))
	}
	return median(ratios), median(spreads)
}
