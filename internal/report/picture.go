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

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/schemas"
)

// Kind is a kind of chart.
type Kind int

// Kinds of pictures.
const (
	Quantiles   Kind = iota // latency by quantile
	TimeLine                // a figure for each second, with checkpoints marked below
	Degradation             // medians over the size, both logarithmic
	Frontier                // reads a second by requested rows a second
)

// Sketch specifies a chart of a set's lines.
type Sketch struct {
	Title  string
	Kind   Kind
	Filter string
	Unit   string   // on the vertical axis; of Quantiles and Frontier it is fixed
	Label  string   // of that axis, in words
	Series []string // keys whose values make separate curves
}

// Picture is a drawn chart.
type Picture struct {
	Title, Name string // Name is that of a file, without its end
	SVG         []byte // nil if nothing was measured, or only one of several sizes
}

// Limits of the third question: commits and reads that are slower count as not
// sustained.
const (
	CommitLimit = 2000 // ms
	ReadLimit   = 100  // ms
)

// An engine has the same colour in every picture, by its position in the list
// of engines, and a layout has the same dash; the default layout's line is
// solid. Curves that share both differ in the shape of their dots.
var (
	colours = []color.Color{
		color.RGBA{0x1f, 0x5f, 0xa8, 255}, color.RGBA{0x1a, 0x9c, 0xa8, 255}, color.RGBA{0x2e, 0x8b, 0x57, 255},
		color.RGBA{0xc4, 0x4e, 0x1f, 255}, color.RGBA{0x8b, 0x3f, 0x9e, 255}, color.RGBA{0x55, 0x55, 0x55, 255},
	}
	dashes = [][]vg.Length{{6, 3}, {2, 2}, {9, 3, 2, 3}, {1, 3}, {12, 4}}
	shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{}}
	grid   = color.RGBA{0xdd, 0xdd, 0xdd, 255}
)

// Draw draws a chart.
func (s *Set) Draw(k Sketch) (*Picture, error) {
	svg, err := s.svg(k)
	if err != nil {
		return nil, fmt.Errorf("picture %q: %w", k.Title, err)
	}
	return &Picture{Title: k.Title, Name: fileName(k.Title), SVG: svg}, nil
}

