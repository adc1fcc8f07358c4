package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
)

// maxCategories is how many groups of bars fit beside each other on a page.
const maxCategories = 14

// bars shows a figure as a bar for each engine and setting. Where there are too
// many settings the reader chooses the value of one of them.
func (p *pivot) bars(id, name string, m runs.Measure) (Chart, bool, error) {
	c := Chart{ID: id, Caption: fmt.Sprintf("%s: %s", name, m.Unit), Open: true}
	by, split := p.split()
	for i, key := range p.keys {
		if i != by {
			c.Caption += map[bool]string{true: ", ", false: " by "}[strings.Contains(c.Caption, " by ")] + key
		}
	}
	if p.hasSpread(m) {
		c.Caption += "; logarithmic"
	}
	for _, part := range split {
		d := p.barDrawing(part.rows, m, by)
		d.label = part.label
		if len(d.bars) == 0 {
			continue
		}
		v, err := d.variant()
		if err != nil {
			return c, false, err
		}
		c.Variants = append(c.Variants, v)
	}
	c.Alt = "Bars for each engine and setting; the same figures are in the table"
	if t, ok := p.table(m); ok {
		c.Tables = []Table{t}
	}
	return c, len(c.Variants) > 0, nil
}

// part is some of the rows of a pivot.
type part struct {
	label string // the value of the key that parts were made by
	rows  []pivotRow
}

// split parts the rows by one of the keys when there are too many for one chart:
// by that which leaves the most together. It returns the key's index, or -1.
func (p *pivot) split() (by int, parts []part) {
	by, parts = -1, []part{{rows: p.rows}}
	if len(p.rows) <= maxCategories {
		return by, parts
	}
	for i := range p.keys {
		candidate := p.splitBy(i)
		if len(candidate) > 1 && (by < 0 || fits(candidate) && (!fits(parts) || len(candidate) < len(parts))) {
			by, parts = i, candidate
		}
	}
	return by, parts
}

func fits(parts []part) bool {
	return !slices.ContainsFunc(parts, func(p part) bool { return len(p.rows) > maxCategories })
}

func (p *pivot) splitBy(key int) []part {
	var parts []part
	for _, r := range p.rows {
		label := p.keys[key] + " " + readable(r.values[key])
		i := slices.IndexFunc(parts, func(o part) bool { return o.label == label })
		if i < 0 {
			i = len(parts)
			parts = append(parts, part{label: label})
		}
		parts[i].rows = append(parts[i].rows, r)
	}
	return parts
}

func (p *pivot) barDrawing(rows []pivotRow, m runs.Measure, without int) drawing {
	d := drawing{x: axis{labels: []string{}}, y: axis{name: m.Unit, format: "number", log: p.hasSpread(m)}}
	for _, r := range rows {
		if without >= 0 {
			r.values = slices.Delete(slices.Clone(r.values), without, without+1)
		}
		label := r.label()
		if label == "" {
			label = "all"
		}
		d.x.labels = append(d.x.labels, label)
	}
	for _, e := range p.engines {
		s := series{name: e, tag: Tag{Engine: e}}
		found := false
		for _, r := range rows {
			v := value(r.byEngine[e], m)
			found = found || v != nil
			s.values = append(s.values, v)
		}
		if found {
			d.bars = append(d.bars, s)
		}
	}
	return d
}

// value is the median of a group, if it has one.
func value(g *runs.Group, m runs.Measure) *float64 {
	if g == nil {
		return nil
	}
	v, ok := g.Median(m)
	if !ok {
		return nil
	}
	return &v
}

// hasSpread tells whether figures are so far apart that on a linear axis the
// small ones could not be seen.
func (p *pivot) hasSpread(m runs.Measure) bool {
	var values []float64
	for _, r := range p.rows {
		for _, g := range r.byEngine {
			if v := value(g, m); v != nil {
				if *v <= 0 {
					return false // has no logarithm
				}
				values = append(values, *v)
			}
		}
	}
	return len(values) > 1 && slices.Max(values) > 50*slices.Min(values)
}

