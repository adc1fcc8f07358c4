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
	"gonum.org/v1/plot/font"
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
	Label  string   // of that axis, in words
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
	if err != nil || len(lines) == 0 {
		return nil, err
	}
	curves := curvesOf(slices.MaxFunc(byHost(lines), func(a, b []*benchfmt.Result) int { return len(a) - len(b) }), k.Series)
	if k.Kind == Degradation {
		curves = slices.DeleteFunc(curves, func(c curve) bool { return len(inNames(c.lines, "scale")) < 2 })
	}
	if len(curves) == 0 {
		return nil, nil
	}
	p := plot.New()
	p.Add(&plotter.Grid{Vertical: draw.LineStyle{Color: grid, Width: vg.Points(0.5)}, Horizontal: draw.LineStyle{Color: grid, Width: vg.Points(0.5)}})
	for _, f := range []*font.Font{&p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font, &p.X.Tick.Label.Font, &p.Y.Tick.Label.Font} {
		*f = sans
	}
	var legend []*plot.Legend
	for i, c := range curves {
		c.index = i
		mark, err := drawers[k.Kind](p, k, c)
		if err != nil {
			return nil, err
		}
		if mark != nil {
			legend = explain(legend, c, mark)
		}
	}
	if legend == nil { // no operation finished; tables show that
		return nil, nil
	}
	leaveRoom(p)
	canvas := &fitted{Canvas: vgsvg.New(12.5*vg.Centimeter, 8*vg.Centimeter)}
	all := draw.Crop(draw.New(canvas), vg.Points(4), vg.Points(-6), vg.Points(5), vg.Points(-4))
	// The labels of axes are written here: at a logarithmic axis gonum leaves
	// room for them above its end.
	across, up := p.X.Label, p.Y.Label
	p.X.Label.Text, p.Y.Label.Text = "", ""
	area := draw.Crop(all, vg.Points(16), 0, vg.Points(13), 0)
	p.Draw(area)
	data, x := p.DataCanvas(area), vg.Points(4)
	across.TextStyle.XAlign, across.TextStyle.YAlign = draw.XCenter, draw.YBottom
	all.FillText(across.TextStyle, vg.Point{X: data.Center().X, Y: all.Min.Y}, across.Text)
	up.TextStyle.XAlign, up.TextStyle.YAlign, up.TextStyle.Rotation = draw.XCenter, draw.YTop, math.Pi/2
	all.FillText(up.TextStyle, vg.Point{X: all.Min.X, Y: data.Center().Y}, up.Text)
	for _, column := range legend {
		column.XOffs = x
		column.Draw(data)
		x += column.Rectangle(data).Size().X + vg.Points(8)
	}
	return canvas.text()
}

// sans is the font of all texts.
var sans = font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(10)}

// legendRows are the rows of a column of the legend.
const legendRows = 3

// explain adds a curve to the columns of a legend; index is how many it has.
func explain(columns []*plot.Legend, c curve, mark plot.Thumbnailer) []*plot.Legend {
	if c.index%legendRows == 0 || len(columns) == 0 {
		l := plot.NewLegend()
		l.Top, l.Left, l.TextStyle.Font = true, true, sans
		l.ThumbnailWidth, l.Padding, l.TextStyle.Font.Size = vg.Points(12), vg.Points(3), vg.Points(9) // three columns fit
		columns = append(columns, &l)
	}
	columns[len(columns)-1].Add(c.name, mark)
	return columns
}

// fitted is a canvas whose texts are as wide as they were measured, whatever font shows them.
type fitted struct {
	*vgsvg.Canvas
	widths []vg.Length
}

// FillString implements vg.Canvas.
func (c *fitted) FillString(f font.Face, at vg.Point, text string) {
	c.widths = append(c.widths, f.Width(text))
	c.Canvas.FillString(f, at, text)
}

// text is the picture without the head of a file.
func (c *fitted) text() ([]byte, error) {
	var out bytes.Buffer
	if _, err := c.WriteTo(&out); err != nil {
		return nil, err
	}
	_, body, _ := strings.Cut(out.String(), "<svg")
	parts := strings.Split(strings.ReplaceAll(body, "font-family:Liberation Sans", "font-family:Liberation Sans,Arial,sans-serif"), "<text ")
	for i, w := range c.widths {
		parts[i+1] = fmt.Sprintf(`<text textLength="%.1f" lengthAdjust="spacingAndGlyphs" %s`, w.Points(), parts[i+1])
	}
	return []byte("<svg" + strings.Join(parts, "")), nil
}

