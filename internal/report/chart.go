package report

import (
	"encoding/json"
	"math"
	"regexp"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"
)

// Chart is a figure of the page. With several variants the reader chooses one.
type Chart struct {
	ID       string // anchor, unique in the page
	Caption  string
	Alt      string // what it shows, for those who cannot see it
	Engine   string // whose it is, when it is of one engine
	Variants []Variant

	// Tables are the same figures, beside the chart, at once or on demand.
	Tables []Table
	Open   bool
}

// Variant is one drawing of a chart.
type Variant struct {
	Label  string          `json:"label"`
	Option json.RawMessage `json:"option"` // of the chart library
	Series []Tag           `json:"series"` // what each series of the option is of

	// Formats of axes: "percentile" or "number".
	X string `json:"x,omitempty"`
	Y string `json:"y,omitempty"`
}

// Tag says whose a series is, so that the page can hide it with its engine and
// colour it.
type Tag struct {
	Engine string `json:"engine,omitempty"`
	Role   string `json:"role,omitempty"` // "" is a main series, "second" is drawn fainter, "limit" is not in the legend
}

// axis is how one dimension of a chart is drawn.
type axis struct {
	name   string
	log    bool
	labels []string // of categories; nil for figures
	format string   // name of a format of the page
	low    any      // smallest and largest figure; nil: of the data
	high   any
}

func (a axis) kind() string {
	switch {
	case a.labels != nil:
		return "category"
	case a.log:
		return "log"
	}
	return "value"
}

func (a axis) x() opts.XAxis {
	return opts.XAxis{
		Name: a.name, Type: a.kind(), NameLocation: "middle", NameGap: 30, Min: a.low, Max: a.high,
		AxisLabel: &opts.AxisLabel{HideOverlap: opts.Bool(true)},
	}
}

func (a axis) y() opts.YAxis {
	y := opts.YAxis{Name: a.name, Type: a.kind(), NameLocation: "end", Min: a.low, Max: a.high, AxisLabel: &opts.AxisLabel{}}
	if a.labels != nil {
		y.Data = a.labels
	}
	return y
}

// drawing gathers what a variant is made of.
type drawing struct {
	label string
	x, y  axis
	below *axis // y axis of a second, smaller diagram below, if any
	lines []series
	bars  []series
	dots  []series
}

// series is a row of points or of bars.
type series struct {
	name   string
	tag    Tag
	points [][2]float64 // of lines and dots
	values []*float64   // of bars, one for each category
	stack  string       // bars of one stack stand on each other
	dash   string       // solid, dashed, dotted
	symbol string       // "none" for a bare line
	below  bool         // belongs to the diagram below
	marks  []mark       // across the chart
}

// mark is a line across a chart: vertical at x, or horizontal at y.
type mark struct {
	name string
	x, y *float64
	bare bool // without its name written
}

// variant builds the options with go-echarts, which knows their names.
func (d *drawing) variant() (Variant, error) {
	v := Variant{Label: d.label, X: d.x.format, Y: d.y.format}
	global := []charts.GlobalOpts{
		charts.WithXAxisOpts(d.x.x()), charts.WithYAxisOpts(d.y.y()),
		charts.WithAnimation(false),
		charts.WithLegendOpts(opts.Legend{Show: opts.Bool(true), Type: "scroll", Top: "0"}),
		charts.WithTooltipOpts(opts.Tooltip{Show: opts.Bool(true), Trigger: d.trigger()}),
		charts.WithGridOpts(d.grids()...),
	}
	line := charts.NewLine()
	line.SetGlobalOptions(global...)
	if d.below != nil {
		x, y := d.x.x(), d.below.y()
		x.GridIndex, y.GridIndex = 1, 1
		y.SplitNumber = 2
		line.XAxisList[0].Name = "" // that of the diagram below says it
		line.XAxisList[0].AxisLabel = &opts.AxisLabel{Color: "transparent"}
		line.ExtendXAxis(x)
		line.ExtendYAxis(y)
	}
	if d.x.labels != nil {
		line.SetXAxis(d.x.labels)
	}
	for _, s := range d.lines {
		line.AddSeries(s.name, s.lineData(), s.lineOptions()...)
		v.Series = append(v.Series, s.tag)
	}
	bar := charts.NewBar()
	for _, s := range d.bars {
		bar.AddSeries(s.name, s.barData(), charts.WithBarChartOpts(opts.BarChart{Stack: s.stack}))
		v.Series = append(v.Series, s.tag)
	}
	scatter := charts.NewScatter()
	for _, s := range d.dots {
		scatter.AddSeries(s.name, s.dotData(), charts.WithScatterChartOpts(opts.ScatterChart{SymbolSize: 4}))
		v.Series = append(v.Series, s.tag)
	}
	line.Overlap(bar, scatter)
	line.Validate()
	option, err := json.Marshal(line.JSON())
	// A bare pair means the same to the library, and there are many.
	v.Option = wrapped.ReplaceAll(option, []byte("$1"))
	return v, err
}

