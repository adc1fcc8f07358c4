package report

import (
	"bytes"
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Kind is how a picture shows its lines.
type Kind int

// Kinds of pictures.
const (
	Quantiles   Kind = iota // latency by quantile
	TimeLine                // a figure a second, with checkpoints below, on one axis of time
	Degradation             // medians over the size, both logarithmic
	Frontier                // reads a second over rows a second, as delivered
)

// Sketch says how a picture is made of lines.
type Sketch struct {
	Title  string
	Kind   Kind
	Filter string
	Unit   string   // on the vertical axis; of Quantiles and Frontier it is fixed
	Series []string // keys of the name that tell curves apart
}

// Picture is a drawn sketch.
type Picture struct {
	Title, Name string // Name is that of a file, without its end
	SVG         []byte // nil where nothing was measured, or one size of several
}

// Limits of the third question: commits and reads that are slower do not count as carried.
const (
	CommitLimit = 2000 // ms
	ReadLimit   = 100  // ms
)

var (
	colours = []color.Color{
		color.RGBA{0x1f, 0x5f, 0xa8, 255}, color.RGBA{0xc4, 0x4e, 0x1f, 255}, color.RGBA{0x2e, 0x8b, 0x57, 255},
		color.RGBA{0x8b, 0x3f, 0x9e, 255}, color.RGBA{0x8a, 0x6d, 0x1b, 255}, color.RGBA{0x55, 0x55, 0x55, 255},
		color.RGBA{0xd8, 0x3a, 0x6e, 255}, color.RGBA{0x1a, 0x9c, 0xa8, 255},
	}
	grid = color.RGBA{0xdd, 0xdd, 0xdd, 255}
)

// Draw draws a sketch.
func (s *Set) Draw(k Sketch) (*Picture, error) {
	svg, err := s.svg(k)
	if err != nil {
		return nil, fmt.Errorf("picture %q: %w", k.Title, err)
	}
	return &Picture{Title: k.Title, Name: fileName(k.Title), SVG: svg}, nil
}

func (s *Set) svg(k Sketch) ([]byte, error) {
	filter, err := newFilter(k.Filter)
	if err != nil {
		return nil, err
	}
	source := s.Lines
	if k.Kind == TimeLine {
		source = s.Series
	}
	lines, err := matching(source, filter)
	differs := func(l *benchfmt.Result) bool { return Key(l, "scale") != Key(lines[0], "scale") }
	if err != nil || len(lines) == 0 || k.Kind == Degradation && !slices.ContainsFunc(lines, differs) {
		return nil, err
	}
	p := plot.New()
	p.Add(&plotter.Grid{Vertical: draw.LineStyle{Color: grid, Width: vg.Points(0.5)}, Horizontal: draw.LineStyle{Color: grid, Width: vg.Points(0.5)}})
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding, p.Legend.XOffs = vg.Points(2), vg.Points(4)
	curves := curvesOf(lines, k.Series)
	for _, c := range curves {
		if err := drawers[k.Kind](p, k, c); err != nil {
			return nil, err
		}
	}
	leaveRoom(p, len(curves))
	canvas := vgsvg.New(16*vg.Centimeter, 9*vg.Centimeter)
	p.Draw(draw.Crop(draw.New(canvas), vg.Points(4), vg.Points(-14), vg.Points(4), vg.Points(-4)))
	var text bytes.Buffer
	if _, err := canvas.WriteTo(&text); err != nil {
		return nil, err
	}
	_, body, _ := bytes.Cut(text.Bytes(), []byte("<svg")) // without the head of a file
	return append([]byte("<svg"), body...), nil
}

// leaveRoom keeps the legend, at the top, from hiding curves.
func leaveRoom(p *plot.Plot, entries int) {
	room := 0.1 + 0.08*float64(entries)
	if _, log := p.Y.Scale.(plot.LogScale); log {
		p.Y.Max *= math.Pow(p.Y.Max/p.Y.Min, room)
	} else {
		p.Y.Max += room * (p.Y.Max - p.Y.Min)
	}
}

// curve is what has one entry in the legend.
type curve struct {
	name  string
	index int
	lines []*benchfmt.Result
}

func (c *curve) colour() color.Color { return colours[c.index%len(colours)] }

var drawers = map[Kind]func(*plot.Plot, Sketch, curve) error{
	Quantiles: drawQuantiles, TimeLine: drawTimeLine, Degradation: drawDegradation, Frontier: drawFrontier,
}

// drawQuantiles shows the median over the lines of each quantile that they tell, and the longest
// operation at the part of them that it is.
func drawQuantiles(p *plot.Plot, _ Sketch, c curve) error {
	var points plotter.XYs
	for _, q := range []struct {
		unit string
		rest float64 // part of the operations that take longer
	}{{"p50-ms", 0.5}, {"p95-ms", 0.05}, {"p99-ms", 0.01}} {
		if values := valuesOf(c.lines, q.unit); len(values) > 0 {
			points = append(points, plotter.XY{X: 1 / q.rest, Y: NewFigure(values, false).Center})
		}
	}
	if values := valuesOf(c.lines, "max-ms"); len(values) > 0 {
		points = append(points, plotter.XY{X: max(float64(c.lines[0].Iters), 100), Y: NewFigure(values, false).Center})
	}
	p.X.Label.Text, p.Y.Label.Text = "one operation of so many takes longer", "ms"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ticks([]float64{2, 20, 100, 1000, 10_000, 100_000})
	logarithmic(&p.Y)
	return addLine(p, c, points, true)
}

// drawTimeLine shows a figure a second, and a mark below for each second with a checkpoint.
func drawTimeLine(p *plot.Plot, k Sketch, c curve) error {
	var points, marks plotter.XYs
	for _, l := range c.lines {
		second, err := strconv.ParseFloat(Key(l, "second"), 64)
		if err != nil {
			return err
		}
		if v, ok := l.Value(k.Unit); ok && v > 0 {
			points = append(points, plotter.XY{X: second, Y: v})
		}
		if n, ok := l.Value("checkpoints"); ok && n > 0 {
			marks = append(marks, plotter.XY{X: second, Y: math.Pow(2, -float64(c.index))})
		}
	}
	byX(points)
	p.X.Label.Text, p.Y.Label.Text = "seconds; marks at the bottom are checkpoints", k.Unit
	logarithmic(&p.Y)
	if len(marks) > 0 {
		ticks, err := plotter.NewScatter(marks)
		if err != nil {
			return err
		}
		ticks.GlyphStyle = draw.GlyphStyle{Color: c.colour(), Radius: vg.Points(2), Shape: draw.PyramidGlyph{}}
		p.Add(ticks)
	}
	return addLine(p, c, points, false)
}

// drawDegradation shows medians over the scale.
func drawDegradation(p *plot.Plot, k Sketch, c curve) error {
	sizes := make(map[float64][]float64)
	for _, l := range c.lines {
		scale, err := strconv.ParseFloat(Key(l, "scale"), 64)
		if err != nil {
			return err
		}
		if v, ok := l.Value(k.Unit); ok && v > 0 {
			sizes[scale] = append(sizes[scale], v)
		}
	}
	var points plotter.XYs
	for scale, values := range sizes {
		points = append(points, plotter.XY{X: scale, Y: NewFigure(values, false).Center})
	}
	byX(points)
	p.X.Label.Text, p.Y.Label.Text = "size as a multiple of 800,000 entities", k.Unit
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ticks([]float64{0.1, 0.3, 1, 2, 5, 10})
	logarithmic(&p.Y)
	return addLine(p, c, points, true)
}

// drawFrontier shows what was delivered: filled where commits and reads kept their limits.
func drawFrontier(p *plot.Plot, _ Sketch, c curve) error {
	kept, missed := plotter.XYs{}, plotter.XYs{}
	for _, l := range c.lines {
		rows, ok1 := l.Value("rows/s")
		reads, ok2 := l.Value("qps")
		commit, ok3 := l.Value("p99-ms")
		read, ok4 := l.Value("read-p99-ms")
		if !ok1 || !ok2 || !ok3 || !ok4 {
			continue
		}
		if commit < CommitLimit && read < ReadLimit {
			kept = append(kept, plotter.XY{X: rows, Y: reads})
		} else {
			missed = append(missed, plotter.XY{X: rows, Y: reads})
		}
	}
	p.X.Label.Text = "rows/s written; filled where both kept their limits"
	p.Y.Label.Text = "reads/s answered"
	p.X.Min, p.Y.Min = 0, 0
	p.X.Tick.Marker, p.Y.Tick.Marker = words{plot.DefaultTicks{}}, words{plot.DefaultTicks{}}
	for _, part := range []struct {
		points plotter.XYs
		shape  draw.GlyphDrawer
	}{{kept, draw.CircleGlyph{}}, {missed, draw.RingGlyph{}}} {
		if len(part.points) == 0 {
			continue
		}
		s, err := plotter.NewScatter(part.points)
		if err != nil {
			return err
		}
		s.GlyphStyle = draw.GlyphStyle{Color: c.colour(), Radius: vg.Points(4), Shape: part.shape}
		p.Add(s)
		if len(kept) > 0 == (len(part.points) == len(kept)) {
			p.Legend.Add(c.name, s)
		}
	}
	return nil
}

func addLine(p *plot.Plot, c curve, points plotter.XYs, dots bool) error {
	if len(points) == 0 {
		return nil
	}
	line, scatter, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = c.colour(), vg.Points(1.5)
	scatter.GlyphStyle = draw.GlyphStyle{Color: c.colour(), Radius: vg.Points(2.5), Shape: draw.CircleGlyph{}}
	p.Add(line)
	if dots {
		p.Add(scatter)
	}
	p.Legend.Add(c.name, line)
	return nil
}

func logarithmic(a *plot.Axis) {
	a.Scale, a.Tick.Marker = plot.LogScale{}, words{plot.LogTicks{Prec: -1}}
}

// words are ticks whose labels are written as in tables.
type words struct{ plot.Ticker }

// Ticks implements plot.Ticker.
func (w words) Ticks(low, high float64) []plot.Tick {
	list := w.Ticker.Ticks(low, high)
	for i, t := range list {
		if t.Label != "" {
			list[i].Label = Number(t.Value)
		}
	}
	return list
}

// ticks are marks at values.
func ticks(values []float64) plot.ConstantTicks {
	var list plot.ConstantTicks
	for _, v := range values {
		list = append(list, plot.Tick{Value: v, Label: Number(v)})
	}
	return list
}

// curvesOf puts lines that are of one curve together.
func curvesOf(lines []*benchfmt.Result, keys []string) (list []curve) {
	for _, l := range lines {
		var words []string
		for _, key := range keys {
			words = append(words, Key(l, key))
		}
		name := strings.Join(words, " ")
		i := slices.IndexFunc(list, func(c curve) bool { return c.name == name })
		if i < 0 {
			i = len(list)
			list = append(list, curve{name: name, index: i})
		}
		list[i].lines = append(list[i].lines, l)
	}
	return list
}

func valuesOf(lines []*benchfmt.Result, unit string) (values []float64) {
	for _, l := range lines {
		if v, ok := l.Value(unit); ok && v > 0 {
			values = append(values, v)
		}
	}
	return values
}

func byX(points plotter.XYs) {
	slices.SortFunc(points, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
}

// fileName makes a title the name of a file.
func fileName(title string) string {
	return strings.Trim(strings.Join(strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}), "-"), "-")
}
