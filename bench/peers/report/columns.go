package report

import (
	"fmt"
	"strings"

	"github.com/fdengine/fullduplex/bench/peers/load"
	"github.com/fdengine/fullduplex/bench/peers/plan"
)

// column is one number of a row, as text.
type column struct {
	title string
	text  func(*plan.Table, *plan.Row) string
}

// of is a column that shows the median of a metric over the rounds that all rows took.
func of(title string, m plan.Metric, form func(float64) string) column {
	return column{title, func(t *plan.Table, r *plan.Row) string { return form(t.Median(r, m)) }}
}

var (
	cpuColumn  = of("CPU/op", plan.CPU, nanos)
	rateColumn = of("ops/s", plan.Rate, rate)
	p50Column  = of("p50", func(r load.Result) float64 { return r.P50 }, nanos)
	p99Column  = of("p99", plan.P99, nanos)
	p999Column = of("p99.9", func(r load.Result) float64 { return r.P999 }, nanos)
	perWrite   = of("ops/write", func(r load.Result) float64 { return r.PerWrite }, small)
	perRead    = of("ops/read", func(r load.Result) float64 { return r.PerRead }, small)
	rounds     = column{"rounds", func(t *plan.Table, r *plan.Row) string {
		text := fmt.Sprint(len(r.Results))
		if s := t.Shared(); s > 0 && s < len(r.Results) {
			text = fmt.Sprintf("%d of %s", s, text)
		}
		if r.Disturbed > 0 {
			text += fmt.Sprintf(" (%d disturbed)", r.Disturbed)
		}
		return text
	}}
)

// shown are the columns of a table: those that say what it is for.
func shown(t *plan.Table) []column {
	switch {
	case t.Cell.Face == load.Open:
		return []column{
			of("offered/s", func(r load.Result) float64 { return r.Offered }, rate), rateColumn, p50Column, p99Column, p999Column,
			of("max", func(r load.Result) float64 { return r.Max }, nanos),
			of("handed out late, p99", func(r load.Result) float64 { return r.Late }, nanos), cpuColumn, perWrite, rounds,
		}
	case t.Cell.Face == load.Flood:
		return []column{
			of("heap grew by", func(r load.Result) float64 { return r.Peak }, megabytes),
			of("limits", func(r load.Result) float64 { return r.Limit }, megabytes),
			{"MB/s", throughput}, rateColumn, cpuColumn, rounds,
		}
	case t.Cell.Value > 0 || valued(t):
		return []column{
			{"MB/s", throughput}, {"CPU/MB", perMegabyte}, rateColumn, cpuColumn, p50Column, p99Column, p999Column,
			of("allocs/op", plan.Allocs, small), of("allocated/op", func(r load.Result) float64 { return r.Bytes }, bytesOf), rounds,
		}
	case delayed(t):
		return []column{rateColumn, {"window / round trip", windowRate}, {"reached", reached}, cpuColumn, perWrite, perRead, rounds}
	}
	return []column{
		cpuColumn, rateColumn, p50Column, p99Column, p999Column, of("allocs/op", plan.Allocs, small), perWrite, perRead, rounds,
	}
}

func valued(t *plan.Table) bool {
	for i := range t.Rows {
		if t.Spec(&t.Rows[i]).Value > 0 {
			return true
		}
	}
	return false
}

func delayed(t *plan.Table) bool {
	for _, r := range t.Rows {
		if r.Delay > 0 {
			return true
		}
	}
	return false
}

// columns writes the rows of t that were measured.
func columns(b *strings.Builder, t *plan.Table) {
	cols := shown(t)
	b.WriteString("| |")
	for _, c := range cols {
		fmt.Fprintf(b, " %s |", c.title)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(cols)) + "\n")
	for i := range t.Rows {
		r := &t.Rows[i]
		if len(r.Results) == 0 {
			continue
		}
		fmt.Fprintf(b, "| %s |", r.Label)
		for _, c := range cols {
			fmt.Fprintf(b, " %s |", c.text(t, r))
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
}

// megabytesPerOp is what one command carries, its value.
func megabytesPerOp(t *plan.Table, r *plan.Row) float64 { return float64(t.Spec(r).Value) / 1e6 }

func throughput(t *plan.Table, r *plan.Row) string {
	return fmt.Sprintf("%.0f", t.Median(r, plan.Rate)*megabytesPerOp(t, r))
}

func perMegabyte(t *plan.Table, r *plan.Row) string {
	return nanos(t.Median(r, plan.CPU) / megabytesPerOp(t, r))
}

// windowRate is what the window allows when nothing else is in the way.
func windowRate(t *plan.Table, r *plan.Row) string {
	if r.Delay == 0 {
		return ""
	}
	return rate(float64(t.Spec(r).Engine) / r.Delay.Seconds())
}

func reached(t *plan.Table, r *plan.Row) string {
	if r.Delay == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", t.Median(r, plan.Rate)*r.Delay.Seconds()/float64(t.Spec(r).Engine))
}

func megabytes(v float64) string { return fmt.Sprintf("%.0f MB", v/1e6) }

func bytesOf(v float64) string {
	switch {
	case v < 10_000:
		return fmt.Sprintf("%.0f B", v)
	case v < 10_000_000:
		return fmt.Sprintf("%.0f kB", v/1e3)
	}
	return megabytes(v)
}
