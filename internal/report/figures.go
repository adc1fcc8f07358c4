package report

import (
	"slices"
	"strings"

	"github.com/varvedb/varve/internal/report/runs"
)

// drawn says which charts an experiment has.
type drawn struct {
	bars      []string // units
	quantiles func(*pivot) []pivotRow
	timeline  bool
	special   []func(groups []*runs.Group) (Chart, bool, error)
}

var drawings = map[string]drawn{
	"A1":  {bars: []string{"rows/s"}},
	"A2":  {bars: []string{"rows/s"}},
	"A3":  {bars: []string{"rows/s"}},
	"A4":  {bars: []string{"rows/s"}},
	"A5":  {bars: []string{"ent/s"}, quantiles: everyRow},
	"A6":  {bars: []string{"ent/s"}, quantiles: everyRow},
	"A7":  {bars: []string{"ent/s"}},
	"A8":  {special: []func([]*runs.Group) (Chart, bool, error){blockDots}},
	"A11": {bars: []string{"ent/s", "B/ent"}},
	"A12": {bars: []string{"qps"}},
	"A13": {bars: []string{"ent/s", "p99-ms"}},
	"A14": {special: []func([]*runs.Group) (Chart, bool, error){coefficientChart}},
	"C1":  {bars: []string{"qps"}, quantiles: firstLayout},
	"C2":  {bars: []string{"qps"}, quantiles: firstLayout},
	"C3":  {bars: []string{"qps"}},
	"D1":  {bars: []string{"p99-ms"}, quantiles: everyRow, timeline: true},
	"D2":  {bars: []string{"p99-ms"}, quantiles: everyRow, timeline: true},
	"D3":  {bars: []string{"p99-ms"}, quantiles: everyRow},
	"D4": {quantiles: firstLayout, timeline: true, special: []func([]*runs.Group) (Chart, bool, error){
		func(groups []*runs.Group) (Chart, bool, error) {
			c, ok, err := beside().chart(groups)
			return withTables(c, groups, "p99-ms", "qps"), ok, err
		},
		func(groups []*runs.Group) (Chart, bool, error) {
			ceilings := runs.Where(groups, func(g *runs.Group) bool { return g.Get("qps") == "ceiling" })
			return newPivot(ceilings).bars("chart-d4-ceiling", "D4: ceiling of reads", runs.Measure{Unit: "ceiling-qps"})
		},
	}},
	"D5": {special: []func([]*runs.Group) (Chart, bool, error){growthOfCommits, growthOfReads}},
	"E1": {bars: []string{"qps"}, quantiles: firstLayout},
	"E2": {bars: []string{"rows/s"}},
	"E3": {bars: []string{"p99-ms"}, quantiles: firstLayout},
}

func everyRow(p *pivot) []pivotRow { return p.rows }

// firstLayout keeps the settings of one layout, where all would be too many to
// choose from.
func firstLayout(p *pivot) []pivotRow {
	i := slices.Index(p.keys, "layout")
	if i < 0 || len(p.rows) == 0 {
		return p.rows
	}
	layout := p.rows[0].values[i]
	return slices.DeleteFunc(slices.Clone(p.rows), func(r pivotRow) bool { return r.values[i] != layout })
}

// withTables puts the tables of units beside a chart.
func withTables(c Chart, groups []*runs.Group, units ...string) Chart {
	p := newPivot(groups)
	c.Open = true
	for _, unit := range units {
		if t, ok := p.table(runs.Measure{Unit: unit}); ok {
			c.Tables = append(c.Tables, t)
		}
	}
	return c
}

func growthOfCommits(groups []*runs.Group) (Chart, bool, error) {
	limit, five := 500.0, 5.0
	a := degradation("chart-d5-commits", "D5: commit p99 over the size of the data; the decision tree wants less than 500 ms at 5x", runs.Measure{Unit: "p99-ms"})
	a.limits = []mark{{name: "500 ms", y: &limit}, {name: "5x", x: &five}}
	a.x.high = 10
	c, ok, err := a.chart(groups)
	return withTables(c, groups, "p99-ms"), ok, err
}

func growthOfReads(groups []*runs.Group) (Chart, bool, error) {
	c, ok, err := degradation("chart-d5-reads", "D5: reads a second of mix A over the size of the data", runs.Measure{Unit: "qps-A"}).chart(groups)
	return withTables(c, groups, "qps-A"), ok, err
}

// figures returns the charts of an experiment.
func figures(in *Input, id string) ([]Chart, error) {
	groups := runs.Where(in.groups(id), func(g *runs.Group) bool { return !isEnd(g) })
	if len(groups) == 0 {
		return nil, nil
	}
	p, d := newPivot(groups), drawings[id]
	var list []Chart
	add := func(c Chart, ok bool, err error) error {
		if ok && err == nil {
			list = append(list, c)
		}
		return err
	}
	anchor := "chart-" + strings.ToLower(id)
	for _, unit := range d.bars {
		if err := add(p.bars(anchor+"-"+slug(unit), id, runs.Measure{Unit: unit})); err != nil {
			return nil, err
		}
	}
	for _, chart := range d.special {
		if err := add(chart(groups)); err != nil {
			return nil, err
		}
	}
	if d.quantiles != nil {
		if err := add(p.quantiles(anchor+"-quantiles", id, d.quantiles(p))); err != nil {
			return nil, err
		}
	}
	if d.timeline {
		lines, err := p.timelines(anchor+"-timeline", id)
		if err != nil {
			return nil, err
		}
		list = append(list, lines...)
	}
	return list, nil
}
