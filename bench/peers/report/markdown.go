package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/fdengine/fullduplex/bench/peers/contend"
	"github.com/fdengine/fullduplex/bench/peers/plan"
)

// Markdown is the report for people: the bars, an overview over the callers, and one table per table.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Beside other clients, %s\n\n", r.Date.Format("2006-01-02 15:04 MST"))
	fmt.Fprintf(&b, "`%s` on %s, %s, %d CPUs, %s, load %s\n\n", r.Command, r.Machine.System, r.Machine.CPU, r.Machine.CPUs,
		r.Machine.Go, r.Machine.Load)
	fmt.Fprintf(&b, "Cells of %v, %d rounds, of what bars compare %d (tail latencies %d), of what is far, large or comes when it likes %d. "+
		"Tables show medians over the rounds that all rows took; a bar is the median of the ratios of single rounds, in which what it compares was measured side by side. "+
		"CPU is user and system time of the client's own process. Every reply is checked, and every count compared with the server's. "+
		"%d cells, of which %d were disturbed by the machine after %d repeats. The servers are on the same machine.\n\n",
		r.Size.Cell, r.Size.Rounds, cmp.Or(r.Size.Compared, r.Size.Rounds), r.Size.Pairs, cmp.Or(r.Size.Extra, r.Size.Rounds), r.Quiet.Cells, r.Quiet.Disturbed, r.Quiet.Repeated)
	r.bars(&b)
	r.overview(&b)
	for i := range r.Tables {
		t := &r.Tables[i]
		if !t.Measured() {
			continue
		}
		fmt.Fprintf(&b, "## %s\n\n", t.Title)
		columns(&b, t)
	}
	b.WriteString("## Settings\n\n| contender | setting |\n|---|---|\n")
	for _, c := range contend.All() {
		fmt.Fprintf(&b, "| %s | %s |\n", c.Name, c.Setting)
	}
	return b.String()
}

func (r *Report) bars(b *strings.Builder) {
	b.WriteString("## Bars\n\n| bar | what | against | value | min..max | must | goal | noise | |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, o := range r.Bars {
		sign, state := "<= ", string(o.State)
		if o.AtLeast {
			sign = ">= "
		}
		if o.State == plan.OK && o.Goal != nil && o.Reached {
			state = "ok, goal reached"
		}
		noise, extremes := "", ""
		if o.Ratio != nil && o.High > 0 {
			extremes = fmt.Sprintf("%.2f..%.2f", o.Low, o.High)
		}
		if o.Noise != 0 {
			noise = fmt.Sprintf("%.2f", o.Noise)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", o.ID, o.What, o.Against, ratio("", o.Ratio), extremes,
			ratio(sign, o.Must), ratio(sign, o.Goal), noise, state)
	}
	b.WriteByte('\n')
}

func ratio(sign string, v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%s%.2f", sign, *v)
}

// overview has a column per number of callers.
func (r *Report) overview(b *strings.Builder) {
	cols := blocking(r.Tables)
	if len(cols) < 2 {
		return
	}
	for _, part := range []struct {
		title string
		m     plan.Metric
		form  func(float64) string
	}{
		{"CPU per op, blocking callers, null server", plan.CPU, nanos},
		{"ops/s, blocking callers, null server", plan.Rate, rate},
		{"p99, blocking callers, null server", plan.P99, nanos},
	} {
		fmt.Fprintf(b, "## %s\n\n", part.title)
		callersTable(b, cols, part.m, part.form, func(label string) string { return label })
		b.WriteByte('\n')
	}
}

// callersTable has a row per contender and a column per number of callers. name says what a row is called; rows
// without a name are left out.
func callersTable(b *strings.Builder, cols []*plan.Table, m plan.Metric, form func(float64) string, name func(label string) string) {
	b.WriteString("| |")
	for _, t := range cols {
		fmt.Fprintf(b, " %d |", t.Cell.Callers)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(cols)) + "\n")
	for _, label := range labels(cols) {
		if name(label) == "" {
			continue
		}
		fmt.Fprintf(b, "| %s |", name(label))
		for _, t := range cols {
			fmt.Fprintf(b, " %s |", form(t.Median(t.Row(label), m)))
		}
		b.WriteByte('\n')
	}
}

// blocking are the tables over the number of callers.
func blocking(s plan.Set) (out []*plan.Table) {
	for i := range s {
		// Tables of large values, say, have blocking callers as well, but no place in an overview over their number.
		if t := &s[i]; strings.HasPrefix(t.ID, "blocking") {
			out = append(out, t)
		}
	}
	return out
}

// labels are the rows of all tables, in the order in which they first appear.
func labels(ts []*plan.Table) (out []string) {
	seen := map[string]bool{}
	for _, t := range ts {
		for _, row := range t.Rows {
			if !seen[row.Label] && len(row.Results) > 0 && row.Label != plan.Again {
				seen[row.Label] = true
				out = append(out, row.Label)
			}
		}
	}
	return out
}

// nanos prints nanoseconds in a unit that fits.
func nanos(v float64) string {
	switch {
	case math.IsNaN(v) || v <= 0:
		return ""
	case v < 10:
		return fmt.Sprintf("%.1f ns", v)
	case v < 10_000:
		return fmt.Sprintf("%.0f ns", v)
	case v < 10_000_000:
		return fmt.Sprintf("%.0f us", v/1e3)
	}
	return fmt.Sprintf("%.0f ms", v/1e6)
}

// rate prints operations per second.
func rate(v float64) string {
	switch {
	case math.IsNaN(v) || v <= 0:
		return ""
	case v < 1000:
		return fmt.Sprintf("%.0f", v)
	case v < 1e6:
		return fmt.Sprintf("%.0f k", v/1e3)
	}
	return fmt.Sprintf("%.2f M", v/1e6)
}

func small(v float64) string {
	switch {
	case math.IsNaN(v):
		return ""
	case v == 0:
		return "0"
	case v < 100:
		return fmt.Sprintf("%.2f", v)
	case v < 100_000:
		return fmt.Sprintf("%.0f", v)
	}
	return "" // no I/O to speak of
}
