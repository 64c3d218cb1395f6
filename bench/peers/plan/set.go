package plan

import (
	"math"
	"slices"
	"time"

	"github.com/fdengine/fullduplex/bench/peers/contend"
	"github.com/fdengine/fullduplex/bench/peers/load"
)

// Row is one contender in one table, with what it gave in each round.
type Row struct {
	Label     string        `json:"label"` // the contender's name, or what tells it from another row of the same
	Contender string        `json:"contender"`
	Unyield   bool          `json:"unyield,omitempty"` // run by the program whose engine does not yield
	Rounds    int           `json:"rounds"`            // how many are wanted
	Cell      *load.Spec    `json:"cell,omitempty"`    // what it runs instead of its table's
	Offer     *Offer        `json:"offer,omitempty"`   // with the face Open: how much of it
	Group     int           `json:"group,omitempty"`   // rows of one group are measured together, groups one after the other
	Delay     time.Duration `json:"delay,omitempty"`   // that a proxy adds to each round trip
	Proxy     bool          `json:"proxy,omitempty"`   // there is one, be the delay 0
	Results   []load.Result `json:"results"`
	Disturbed int           `json:"disturbed,omitempty"` // of them, those the machine was not quiet for
}

// Offer is a rate of arrivals: a share of what another row of the same table was measured to take.
type Offer struct {
	Share float64 `json:"share"`
	Of    string  `json:"of,omitempty"` // label; empty: the one that took least
}

// Spec is what a row of t runs; contender, addresses and rates are not in it.
func (t *Table) Spec(r *Row) load.Spec {
	if r.Cell != nil {
		return *r.Cell
	}
	return t.Cell
}

// Table is one set of rows that were measured in turn.
type Table struct {
	ID     string    `json:"id"`
	Title  string    `json:"title"`
	Server string    `json:"server"`            // "null", "redis", "beanstalkd", or "slow": a null server that does not keep up
	Cell   load.Spec `json:"cell"`              // what a row runs that has none of its own
	More   int       `json:"more,omitempty"`    // rounds of the rows that bars compare, when more than theirs
	BestOf string    `json:"best_of,omitempty"` // only the peers are measured that were best in this table
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

// Shared is how many rounds all rows took that were measured at all and are no limits.
func (t *Table) Shared() (n int) {
	for i := range t.Rows {
		c, err := contend.Find(t.Rows[i].Contender)
		if got := len(t.Rows[i].Results); err == nil && c.Group != contend.Limit && got > 0 && (n == 0 || got < n) {
			n = got
		}
	}
	return n
}

// Median is the median of a row over the shared rounds; NaN without any. Rows that bars compare have further rounds,
// which may have been slower: beside other rows they would say something wrong.
func (t *Table) Median(r *Row, m Metric) float64 {
	if r == nil {
		return math.NaN()
	}
	n := len(r.Results)
	if s := t.Shared(); s > 0 {
		n = min(n, s)
	}
	return (&Row{Results: r.Results[:n]}).Median(m)
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

// Measured says that there is a result in t.
func (t *Table) Measured() bool {
	return slices.ContainsFunc(t.Rows, func(r Row) bool { return len(r.Results) > 0 })
}
