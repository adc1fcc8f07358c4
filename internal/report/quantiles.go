package report

import (
	"fmt"
	"math"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
)

// quantiles shows distributions of latencies: the share of operations that took
// at most so long, with room for the slowest ones. Each setting and kind of
// operation is a variant, with a line for each engine.
func (p *pivot) quantiles(id, name string, rows []pivotRow) (Chart, bool, error) {
	c := Chart{
		ID: id, Caption: name + ": latency by share of operations that were no slower",
		Alt: "Quantile curves by engine with both axes logarithmic, the slowest operations to the right; the quantiles are in the table",
	}
	table := Table{Columns: append(heads(p.keys...), heads("operation", "engine")...)}
	table.Columns = append(table.Columns, Column{Head: "operations", Numeric: true})
	for _, unit := range quantileUnits {
		table.Columns = append(table.Columns, Column{Head: unit, Numeric: true})
	}
	for _, r := range rows {
		for _, kind := range kindsOf(r, p.engines) {
			d := p.quantileDrawing(r, kind, &table)
			if len(d.lines) == 0 {
				continue
			}
			v, err := d.variant()
			if err != nil {
				return c, false, err
			}
			c.Variants = append(c.Variants, v)
		}
	}
	c.Tables = []Table{table}
	return c, len(c.Variants) > 0, nil
}

var quantileUnits = []string{"mean-ms", "p50-ms", "p95-ms", "p99-ms", "p999-ms", "max-ms"}

func (p *pivot) quantileDrawing(r pivotRow, kind string, table *Table) drawing {
	d := drawing{
		label: joinWords(r.label(), kind),
		x:     axis{name: "share of operations", log: true, format: "percentile"},
		y:     axis{name: "ms", log: true, format: "number"},
	}
	for _, e := range p.engines {
		dist := distribution(r.byEngine[e], kind)
		if dist == nil {
			continue
		}
		if s := curve(e, dist); len(s.points) > 0 {
			d.lines = append(d.lines, s)
		}
		row := append(names(r.values...), text(kind), text(e), text(runs.Thousands(fmt.Sprint(dist.Count))))
		for _, unit := range quantileUnits {
			cell := Cell{}
			if v, ok := runs.Quantile(dist, unit); ok {
				cell.Text = Number(v)
			}
			row = append(row, cell)
		}
		table.Rows = append(table.Rows, row)
	}
	return d
}

// distribution is that of the first repetition that ended well: distributions of
// several have no median.
func distribution(g *runs.Group, kind string) *result.Distribution {
	if g == nil || g.Failed() {
		return nil
	}
	if d := g.Good()[0].Latency(kind); d != nil && d.Count > 0 {
		return d
	}
	return nil
}

// curve has the share of slower operations on its x axis, upside down: 1 is the
// median's twofold, every further decade a nine more.
func curve(engine string, d *result.Distribution) series {
	s := series{name: engine, tag: Tag{Engine: engine}, symbol: "none"}
	for _, q := range d.Curve {
		slower := 1 - q.Percent/100
		if slower <= 0 {
			slower = 1 / float64(d.Count+1)
		}
		x := 1 / slower
		y := runs.Milliseconds(q.Value)
		if y <= 0 || math.IsInf(x, 0) {
			continue
		}
		if n := len(s.points); n > 0 && round(s.points[n-1][0]) == round(x) {
			s.points[n-1] = [2]float64{x, y}
			continue
		}
		s.points = append(s.points, [2]float64{x, y})
	}
	return s
}

func joinWords(words ...string) string {
	var text string
	for _, w := range words {
		if w == "" {
			continue
		}
		if text != "" {
			text += " · "
		}
		text += w
	}
	return text
}