// svg draws lines: of all hosts if each side is compared with the reference,
// because ratios are valid for other hosts, and otherwise of one. It returns nil
// if there is nothing to draw.
func (s *Set) svg(k Sketch) ([]byte, error) {
	// Choose the lines: of the host, unless all sides are compared, and for a
	// frontier of the mix and the size, that have most.
	source := s.Lines
	if k.Kind == TimeLine {
		source = s.Series
	}
	lines, err := source.matching(k.Filter)
	if err != nil || len(lines) == 0 {
		return nil, err
	}
	most := func(a, b Lines) int { return len(a) - len(b) }
	whole := newReference(lines, lines)
	if k.Kind == TimeLine || k.Kind == Frontier || slices.ContainsFunc(lines, func(l *Line) bool { return !whole.sides[setting(l)] }) {
		lines = slices.MaxFunc(byHost(lines), most)
	}
	if k.Kind == TimeLine { // of one run, because the seconds of several have nothing in common
		lines = slices.MaxFunc(lines.by(runOf), most)
	}
	if k.Kind == Frontier {
		lines = lines.of("mix", MainMix(inNames(lines, "mix")))
		lines = lines.of("scale", slices.MaxFunc(inNames(lines, "scale"), func(a, b string) int {
			return cmp.Or(len(lines.of("scale", a).each(setting))-len(lines.of("scale", b).each(setting)), byNumber(a, b))
		}))
	}
	var with *reference // of the chosen lines alone, because its figures are those of their host
	if len(sittingsOf(lines)) > 1 {
		with = newReference(lines, lines)
	}
	curves := curvesOf(lines, k.Series)
	if k.Kind == Degradation {
		curves = slices.DeleteFunc(curves, func(c curve) bool { return len(inNames(c.lines, "scale")) < 2 })
	}
	if len(curves) == 0 {
		return nil, nil
	}

	// Draw the curves and their entries of the legend.
	p := plot.New()
	p.Add(&plotter.Grid{Vertical: draw.LineStyle{Color: grid, Width: vg.Points(0.5)}, Horizontal: draw.LineStyle{Color: grid, Width: vg.Points(0.5)}})
	for _, f := range []*font.Font{&p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font, &p.X.Tick.Label.Font, &p.Y.Tick.Label.Font} {
		*f = sans
	}
	var legend []*plot.Legend
	for i, c := range curves {
		c.index, c.with = i, with
		mark, err := drawers[k.Kind](p, k, c)
		if err != nil {
			return nil, err
		}
		if mark != nil {
			legend = addToLegend(legend, c, mark)
		}
	}
	if legend == nil { // no operation finished; tables show that
		return nil, nil
	}

	// Write the title, and under it what was measured.
	leaveRoom(p)
	canvas := &fitted{Canvas: vgsvg.New(12.5*vg.Centimeter, 9*vg.Centimeter)}
	all := draw.Crop(draw.New(canvas), vg.Points(4), vg.Points(-6), vg.Points(5), vg.Points(-4))
	head := p.X.Label.TextStyle
	head.XAlign, head.YAlign = draw.XLeft, draw.YTop
	head.Font.Size = vg.Points(12)
	all.FillText(head, vg.Point{X: all.Min.X, Y: all.Max.Y}, k.Title)
	head.Font.Size = vg.Points(9)
	all.FillText(head, vg.Point{X: all.Min.X, Y: all.Max.Y - vg.Points(16)}, about(lines, with))

	// Draw the plot without its axis labels, because gonum reserves space for
	// them above the end of a logarithmic axis.
	all = draw.Crop(all, 0, 0, 0, vg.Points(-30))
	across, up := p.X.Label, p.Y.Label
	p.X.Label.Text, p.Y.Label.Text = "", ""
	area := draw.Crop(all, vg.Points(16), 0, vg.Points(13), 0)
	p.Draw(area)

	// Draw the labels and the legend around the data.
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

// about describes how much data a chart shows, what it shows as a ratio or else
// on which host or hosts it was measured, and the sizes and mixes that all lines share.
func about(lines Lines, with *reference) string {
	text := "n=" + Plural(len(lines.each(runOf)), "run") + " in " + Plural(len(sittingsOf(lines)), "sitting")
	ratios := with != nil && slices.ContainsFunc(lines, func(l *Line) bool { return !with.is(l) && with.sides[setting(l)] })
	switch hosts := lines.configured("host"); {
	case ratios:
		text += ", those beside " + with.String() + " by ratio to it"
	case len(hosts) > 1:
		text += ", " + Plural(len(hosts), "host")
	case hosts[0] != "":
		text += ", host " + hosts[0]
	}
	for _, key := range []string{"scale", "mix", "clients"} {
		if values := inNames(lines, key); len(values) == 1 && values[0] != "" {
			text += ", " + key + " " + values[0]
		}
	}
	return text
}

// sans is the font of all texts.
var sans = font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(10)}

// legendRows is the number of rows in a column of the legend.
const legendRows = 3

// addToLegend adds a curve to the columns of a legend; index is the number of
// entries so far.
func addToLegend(columns []*plot.Legend, c curve, mark plot.Thumbnailer) []*plot.Legend {
	if c.index%legendRows == 0 || len(columns) == 0 {
		l := plot.NewLegend()
		l.Top, l.Left, l.TextStyle.Font = true, true, sans
		l.ThumbnailWidth, l.Padding, l.TextStyle.Font.Size = vg.Points(12), vg.Points(3), vg.Points(9) // three columns fit
		columns = append(columns, &l)
	}
	columns[len(columns)-1].Add(c.name, mark)
	return columns
}

