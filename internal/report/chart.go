package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
)

// Chart is a figure of the page. With several variants the reader chooses one; one
// without is not shown.
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

// Variant is one drawing of a chart, which the page's script makes an option of the
// chart library of.
type Variant struct {
	Label  string   `json:"label"`
	X      axis     `json:"x"`
	Y      axis     `json:"y"`
	Below  *axis    `json:"below,omitempty"` // y axis of a second, smaller diagram below
	Series []series `json:"series"`
	Limits []mark   `json:"limits,omitempty"` // that stay whichever engine is hidden
}

// axis is how one dimension of a chart is drawn.
type axis struct {
	Name   string   `json:"name,omitempty"`
	Log    bool     `json:"log,omitempty"`
	Labels []string `json:"labels,omitempty"` // of categories; none for figures
	Share  bool     `json:"share,omitempty"`  // 10 is written as the 90th percentile
	Low    *num     `json:"min,omitempty"`    // smallest figure; nil: of the data
}

// series is a row of points, which are a line, or a row of bars.
type series struct {
	Name   string   `json:"name"`
	Engine string   `json:"engine,omitempty"` // with which it is hidden, and whose colour it has
	Faint  bool     `json:"faint,omitempty"`
	Points [][2]num `json:"points,omitempty"`
	Values []*num   `json:"values,omitempty"` // of bars, one for each category
	Stack  string   `json:"stack,omitempty"`  // bars of one stack stand on each other
	Symbol string   `json:"symbol,omitempty"` // of the points; "" for a bare line
	Below  bool     `json:"below,omitempty"`  // belongs to the diagram below
	Marks  []mark   `json:"marks,omitempty"`  // across the chart
}

// mark is a line across a chart: vertical at X, or horizontal at Y.
type mark struct {
	Name string `json:"name,omitempty"`
	X    *num   `json:"xAxis,omitempty"`
	Y    *num   `json:"yAxis,omitempty"`
}

// num is a figure of a chart. It has four significant digits: more cannot be seen
// and makes the page larger.
type num float64

// MarshalJSON writes the digits.
func (n num) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(n), 'g', 4, 64), nil
}

func point(x, y float64) [2]num { return [2]num{num(x), num(y)} }

// shown returns the charts of an experiment that have something to show.
func (x *experiment) shown() []Chart {
	if len(x.pivots) == 0 {
		return nil
	}
	p, id := x.pivots[0], "chart-"+slug(x.id)
	var charts []Chart
	for units := range strings.FieldsSeq(x.bars) {
		charts = append(charts, p.bars(id+"-"+slug(units), x.id, strings.Split(units, "+")))
	}
	for unit := range strings.FieldsSeq(x.growth) {
		charts = append(charts, p.growth(id+"-"+slug(unit), x.id, unit))
	}
	if x.quantiles {
		charts = append(charts, p.distributions(id+"-quantiles", x.id))
	}
	if x.timeline {
		charts = append(charts, p.timelines(id+"-timeline", x.id)...)
	}
	for i := range charts {
		charts[i].prune()
	}
	return slices.DeleteFunc(charts, func(c Chart) bool { return len(c.Variants) == 0 })
}

// prune leaves out what has no figure.
func (c *Chart) prune() {
	for i := range c.Variants {
		v := &c.Variants[i]
		v.Series = slices.DeleteFunc(v.Series, func(s series) bool {
			return len(s.Points) == 0 && !slices.ContainsFunc(s.Values, func(n *num) bool { return n != nil })
		})
	}
	c.Variants = slices.DeleteFunc(c.Variants, func(v Variant) bool { return len(v.Series) == 0 })
}

// maxCategories is how many groups of bars fit beside each other on a page.
const maxCategories = 14

// bars shows figures as a bar for each engine and setting, several of them on top of each
// other. Where there are too many settings the reader chooses the value of one of them.
func (p *pivot) bars(id, name string, units []string) Chart {
	shown := strings.Join(units, " + ")
	c := Chart{
		ID: id, Caption: name + ": " + shown, Open: true,
		Alt: "Bars for each engine and setting; the same figures are in the table",
	}
	for _, unit := range units {
		c.Tables = append(c.Tables, p.table(unit, false)...)
	}
	all := p.keys
	p = newPivot(runs.Where(p.groups, func(g *runs.Group) bool { return value(g, units[0]) != nil }), p.floor)
	by, parts := p.split()
	word := " by "
	for i, key := range p.keys {
		if i != by {
			c.Caption += word + key
			word = ", "
		}
	}
	for _, pair := range p.common {
		if slices.Contains(all, pair.Key) {
			c.Caption += "; " + pair.Key + " " + pair.Value
		}
	}
	log := len(units) == 1 && p.farApart(units[0])
	if log {
		c.Caption += "; logarithmic"
	}
	for _, rows := range parts {
		v := Variant{X: categories(rows, by), Y: axis{Name: shown, Log: log}}
		if by >= 0 {
			v.Label = p.keys[by] + " " + readable(rows[0].values[by])
		}
		for i, unit := range units {
			for _, e := range p.engines {
				s := series{Name: e, Engine: e, Faint: i > 0, Values: values(rows, e, unit)}
				if len(units) > 1 {
					s.Stack = e
				}
				v.Series = append(v.Series, s)
			}
		}
		c.Variants = append(c.Variants, v)
	}
	return c
}

