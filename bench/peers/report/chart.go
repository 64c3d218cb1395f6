package report

import (
	"bytes"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/fdengine/fullduplex/bench/peers/contend"
	"github.com/fdengine/fullduplex/bench/peers/plan"
)

const (
	chartWidth  = 30 * vg.Centimeter
	chartHeight = 13 * vg.Centimeter
)

// Chart is a picture in SVG: CPU per op and ops/s over the number of blocking callers, a line per contender, and
// dashed what no blocking client is expected to be below, raw limit and wake floor together.
func (r *Report) Chart() ([]byte, error) {
	ts := blocking(r.Tables)
	left, err := panel(ts, "CPU per operation, ns", plan.CPU, true)
	if err != nil {
		return nil, err
	}
	right, err := panel(ts, "operations per second", plan.Rate, false)
	if err != nil {
		return nil, err
	}
	right.Legend = plot.NewLegend() // one is enough
	canvas := vgsvg.New(chartWidth, chartHeight)
	plots := [][]*plot.Plot{{left, right}}
	tiles := draw.Tiles{Rows: 1, Cols: 2, PadX: vg.Centimeter, PadTop: 2 * vg.Millimeter, PadBottom: 2 * vg.Millimeter,
		PadLeft: 2 * vg.Millimeter, PadRight: 2 * vg.Millimeter}
	for i, c := range plot.Align(plots, tiles, draw.New(canvas))[0] {
		plots[0][i].Draw(c)
	}
	var b bytes.Buffer
	_, err = canvas.WriteTo(&b)
	return b.Bytes(), err
}

// panel plots one metric; floor adds the dashed line.
func panel(ts []*plan.Table, title string, m plan.Metric, floor bool) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text = "blocking callers"
	p.Legend.Top = true
	p.Legend.TextStyle.Font.Size = vg.Points(7)
	p.Add(plotter.NewGrid())
	drawn := 0
	for i, label := range labels(ts) {
		if label == "noop" {
			continue
		}
		xys := points(ts, func(t *plan.Table) float64 { return t.Row(label).Median(m) })
		if len(xys) == 0 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(xys)
		if err != nil {
			return nil, err
		}
		line.Color, dots.Color = plotutil.Color(i), plotutil.Color(i)
		dots.Shape = plotutil.Shape(i)
		dots.Radius = vg.Points(2)
		if c, err := contend.Find(label); err == nil && c.Group == contend.Ours {
			line.Width = vg.Points(2.5)
		}
		p.Add(line, dots)
		p.Legend.Add(label, line, dots)
		drawn++
	}
	if floor {
		xys := points(ts, func(t *plan.Table) float64 { return t.Row("raw limit").Median(m) + t.Row("wake floor").Median(m) })
		if len(xys) > 0 {
			line, err := plotter.NewLine(xys)
			if err != nil {
				return nil, err
			}
			line.Color = color.Black
			line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
			p.Add(line)
			p.Legend.Add("raw limit + wake floor", line)
			drawn++
		}
	}
	if drawn > 0 { // a logarithm needs data
		p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
		p.X.Tick.Marker, p.Y.Tick.Marker = callerTicks(ts), plot.LogTicks{Prec: -1}
	}
	return p, nil
}

func points(ts []*plan.Table, y func(*plan.Table) float64) (out plotter.XYs) {
	for _, t := range ts {
		if v := y(t); !math.IsNaN(v) && v > 0 {
			out = append(out, plotter.XY{X: float64(t.Cell.Callers), Y: v})
		}
	}
	return out
}

// callerTicks are the numbers of callers that were measured.
func callerTicks(ts []*plan.Table) plot.ConstantTicks {
	var out plot.ConstantTicks
	for _, t := range ts {
		n := float64(t.Cell.Callers)
		out = append(out, plot.Tick{Value: n, Label: strconv.Itoa(t.Cell.Callers)})
	}
	return out
}