// leaveRoom keeps the legend, at the top, from hiding curves. It widens axes of
// one value, which gonum would begin one below it: not above 0, where a logarithmic
// axis has to be.
func leaveRoom(p *plot.Plot) {
	const room = 0.4
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		if _, log := axis.Scale.(plot.LogScale); log && axis.Min == axis.Max {
			axis.Min, axis.Max = axis.Min/2, axis.Max*2
		}
	}
	if _, log := p.Y.Scale.(plot.LogScale); log {
		p.Y.Max *= math.Pow(p.Y.Max/p.Y.Min, room)
	} else {
		p.Y.Max += room * (p.Y.Max - p.Y.Min)
	}
}

// curve has one entry in the legend.
type curve struct {
	name  string
	index int
	lines []*benchfmt.Result
}

func (c *curve) colour() color.Color { return colours[c.index%len(colours)] }

// drawers draw a curve, and return its mark for the legend, nil where it has no
// points.
var drawers = map[Kind]func(*plot.Plot, Sketch, curve) (plot.Thumbnailer, error){
	Quantiles: drawQuantiles, TimeLine: drawTimeLine, Degradation: drawDegradation, Frontier: drawFrontier,
}

// drawQuantiles shows the median over the lines of each quantile that they tell, and the longest
// operation at the part of them that it is.
func drawQuantiles(p *plot.Plot, _ Sketch, c curve) (plot.Thumbnailer, error) {
	var points plotter.XYs
	for _, q := range []struct {
		unit string
		rest float64 // part of the operations that take longer
	}{{"p50-ms", 0.5}, {"p95-ms", 0.05}, {"p99-ms", 0.01}} {
		points = append(points, c.at(1/q.rest, q.unit)...)
	}
	points = append(points, c.at(max(float64(c.lines[0].Iters), 100), "max-ms")...)
	p.X.Label.Text, p.Y.Label.Text = "one commit of so many takes longer", "time of a commit, ms"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ticks(2, 20, 100, 1000, 10_000, 100_000)
	logarithmic(&p.Y)
	return addLine(p, c, points, true), nil
}

// drawTimeLine shows a figure a second, and a mark below for each second with a checkpoint.
func drawTimeLine(p *plot.Plot, k Sketch, c curve) (plot.Thumbnailer, error) {
	var points, marks plotter.XYs
	for _, l := range c.lines {
		second, err := numberOf(l, "second")
		if err != nil {
			return nil, err
		}
		if v, ok := l.Value(k.Unit); ok && v > 0 {
			points = append(points, plotter.XY{X: second, Y: v})
		}
		if n, ok := l.Value("checkpoints"); ok && n > 0 {
			marks = append(marks, plotter.XY{X: second, Y: math.Pow(2, -float64(c.index))})
		}
	}
	byX(points)
	p.X.Label.Text, p.Y.Label.Text = "seconds; triangles are checkpoints", k.Label
	logarithmic(&p.Y)
	p.Add(c.dots(marks, 2, draw.PyramidGlyph{}))
	return addLine(p, c, points, false), nil
}

// drawDegradation shows medians over the scale.
func drawDegradation(p *plot.Plot, k Sketch, c curve) (plot.Thumbnailer, error) {
	var points plotter.XYs
	for _, size := range inNames(c.lines, "scale") {
		of := curve{lines: slices.DeleteFunc(slices.Clone(c.lines), func(l *benchfmt.Result) bool { return Key(l, "scale") != size })}
		scale, err := numberOf(of.lines[0], "scale")
		if err != nil {
			return nil, err
		}
		if scale > 0 {
			points = append(points, of.at(scale, k.Unit)...)
		}
	}
	byX(points)
	p.X.Label.Text, p.Y.Label.Text = "size as a multiple of 800,000 entities", k.Label
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ticks(0.1, 0.3, 1, 2, 5, 10)
	logarithmic(&p.Y)
	return addLine(p, c, points, true), nil
}