// categories are labels of rows without the value of one key, if that is not -1.
func categories(rows []pivotRow, without int) axis {
	a := axis{Labels: []string{}}
	for _, r := range rows {
		if without >= 0 {
			r.values = slices.Delete(slices.Clone(r.values), without, without+1)
		}
		a.Labels = append(a.Labels, cmp.Or(r.label(), "all"))
	}
	return a
}

// values are an engine's in rows.
func values(rows []pivotRow, engine, unit string) []*num {
	list := make([]*num, len(rows))
	for i, r := range rows {
		list[i] = value(r.byEngine[engine], unit)
	}
	return list
}

// split parts the rows by one of the keys when there are too many for one chart:
// by that which leaves the most together. It returns the key's index, or -1.
func (p *pivot) split() (by int, parts [][]pivotRow) {
	by, parts = -1, [][]pivotRow{p.rows}
	large := func(rows []pivotRow) bool { return len(rows) > maxCategories }
	for i := 0; i < len(p.keys) && large(p.rows); i++ {
		candidate := runs.By(p.rows, func(r pivotRow) string { return r.values[i] })
		fits := !slices.ContainsFunc(candidate, large)
		if by < 0 || fits && (slices.ContainsFunc(parts, large) || len(candidate) < len(parts)) {
			by, parts = i, candidate
		}
	}
	return by, parts
}

// value is the median of a group, if it has one.
func value(g *runs.Group, unit string) *num {
	if g == nil {
		return nil
	}
	v, ok := g.Median(runs.Measure{Unit: unit})
	if !ok {
		return nil
	}
	return new(num(v))
}

// farApart tells whether figures are so far apart that on a linear axis the small
// ones could not be seen.
func (p *pivot) farApart(unit string) bool {
	var values []num
	for _, g := range p.groups {
		values = append(values, *value(g, unit))
	}
	return len(values) > 1 && slices.Min(values) > 0 && slices.Max(values) > 50*slices.Min(values)
}

// limits are what is wanted of a figure, and at which size.
var limits = map[string]struct {
	text  string
	marks []mark
}{"p99-ms": {"; the decision tree wants less than 500 ms at 5x", []mark{{Name: "500 ms", Y: new(num(500))}, {Name: "5x", X: new(num(5))}}}}

// growth draws a figure over the size of the data: a line for each engine, and a
// variant for each layout.
func (p *pivot) growth(id, name, unit string) Chart {
	c := Chart{
		ID: id, Caption: name + ": " + unit + " over the size of the data" + limits[unit].text, Open: true, Tables: p.table(unit, false),
		Alt: "Lines by engine over the size of the data, both axes logarithmic; the figures are in the table",
	}
	for _, layout := range runs.By(p.groups, func(g *runs.Group) string { return g.Get("layout") }) {
		v := Variant{
			Label: layout[0].Get("layout"), Limits: limits[unit].marks,
			X: axis{Name: "scale (1 is 800,000 entities)", Log: true}, Y: axis{Name: unit, Log: true},
		}
		for _, e := range p.engines {
			s := series{Name: e, Engine: e, Symbol: "circle"}
			for _, g := range layout {
				x, ok := g.Scale()
				if y := value(g, unit); g.Get("engine") == e && ok && y != nil && *y > 0 {
					s.Points = append(s.Points, [2]num{num(x), *y})
				}
			}
			v.Series = append(v.Series, s)
		}
		c.Variants = append(c.Variants, v)
	}
	return c
}

var quantileUnits = []string{"mean-ms", "p50-ms", "p95-ms", "p99-ms", "p999-ms", "max-ms"}

// distributions shows latencies: the share of operations that took at most so long,
// with room for the slowest ones. Each setting and kind of operation is a variant,
// with a line for each engine; of too many to choose from those of the first layout.
func (p *pivot) distributions(id, name string) Chart {
	rows := p.rows
	if i := slices.Index(p.keys, "layout"); i >= 0 && len(rows) > maxCategories {
		rows = slices.DeleteFunc(slices.Clone(rows), func(r pivotRow) bool { return r.values[i] != rows[0].values[i] })
	}
	c := Chart{
		ID: id, Caption: name + ": latency by share of operations that were no slower",
		Alt: "Quantile curves by engine with both axes logarithmic, the slowest operations to the right; the quantiles are in the table",
	}
	table := newGrid(heads(append(slices.Clone(p.keys), "operation", "engine")...), figureHeads(append([]string{"operations"}, quantileUnits...)...))
	for _, r := range rows {
		for _, kind := range p.kinds(&r) {
			v := Variant{
				Label: joinWords(" · ", r.label(), kind),
				X:     axis{Name: "share of operations", Log: true, Share: true}, Y: axis{Name: "ms", Log: true},
			}
			for _, g := range p.of(&r) {
				e, d := g.Get("engine"), distribution(g, kind)
				if d == nil {
					continue
				}
				v.Series = append(v.Series, series{Name: e, Engine: e, Points: curve(d)})
				named := append(slices.Clone(r.values), kind, e)
				*table.at(named, 0) = Cell{Text: runs.Thousands(fmt.Sprint(d.Count))}
				for i, unit := range quantileUnits {
					if q, ok := runs.Quantile(d, unit); ok {
						*table.at(named, 1+i) = Cell{Text: runs.Number(q)}
					}
				}
			}
			c.Variants = append(c.Variants, v)
		}
	}
	c.Tables = []Table{*table}
	return c
}