// fitted is a canvas that gives each text the width that was measured for it,
// whatever font displays it.
type fitted struct {
	*vgsvg.Canvas
	widths []vg.Length
}

// FillString implements vg.Canvas.
func (c *fitted) FillString(f font.Face, at vg.Point, text string) {
	c.widths = append(c.widths, f.Width(text))
	c.Canvas.FillString(f, at, text)
}

// text is the picture without a file header.
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

// leaveRoom makes room for the legend at the top, so that it hides no curve. It
// also widens axes with a single value. gonum would begin such an axis one
// below the value, which may not be above 0, as a logarithmic axis needs.
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

// curve is one entry of the legend with its lines.
type curve struct {
	name     string
	index    int
	sameSide int // number of earlier curves with the same engine and layout
	lines    Lines
	with     *reference // nil within one sitting, whose figures are compared as they are
}

// of returns the part of a curve whose lines have a value of a key.
func (c curve) of(key, value string) curve {
	c.lines = c.lines.of(key, value)
	return c
}

// side returns the engine and the layout of a curve.
func (c *curve) side() (name, layout string) {
	name, _, _ = strings.Cut(Key(c.lines[0], "engine"), "@") // a server of the user's has its engine's colour
	return name, Key(c.lines[0], "layout")
}

func (c *curve) colour() color.Color {
	name, _ := c.side()
	return colours[min(engine.Rank(name), len(colours)-1)]
}

func (c *curve) line() draw.LineStyle {
	style := draw.LineStyle{Color: c.colour(), Width: vg.Points(1.5)}
	if _, layout := c.side(); layout != "" && layout != schemas.DefaultLayout {
		style.Dashes = dashes[max(slices.Index(schemas.EntityLayouts(), layout), 0)%len(dashes)]
	}
	return style
}

// drawers draw a curve, and return its mark for the legend; nil if it has no
// points.
var drawers = map[Kind]func(*plot.Plot, Sketch, curve) (plot.Thumbnailer, error){
	Quantiles: drawQuantiles, TimeLine: drawTimeLine, Degradation: drawDegradation, Frontier: drawFrontier,
}

// drawQuantiles draws the median over the lines for each quantile that they
// have.
func drawQuantiles(p *plot.Plot, _ Sketch, c curve) (plot.Thumbnailer, error) {
	var points plotter.XYs
	var names plot.ConstantTicks
	for x, q := range [][2]string{{"p50-ms", "half of them"}, {"p95-ms", "95 %"}, {"p99-ms", "99 %"}, {"max-ms", "all"}} {
		points = append(points, c.at(float64(x), q[0])...)
		names = append(names, plot.Tick{Value: float64(x), Label: q[1]})
	}
	p.X.Label.Text, p.Y.Label.Text = "commits that take at most that long", "time of a commit, ms"
	p.X.Tick.Marker = names
	logarithmic(&p.Y)
	return addLine(p, c, points, true), nil
}

// drawTimeLine draws a figure over the seconds, and a mark below for each
// second with a checkpoint.
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