// wrapped is a point as go-echarts writes it.
var wrapped = regexp.MustCompile(`\{"value":(\[[^\[\]]*\])\}`)

// grids are the places of the diagrams.
func (d *drawing) grids() []opts.Grid {
	grid := opts.Grid{Left: "8", Right: "24", Top: "56", Bottom: "36", ContainLabel: opts.Bool(true)}
	if d.x.name == "" {
		grid.Bottom = "8"
	}
	if d.below == nil {
		return []opts.Grid{grid}
	}
	second := grid
	grid.Bottom, second.Top = "40%", "70%"
	// Labels of different lengths would shift one diagram against the other.
	grid.Left, second.Left = "56", "56"
	grid.ContainLabel, second.ContainLabel = nil, nil
	second.Bottom = "48"
	return []opts.Grid{grid, second}
}

// trigger: a tooltip for all series at once needs common x values.
func (d *drawing) trigger() string {
	if d.x.labels != nil {
		return "axis"
	}
	return "item"
}

func (s *series) lineData() []opts.LineData {
	data := make([]opts.LineData, 0, len(s.points))
	for _, p := range s.points {
		data = append(data, opts.LineData{Value: [2]float64{round(p[0]), round(p[1])}})
	}
	return data
}

func (s *series) lineOptions() []charts.SeriesOpts {
	options := []charts.SeriesOpts{
		charts.WithLineChartOpts(s.place()),
		charts.WithLineStyleOpts(opts.LineStyle{Type: s.dash, Width: 2}),
	}
	if len(s.marks) > 0 {
		options = append(options, s.markOptions()...)
	}
	return options
}

func (s *series) place() opts.LineChart {
	c := opts.LineChart{Symbol: s.symbol, SymbolSize: 6, ShowSymbol: opts.Bool(s.symbol != "none")}
	if s.below {
		c.XAxisIndex, c.YAxisIndex = 1, 1
	}
	return c
}

func (s *series) markOptions() []charts.SeriesOpts {
	var options []charts.SeriesOpts
	for _, m := range s.marks {
		if m.x != nil {
			options = append(options, charts.WithMarkLineNameXAxisItemOpts(opts.MarkLineNameXAxisItem{Name: m.name, XAxis: round(*m.x)}))
		} else {
			options = append(options, charts.WithMarkLineNameYAxisItemOpts(opts.MarkLineNameYAxisItem{Name: m.name, YAxis: round(*m.y)}))
		}
	}
	return append(options, charts.WithMarkLineStyleOpts(opts.MarkLineStyle{
		Symbol:    []string{"none", "none"},
		Label:     &opts.Label{Show: opts.Bool(!s.marks[0].bare), Formatter: "{b}", Position: "insideEndTop", FontSize: 10},
		LineStyle: &opts.LineStyle{Type: "dotted", Width: 1},
	}))
}

func (s *series) barData() []opts.BarData {
	data := make([]opts.BarData, len(s.values))
	for i, v := range s.values {
		if v == nil {
			data[i].Value = "-" // the library's word for nothing
		} else {
			data[i].Value = round(*v)
		}
	}
	return data
}

func (s *series) dotData() []opts.ScatterData {
	data := make([]opts.ScatterData, 0, len(s.points))
	for _, p := range s.points {
		data = append(data, opts.ScatterData{Value: [2]float64{round(p[0]), round(p[1])}})
	}
	return data
}

// round keeps four significant digits: more cannot be seen and makes the page
// larger.
func round(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-3)
	if unit < 1 {
		inverse := math.Round(1 / unit)
		return math.Round(v*inverse) / inverse
	}
	return math.Round(v/unit) * unit
}