// distribution is that of the first repetition that ended well: distributions of
// several have no median.
func distribution(g *runs.Group, kind string) *result.Distribution {
	for _, r := range g.Good() {
		if d := r.Latency(kind); d != nil && d.Count > 0 {
			return d
		}
	}
	return nil
}

// curve has the share of slower operations on its x axis, upside down: 1 is the
// median's twofold, every further decade a nine more.
func curve(d *result.Distribution) (points [][2]num) {
	for _, q := range d.Curve {
		slower := 1 - q.Percent/100
		if slower <= 0 {
			slower = 1 / float64(d.Count+1)
		}
		at := point(1/slower, runs.Milliseconds(q.Value))
		if n := len(points); n > 0 && points[n-1][0] == at[0] {
			points = points[:n-1]
		}
		if at[1] > 0 {
			points = append(points, at)
		}
	}
	return points
}

const (
	// maxSeconds is how many points a timeline has at most; longer runs are put
	// together in intervals, of which the worst counts.
	maxSeconds = 200

	// maxMarks is how many marks a chart has at most; with more there would be
	// nothing else to see.
	maxMarks = 100
)

// timelines shows what happened second by second, one chart for each engine.
// The settings are variants.
func (p *pivot) timelines(id, name string) []Chart {
	var list []Chart
	for _, e := range p.engines {
		c := Chart{
			ID: id + "-" + e, Engine: e,
			Caption: fmt.Sprintf("%s on %s: commits second by second, checkpoints marked, size of the log below", name, e),
			Alt:     "Lines of the slowest commits of each second and of the log's size, with vertical lines at checkpoints; the tables have the slowest of all and the largest log",
		}
		for _, r := range p.rows {
			if g := r.byEngine[e]; g != nil {
				// One that failed will do: what led to a crash is worth seeing.
				all := append(g.Good(), g.Records...)
				if i := slices.IndexFunc(all, func(r *result.Record) bool { return len(r.Timeline) > 0 }); i >= 0 {
					c.Variants = append(c.Variants, timeline(all[i], r.label()))
				}
			}
		}
		list = append(list, c)
	}
	return list
}

func timeline(r *result.Record, label string) Variant {
	engine := r.Config.Get("engine")
	slow := series{Name: "p99", Engine: engine}
	worst := series{Name: "max", Engine: engine, Faint: true}
	wal := series{Name: "log MB", Engine: engine, Below: true}
	for _, s := range thin(r.Timeline) {
		if s.P99 > 0 {
			slow.Points = append(slow.Points, point(s.At, runs.Milliseconds(s.P99)))
		}
		if s.Max > 0 {
			worst.Points = append(worst.Points, point(s.At, runs.Milliseconds(s.Max)))
		}
		if s.WALBytes != nil {
			wal.Points = append(wal.Points, point(s.At, float64(*s.WALBytes)/1e6))
		}
	}
	for _, m := range r.Marks[:min(len(r.Marks), maxMarks)] {
		slow.Marks = append(slow.Marks, mark{X: new(num(m.At))})
	}
	v := Variant{Label: label, X: axis{Name: "seconds", Low: new(num(0))}, Y: axis{Name: "ms", Log: true}, Series: []series{slow, worst}}
	if len(wal.Points) > 0 {
		v.Series, v.Below = append(v.Series, wal), &axis{Name: "log MB", Low: new(num(0))}
	}
	return v
}

// thin puts seconds together until they are few enough to draw: their worst, and
// the sum of what they counted.
func thin(seconds []result.Second) []result.Second {
	var list []result.Second
	for some := range slices.Chunk(seconds, max(1, (len(seconds)+maxSeconds-1)/maxSeconds)) {
		s := some[0]
		for _, o := range some[1:] {
			s.At, s.Count = o.At, s.Count+o.Count
			s.P99, s.Max = max(s.P99, o.P99), max(s.Max, o.Max)
			if o.WALBytes != nil && (s.WALBytes == nil || *o.WALBytes > *s.WALBytes) {
				s.WALBytes = o.WALBytes
			}
		}
		list = append(list, s)
	}
	return list
}