// drawFrontier shows the delivered rates: filled where commits and reads kept
// their limits.
func drawFrontier(p *plot.Plot, _ Sketch, c curve) (mark plot.Thumbnailer, _ error) {
	kept, missed := plotter.XYs{}, plotter.XYs{}
	for _, l := range c.lines {
		rows, ok1 := l.Value("rows/s")
		reads, ok2 := l.Value("qps")
		commit, ok3 := l.Value("p99-ms")
		read, ok4 := l.Value("read-p99-ms")
		if !ok1 || !ok2 || !ok3 || !ok4 {
			continue
		}
		if commit < CommitLimit && read < ReadLimit && !atLimit(l, "p99-ms", commit) && !atLimit(l, "read-p99-ms", read) {
			kept = append(kept, plotter.XY{X: rows, Y: reads})
		} else {
			missed = append(missed, plotter.XY{X: rows, Y: reads})
		}
	}
	p.X.Label.Text = fmt.Sprintf("rows/s written; filled: commit p99 < %d ms, read p99 < %d ms", CommitLimit, ReadLimit)
	p.Y.Label.Text = "reads/s answered"
	p.X.Min, p.Y.Min = 0, 0
	p.X.Tick.Marker, p.Y.Tick.Marker = words{plot.DefaultTicks{}}, words{plot.DefaultTicks{}}
	for _, part := range []struct {
		points plotter.XYs
		shape  draw.GlyphDrawer
	}{{kept, draw.CircleGlyph{}}, {missed, draw.RingGlyph{}}} {
		if s := c.dots(part.points, 4, part.shape); len(part.points) > 0 {
			p.Add(s)
			mark = cmp.Or[plot.Thumbnailer](mark, s)
		}
	}
	return mark, nil
}

// dots are marks of a curve with so many points of radius.
func (c *curve) dots(points plotter.XYs, radius float64, shape draw.GlyphDrawer) *plotter.Scatter {
	return &plotter.Scatter{XYs: points, GlyphStyle: draw.GlyphStyle{Color: c.colour(), Radius: vg.Points(radius), Shape: shape}}
}

func addLine(p *plot.Plot, c curve, points plotter.XYs, dots bool) plot.Thumbnailer {
	if len(points) == 0 {
		return nil
	}
	line := &plotter.Line{XYs: points, LineStyle: draw.LineStyle{Color: c.colour(), Width: vg.Points(1.5)}}
	p.Add(line)
	if dots {
		p.Add(c.dots(points, 2.5, draw.CircleGlyph{}))
	}
	return line
}

func logarithmic(a *plot.Axis) {
	a.Scale, a.Tick.Marker = plot.LogScale{}, words{plot.LogTicks{Prec: -1}}
}

// words are ticks whose labels are written as in tables. Labels beyond the axis
// would take room.
type words struct{ plot.Ticker }

// Ticks implements plot.Ticker.
func (w words) Ticks(low, high float64) []plot.Tick {
	list := slices.DeleteFunc(w.Ticker.Ticks(low, high), func(t plot.Tick) bool { return t.Value < low || t.Value > high })
	for i, t := range list {
		if t.Label != "" {
			list[i].Label = Number(t.Value)
		}
	}
	return list
}

// ticks are marks at values.
func ticks(values ...float64) words {
	var list plot.ConstantTicks
	for _, v := range values {
		list = append(list, plot.Tick{Value: v, Label: "set by words"})
	}
	return words{list}
}

// curvesOf puts lines that are of one curve together.
func curvesOf(lines []*benchfmt.Result, keys []string) (list []curve) {
	for _, l := range lines {
		var words []string
		for _, key := range keys {
			word := Key(l, key)
			if key == "scale" {
				word += "x"
			}
			words = append(words, word)
		}
		name := strings.Join(words, " ")
		i := slices.IndexFunc(list, func(c curve) bool { return c.name == name })
		if i < 0 {
			i = len(list)
			list = append(list, curve{name: name})
		}
		list[i].lines = append(list[i].lines, l)
	}
	return list
}

// at is the point of a figure of the curve's lines, none where there is none or it is no capacity.
func (c *curve) at(x float64, unit string) plotter.XYs {
	if f := figure(c.lines, column{unit: unit}); f != nil && f.Busy == 0 && f.Center > 0 {
		return plotter.XYs{{X: x, Y: f.Center}}
	}
	return nil
}

// numberOf is a number in the name of a line.
func numberOf(l *benchfmt.Result, key string) (float64, error) {
	v, err := strconv.ParseFloat(Key(l, key), 64)
	if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
		err = strconv.ErrRange
	}
	if err != nil {
		return 0, fmt.Errorf("%s: its %s is no number: %w", l.Name, key, err)
	}
	return v, nil
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
