package report

import (
	"fmt"
	"slices"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
)

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
