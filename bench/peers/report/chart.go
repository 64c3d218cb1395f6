package report

import (
	"bytes"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/fdengine/fullduplex/bench/peers/contend"
	"github.com/fdengine/fullduplex/bench/peers/plan"
)

const (
	chartWidth  = 34 * vg.Centimeter
	legendWidth = 6 * vg.Centimeter
	chartHeight = 14 * vg.Centimeter
	floorLabel  = "raw limit + wake floor"
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
	on.SetColor(color.White)
	on.Fill(on.Rectangle.Path())
	ts := blocking(r.Tables)
	left, err := panel(ts, "client CPU per operation (lower is better)", plan.CPU, true, nanoTicks)
	if err != nil {
		return err
	}
	right, err := panel(ts, "operations per second (higher is better)", plan.Rate, false, rateTicks)
	if err != nil {
		return err
	}
	legend := left.Legend // the same for both, beside them
	left.Legend, right.Legend = plot.NewLegend(), plot.NewLegend()
	plots := [][]*plot.Plot{{left, right}}
	tiles := draw.Tiles{Rows: 1, Cols: 2, PadX: vg.Centimeter, PadTop: 3 * vg.Millimeter, PadBottom: 3 * vg.Millimeter,
		PadLeft: 3 * vg.Millimeter, PadRight: 3 * vg.Millimeter}
	for i, c := range plot.Align(plots, tiles, draw.Crop(on, 0, -legendWidth, 0, 0))[0] {
		plots[0][i].Draw(c)
	}
	legend.Draw(draw.Crop(on, chartWidth-legendWidth, -3*vg.Millimeter, 0, -1.5*vg.Centimeter))
	return nil
}

// curve is one line of a panel and its entry in the legend.
type curve struct {
	label string
	style style
	xys   plotter.XYs
}

// curves are in the order of the legend: the engine, its peers, the limits.
func curves(ts []*plan.Table, m plan.Metric, floor bool) (out []curve) {
	for _, label := range labels(ts) {
		xys := points(ts, func(t *plan.Table) float64 { return t.Median(t.Row(label), m) })
		if label != "noop" && len(xys) > 0 {
			out = append(out, curve{label, look(label), xys})
		}
	}
	if floor {
		xys := points(ts, func(t *plan.Table) float64 { return t.Median(t.Row("raw limit"), m) + t.Median(t.Row("wake floor"), m) })
		if len(xys) > 0 {
			out = append(out, curve{floorLabel, style{place: 3, colour: color.RGBA{A: 255}, width: 1.2, dashes: []vg.Length{4, 3}}, xys})
		}
	}
	slices.SortStableFunc(out, func(a, b curve) int { return a.style.place - b.style.place })
	return out
}

// panel plots one metric; floor adds the dashed line.
func panel(ts []*plan.Table, title string, m plan.Metric, floor bool, ticks func(low, high float64) []plot.Tick) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text = title, "blocking callers"
	p.Title.Padding = 3 * vg.Millimeter
	for _, s := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		s.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: 11}
	}
	p.Title.TextStyle.Font.Size = 13
	p.Legend.Top, p.Legend.Left, p.Legend.Padding, p.Legend.ThumbnailWidth = true, true, 1.6*vg.Millimeter, 9*vg.Millimeter
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{Y: 215}, color.Gray{Y: 215}
	p.Add(grid)
	all := curves(ts, m, floor)
	for _, c := range slices.Backward(all) { // the engine on top
		line, dots, err := c.draw()
		if err != nil {
			return nil, err
		}
		p.Add(line)
		if c.style.shape != nil {
			p.Add(dots)
		}
	}
	for _, c := range all {
		line, dots, err := c.draw()
		if err != nil {
			return nil, err
		}
		if c.style.shape == nil {
			p.Legend.Add(c.label, line)
		} else {
			p.Legend.Add(c.label, line, dots)
		}
	}
	if len(all) > 0 { // a logarithm needs data, and a range that does not begin at 0
		p.X.Min, p.X.Max = p.X.Min/1.1, p.X.Max*1.1
		p.Y.Min, p.Y.Max = p.Y.Min/1.2, p.Y.Max*1.2
		p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
		p.X.Tick.Marker, p.Y.Tick.Marker = callerTicks(ts), plot.TickerFunc(ticks)
	}
	return p, nil
}

