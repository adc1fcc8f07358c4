package report

import (
	"slices"
	"strconv"

	"github.com/varvedb/varve/internal/report/runs"
)

// dashes tell layouts apart where colours tell engines apart.
var (
	dashes  = []string{"solid", "dashed", "dotted"}
	symbols = []string{"circle", "rect", "triangle", "diamond", "emptyCircle", "emptyRect", "emptyTriangle"}
)

// against draws a figure over another that a key of the configuration, or a
// metric, gives: a line for each engine and layout.
type against struct {
	id, caption, alt string
	x, y             axis
	key              string       // of the configuration; "" asks the metric
	metric           runs.Measure // of x
	of               runs.Measure // of y
	limits           []mark
}

func (a against) chart(groups []*runs.Group) (Chart, bool, error) {
	c := Chart{ID: a.id, Caption: a.caption, Alt: a.alt}
	layouts := runs.Distinct(groups, "layout")
	shown := [][]string{layouts}
	if len(layouts) > 1 {
		for _, layout := range layouts {
			shown = append(shown, []string{layout})
		}
		shown = append(shown[1:], layouts) // one is easier to read than all
	}
	for _, some := range shown {
		d := a.drawing(groups, layouts, some)
		if len(d.lines) == 0 {
			continue
		}
		if len(some) == 1 {
			d.label = some[0]
		}
		d.addLimits(a.limits)
		v, err := d.variant()
		if err != nil {
			return c, false, err
		}
		c.Variants = append(c.Variants, v)
	}
	return c, len(c.Variants) > 0, nil
}

// addLimits draws limits. They are of no engine, so that they stay when one is
// hidden; each has a point that cannot be seen, so that the axes reach it.
func (d *drawing) addLimits(limits []mark) {
	at := d.lines[0].points[0]
	for _, m := range limits {
		point := at
		if m.x != nil {
			point[0] = *m.x
		} else {
			point[1] = *m.y
		}
		d.lines = append(d.lines, series{
			name: m.name, tag: Tag{Role: "limit"}, symbol: "none", points: [][2]float64{point}, marks: []mark{m},
		})
	}
}

// drawing has some of the layouts; each looks the same in every drawing.
func (a against) drawing(groups []*runs.Group, layouts, some []string) drawing {
	d := drawing{x: a.x, y: a.y}
	for _, e := range enginesOf(groups) {
		for i, layout := range layouts {
			if !slices.Contains(some, layout) {
				continue
			}
			s := series{
				name: joinWords(e, layout), tag: Tag{Engine: e},
				dash: dashes[i%len(dashes)], symbol: symbols[i%len(symbols)],
			}
			if len(some) == 1 {
				s.name = e
			}
			s.points = a.points(runs.Where(groups, func(g *runs.Group) bool {
				return g.Get("engine") == e && g.Get("layout") == layout
			}))
			if len(s.points) > 0 {
				d.lines = append(d.lines, s)
			}
		}
	}
	return d
}

func (a against) points(groups []*runs.Group) [][2]float64 {
	var points [][2]float64
	for _, g := range groups {
		x, ok := a.at(g)
		y := value(g, a.of)
		if !ok || y == nil || a.x.log && x <= 0 || a.y.log && *y <= 0 {
			continue
		}
		points = append(points, [2]float64{x, *y})
	}
	sortPoints(points)
	return points
}

// at returns where on the x axis a group is.
func (a against) at(g *runs.Group) (float64, bool) {
	if a.key == "" {
		return g.Median(a.metric)
	}
	x, err := strconv.ParseFloat(g.Get(a.key), 64)
	return x, err == nil
}

// degradation is the curve over size.
func degradation(id, caption string, m runs.Measure) against {
	return against{
		id: id, caption: caption, key: "scale", of: m,
		alt: "Lines by engine and layout over the size of the data, both axes logarithmic; the figures are in the table",
		x:   axis{name: "scale (1 is 800,000 entities)", log: true, format: "number"}, y: axis{name: m.Unit, log: true, format: "number"},
	}
}

// beside is the commits' p99 over the rate of reads beside them.
func beside() against {
	limit := 2000.0
	return against{
		id: "chart-d4-combined", caption: "D4: commit p99 beside reads, up to the ceiling; a commit above 2 s misses its block",
		alt:    "Lines by engine and layout of the commits' 99th percentile over reads a second; the figures are in the table",
		metric: runs.Measure{Unit: "qps"}, of: runs.Measure{Unit: "p99-ms"},
		x: axis{name: "reads/s", format: "number", low: 0}, y: axis{name: "commit p99 ms", log: true, format: "number"},
		limits: []mark{{name: "2 s", y: &limit}},
	}
}
