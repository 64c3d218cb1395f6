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
	chartWidth  = 32 * vg.Centimeter
	legendWidth = 5 * vg.Centimeter
	chartHeight = 13 * vg.Centimeter
)

// Chart is a picture in SVG: CPU per op and ops/s over the number of blocking callers, a line per contender, and
// dashed what no blocking client is expected to be below, raw limit and wake floor together.
func (r *Report) Chart() ([]byte, error) {
	canvas := vgsvg.New(chartWidth, chartHeight)
	if err := r.draw(draw.New(canvas)); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, err := canvas.WriteTo(&b)
	return b.Bytes(), err
}

func (r *Report) draw(on draw.Canvas) error {
	ts := blocking(r.Tables)
	left, err := panel(ts, "CPU per operation, ns", plan.CPU, true)
	if err != nil {
		return err
	}
	right, err := panel(ts, "operations per second", plan.Rate, false)
	if err != nil {
		return err
	}
	legend := left.Legend // the same for both, beside them
	left.Legend, right.Legend = plot.NewLegend(), plot.NewLegend()
	plots := [][]*plot.Plot{{left, right}}
	tiles := draw.Tiles{Rows: 1, Cols: 2, PadX: vg.Centimeter, PadTop: 2 * vg.Millimeter, PadBottom: 2 * vg.Millimeter,
		PadLeft: 2 * vg.Millimeter, PadRight: 2 * vg.Millimeter}
	for i, c := range plot.Align(plots, tiles, draw.Crop(on, 0, -legendWidth, 0, 0))[0] {
		plots[0][i].Draw(c)
	}
	legend.Draw(draw.Crop(on, chartWidth-legendWidth, -3*vg.Millimeter, 0, -vg.Centimeter))
	return nil
}

// panel plots one metric; floor adds the dashed line.
func panel(ts []*plan.Table, title string, m plan.Metric, floor bool) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text = "blocking callers"
	p.Legend.Top = true
	p.Legend.TextStyle.Font.Size = vg.Points(9)
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
		line.Color, line.Width = look(label, i)
		dots.Color, dots.Shape, dots.Radius = line.Color, plotutil.Shape(i), vg.Points(2.5)
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
	if drawn > 0 { // a logarithm needs data, and a range that does not begin at 0
		p.X.Min, p.X.Max = p.X.Min/1.1, p.X.Max*1.1
		p.Y.Min, p.Y.Max = p.Y.Min/1.2, p.Y.Max*1.2
		p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
		p.X.Tick.Marker, p.Y.Tick.Marker = callerTicks(ts), plot.LogTicks{Prec: -1}
	}
	return p, nil
}

// look gives limits a grey, the engine a thick line, and each peer a colour of its own.
func look(label string, i int) (color.Color, vg.Length) {
	c, err := contend.Find(label)
	switch {
	case err == nil && c.Group == contend.Limit:
		return color.Gray{Y: uint8(110 + 50*(i%2))}, vg.Points(1)
	case err == nil && c.Group == contend.Ours && i%2 == 1:
		return color.RGBA{R: 200, A: 255}, vg.Points(3)
	case err == nil && c.Group == contend.Ours:
		return color.RGBA{R: 240, G: 120, B: 60, A: 255}, vg.Points(2)
	}
	colours := []color.RGBA{
		{31, 119, 180, 255}, {120, 180, 225, 255}, {44, 140, 44, 255}, {140, 205, 125, 255}, {60, 60, 60, 255}, {148, 103, 189, 255},
		{95, 60, 135, 255}, {190, 165, 215, 255}, {140, 86, 75, 255}, {200, 160, 150, 255}, {23, 190, 207, 255},
	}
	return colours[i%len(colours)], vg.Points(1)
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