func (c curve) draw() (*plotter.Line, *plotter.Scatter, error) {
	line, dots, err := plotter.NewLinePoints(c.xys)
	if err != nil {
		return nil, nil, err
	}
	line.Color, line.Width, line.Dashes = c.style.colour, c.style.width, c.style.dashes
	dots.Color, dots.Shape, dots.Radius = c.style.colour, c.style.shape, 1.2*c.style.width+1.4
	return line, dots, nil
}

// style is how a line looks. place is where its legend entry comes.
type style struct {
	place  int
	colour color.RGBA
	width  vg.Length
	dashes []vg.Length
	shape  draw.GlyphDrawer // nil: no dots
}

// families give the settings of one library one colour.
var families = []struct {
	prefix string
	colour color.RGBA
}{
	{"rueidis", color.RGBA{31, 100, 180, 255}}, {"valkey-go", color.RGBA{0, 160, 175, 255}}, {"go-redis", color.RGBA{50, 140, 50, 255}},
	{"radix", color.RGBA{140, 90, 180, 255}},
}

// shapes tell the settings of one library apart.
var shapes = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.SquareGlyph{}, draw.PyramidGlyph{}, draw.CrossGlyph{},
}

// look gives limits a grey, the engine a thick red line, each library a colour, and a dashed line to settings that are
// not its defaults.
func look(label string) style {
	c, err := contend.Find(label)
	switch {
	case err == nil && c.Group == contend.Limit:
		s := style{place: 2, colour: color.RGBA{150, 150, 150, 255}, width: 1, shape: draw.RingGlyph{}}
		if label == "wake floor" {
			s.shape = draw.BoxGlyph{}
		}
		return s
	case err == nil && c.Group == contend.Ours && label == "fullduplex":
		return style{colour: color.RGBA{205, 0, 0, 255}, width: 3.2, shape: draw.CircleGlyph{}}
	case err == nil && c.Group == contend.Ours:
		return style{colour: color.RGBA{240, 120, 50, 255}, width: 1.8, shape: draw.CircleGlyph{}}
	}
	s := style{place: 1, colour: color.RGBA{90, 90, 90, 255}, width: 1, shape: shapes[0]}
	if err == nil && !c.Default {
		s.dashes = []vg.Length{5, 2}
	}
	for _, f := range families {
		if len(label) >= len(f.prefix) && label[:len(f.prefix)] == f.prefix {
			s.colour, s.shape = f.colour, shapes[among(label, f.prefix)%len(shapes)]
		}
	}
	return s
}

// among is which of the settings of its library a label is.
func among(label, prefix string) (n int) {
	for _, c := range contend.All() {
		if c.Name == label {
			return n
		}
		if len(c.Name) >= len(prefix) && c.Name[:len(prefix)] == prefix {
			n++
		}
	}
	return n
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

func nanoTicks(low, high float64) []plot.Tick {
	return decades(low, high, []string{"ns", "us", "ms", "s"})
}

func rateTicks(low, high float64) []plot.Tick { return decades(low, high, []string{"", "k", "M", "G"}) }

// decades has a labelled tick at each power of ten, in a unit of a thousand, and small ones between.
func decades(low, high float64, units []string) (out []plot.Tick) {
	for e := int(math.Floor(math.Log10(low))); e <= int(math.Ceil(math.Log10(high))); e++ {
		for i := 1; i < 10; i++ {
			v := float64(i) * math.Pow10(e)
			if v < low || v > high {
				continue
			}
			t := plot.Tick{Value: v}
			if unit := max(e, 0) / 3; i == 1 && unit < len(units) {
				t.Label = strconv.FormatFloat(v/math.Pow10(3*unit), 'f', -1, 64) + " " + units[unit]
			}
			out = append(out, t)
		}
	}
	return out
}