// drawDegradation draws medians over the scale.
func drawDegradation(p *plot.Plot, k Sketch, c curve) (plot.Thumbnailer, error) {
	var points plotter.XYs
	for _, size := range inNames(c.lines, "scale") {
		of := c.of("scale", size)
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

// drawFrontier draws the reads a second at each requested write rate. A dot
// means that all runs kept the limits of commits and reads, a ring that one did
// not.
func drawFrontier(p *plot.Plot, _ Sketch, c curve) (plot.Thumbnailer, error) {
	var points, kept, missed plotter.XYs
	for _, rate := range inNames(c.lines, "rate") {
		of := c.of("rate", rate)
		rows, err := numberOf(of.lines[0], "rate")
		if err != nil {
			return nil, err
		}
		at := of.at(rows, "qps")
		points = append(points, at...)
		if slices.ContainsFunc(of.lines, func(l *Line) bool { return !isBelow(l, "p99-ms", CommitLimit) || !isBelow(l, "read-p99-ms", ReadLimit) }) {
			missed = append(missed, at...)
		} else {
			kept = append(kept, at...)
		}
	}
	byX(points)
	p.X.Label.Text = fmt.Sprintf("rows/s asked; filled: 99 %% of commits < %d s, of reads < %d ms", CommitLimit/1000, ReadLimit)
	p.Y.Label.Text = "reads/s answered"
	p.X.Min, p.X.Tick.Marker = 0, words{plot.DefaultTicks{}}
	logarithmic(&p.Y)
	mark := addLine(p, c, points, false)
	p.Add(c.dots(kept, 4, draw.CircleGlyph{}), c.dots(missed, 4, draw.RingGlyph{}))
	return mark, nil
}

// isBelow reports whether a percentile of a line is below a limit. A missing
// percentile, because nothing was requested, counts as within.
func isBelow(l *Line, unit string, limit float64) bool {
	v, has := l.Value(unit)
	return !has || v < limit && !atLimit(l, unit, v)
}

// dots are the marks of a curve's points, with a radius in points.
func (c *curve) dots(points plotter.XYs, radius float64, shape draw.GlyphDrawer) *plotter.Scatter {
	return &plotter.Scatter{XYs: points, GlyphStyle: draw.GlyphStyle{Color: c.colour(), Radius: vg.Points(radius), Shape: shape}}
}

func addLine(p *plot.Plot, c curve, points plotter.XYs, dots bool) plot.Thumbnailer {
	if len(points) == 0 {
		return nil
	}
	line := &plotter.Line{XYs: points, LineStyle: c.line()}
	p.Add(line)
	if dots {
		p.Add(c.dots(points, 2.5, shapes[c.sameSide%len(shapes)]))
	}
	return line
}

func logarithmic(a *plot.Axis) {
	a.Scale, a.Tick.Marker = plot.LogScale{}, words{plot.LogTicks{Prec: -1}}
}

// words are ticks with labels formatted as in tables. Labels beyond the axis
// are left out, because they would take space.
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

// ticks are ticks at given values.
func ticks(values ...float64) words {
	var list plot.ConstantTicks
	for _, v := range values {
		list = append(list, plot.Tick{Value: v, Label: "set by words"})
	}
	return words{list}
}

// curvesOf groups lines into curves.
func curvesOf(lines Lines, keys []string) (list []curve) {
	name := func(l *Line) string {
		var words []string
		for _, key := range keys {
			word := Key(l, key)
			if key == "scale" {
				word += "x"
			}
			words = append(words, word)
		}
		return strings.Join(words, " ")
	}
	alike := make(map[[2]string]int)
	for i, part := range lines.by(name) {
		c := curve{name: name(part[0]), index: i, lines: part}
		engine, layout := c.side()
		c.sameSide = alike[[2]string{engine, layout}]
		alike[[2]string{engine, layout}]++
		list = append(list, c)
	}
	return list
}

// at returns the point of a curve's figure at x; none if there is no figure, or
// it is not a capacity. As in tables, a side is compared with the reference of
// its own sittings, because a host changes between sittings: the point is its
// ratio times the figure that the reference has over all sittings.
func (c *curve) at(x float64, unit string) plotter.XYs {
	f := figure(c.lines, column{unit: unit})
	if f == nil || f.Busy > 0 || f.Center <= 0 {
		return nil
	}
	y := f.Center
	beside := c.with.linesFor(c.lines, unit)
	if r := Pair(f, figure(beside, column{unit: unit})); r != nil {
		y = r.Median * figure(c.with.all(setting(beside[0])), column{unit: unit}).Center
	}
	return plotter.XYs{{X: x, Y: y}}
}

// numberOf parses a number in the name of a line.
func numberOf(l *Line, key string) (float64, error) {
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

// fileName converts a title into a file name.
func fileName(title string) string {
	return strings.Trim(strings.Join(strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}), "-"), "-")
}