// sizes shows what each engine and layout takes on the disk: the database and,
// on top of it, the largest log of the run.
func sizes(groups []*runs.Group) (Chart, bool, error) {
	p := newPivot(groups)
	c := Chart{
		ID: "chart-sizes", Caption: "Size on disk at the end of the sustained load (D1): database, and the largest log on top",
		Alt: "Stacked bars of database and log size by engine and setting; the same figures are in the table",
	}
	d := drawing{x: axis{labels: []string{}}, y: axis{name: "MB", format: "number"}}
	table := Table{Columns: heads("engine", "setting")}
	table.Columns = append(table.Columns, Column{Head: "database MB", Numeric: true}, Column{Head: "largest log MB", Numeric: true})
	for _, r := range p.rows {
		d.x.labels = append(d.x.labels, r.label())
	}
	for _, e := range p.engines {
		database := series{name: e + " database", tag: Tag{Engine: e}, stack: e}
		log := series{name: e + " log", tag: Tag{Engine: e, Role: "second"}, stack: e}
		found := false
		for _, r := range p.rows {
			size, wal := onDisk(r.byEngine[e])
			database.values, log.values = append(database.values, size), append(log.values, wal)
			if size != nil || wal != nil {
				found = true
				table.Rows = append(table.Rows, []Cell{text(e), text(r.label()), optional(size), optional(wal)})
			}
		}
		if found {
			d.bars = append(d.bars, database, log)
		}
	}
	if len(d.bars) == 0 {
		return c, false, nil
	}
	v, err := d.variant()
	c.Variants, c.Tables = []Variant{v}, []Table{table}
	return c, true, err
}

// onDisk is the last size of the database and the largest of the log, in MB.
func onDisk(g *runs.Group) (database, wal *float64) {
	if g == nil || g.Failed() {
		return nil, nil
	}
	database, wal = value(g, runs.Measure{Unit: "db-MB"}), value(g, runs.Measure{Unit: "wal-MB"})
	for _, s := range g.Good()[0].Timeline {
		if s.DatabaseBytes != nil {
			mb := float64(*s.DatabaseBytes) / 1e6
			database = &mb
		}
		if s.WALBytes != nil {
			mb := float64(*s.WALBytes) / 1e6
			if wal == nil || mb > *wal {
				wal = &mb
			}
		}
	}
	return database, wal
}

func optional(v *float64) Cell {
	if v == nil {
		return Cell{}
	}
	return text(Number(*v))
}

// matrix is a figure of an experiment with a row for each layout: the heat table
// of engines and layouts. Of several settings of a layout the best is shown.
func matrix(groups []*runs.Group, m runs.Measure, caption string) (Table, bool) {
	groups = runs.Where(groups, func(g *runs.Group) bool { return g.Get("layout") != "" && g.Get("engine") != "" })
	t := Table{Caption: caption, Columns: heads("layout")}
	engines := enginesOf(groups)
	for _, e := range engines {
		t.Columns = append(t.Columns, Column{Head: e + " " + m.Unit, Engine: e, Numeric: true})
	}
	good := result.Better(m.Unit)
	vary := newPivot(groups).keys
	var values [][]*float64
	for _, layout := range runs.Distinct(groups, "layout") {
		row, figures := names(layout), []*float64{nil}
		found := false
		for _, e := range engines {
			own := runs.Where(groups, func(g *runs.Group) bool { return g.Get("engine") == e && g.Get("layout") == layout })
			best := bestOf(own, m, good)
			cell, v := figure(best, nil, m)
			if best != nil {
				cell.Detail = join(cell.Detail, others(best, vary))
			}
			row, figures = append(row, cell), append(figures, v)
			found = found || v != nil
		}
		if found {
			t.Rows, values = append(t.Rows, row), append(values, figures)
		}
	}
	shade(&t, values, good)
	return t, len(t.Rows) > 0
}

// others are the settings of a group that vary, besides engine and layout.
func others(g *runs.Group, vary []string) string {
	var text string
	for _, pair := range g.Config {
		if pair.Key != "layout" && slices.Contains(vary, pair.Key) {
			text = join(text, pair.Key+" "+pair.Value)
		}
	}
	return text
}

func bestOf(groups []*runs.Group, m runs.Measure, good result.Direction) *runs.Group {
	var best *runs.Group
	var of float64
	for _, g := range groups {
		v, ok := g.Median(m)
		if ok && (best == nil || (v < of) == (good == result.Lower)) {
			best, of = g, v
		}
	}
	if best == nil && len(groups) > 0 {
		return groups[0]
	}
	return best
}
