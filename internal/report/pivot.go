package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/report/runs"
)

// enginesOf returns the engines of groups in order.
func enginesOf(groups []*runs.Group) []string {
	found := runs.Distinct(groups, "engine")
	found = slices.DeleteFunc(found, func(e string) bool { return e == "" })
	slices.SortFunc(found, func(a, b string) int {
		return cmp.Or(cmp.Compare(engine.Rank(a), engine.Rank(b)), cmp.Compare(a, b))
	})
	return found
}

// pivot is an experiment's groups with the engines side by side: a row for each
// of the other settings.
type pivot struct {
	engines []string
	keys    []string      // settings that vary, besides the engine
	common  result.Config // settings that do not
	rows    []pivotRow
}

// pivotRow is one setting on each engine.
type pivotRow struct {
	values   []string // of the keys
	byEngine map[string]*runs.Group
}

// newPivot leaves out groups that are of no configuration: what a process that
// ended before its first measurement leaves behind.
func newPivot(groups []*runs.Group) *pivot {
	groups = runs.Where(groups, func(g *runs.Group) bool { return !isEnd(g) })
	p := &pivot{engines: enginesOf(groups)}
	orders := map[string][]string{}
	for _, key := range keysOf(groups) {
		values := runs.Distinct(groups, key)
		if len(values) == 1 {
			p.common = append(p.common, result.Pair{Key: key, Value: values[0]})
			continue
		}
		p.keys = append(p.keys, key)
		orders[key] = inOrder(values)
	}
	for _, g := range groups {
		p.add(g)
	}
	slices.SortStableFunc(p.rows, func(a, b pivotRow) int {
		for i, key := range p.keys {
			order := orders[key]
			if c := slices.Index(order, a.values[i]) - slices.Index(order, b.values[i]); c != 0 {
				return c
			}
		}
		return 0
	})
	return p
}

// isEnd tells whether a group is the end of a process and not a measurement.
func isEnd(g *runs.Group) bool { return len(g.Config) <= 1 && g.Failed() }

func (p *pivot) add(g *runs.Group) {
	values := make([]string, len(p.keys))
	for i, key := range p.keys {
		values[i] = g.Get(key)
	}
	i := slices.IndexFunc(p.rows, func(r pivotRow) bool { return slices.Equal(r.values, values) })
	if i < 0 {
		i = len(p.rows)
		p.rows = append(p.rows, pivotRow{values: values, byEngine: map[string]*runs.Group{}})
	}
	if old := p.rows[i].byEngine[g.Get("engine")]; old == nil || old.Failed() {
		p.rows[i].byEngine[g.Get("engine")] = g
	}
}

// keysOf returns the keys of all configurations but the engine, in order.
func keysOf(groups []*runs.Group) []string {
	var keys []string
	for _, g := range groups {
		at := 0
		for _, pair := range g.Config {
			if pair.Key == "engine" {
				continue
			}
			if i := slices.Index(keys, pair.Key); i >= 0 {
				at = i + 1
				continue
			}
			keys = slices.Insert(keys, at, pair.Key)
			at++
		}
	}
	return keys
}

// inOrder sorts values by the number at their end when they have one and are
// otherwise the same, as arkiv-0 to arkiv-13; else they stay as they came.
func inOrder(values []string) []string {
	prefix := func(s string) string { return strings.TrimRight(s, "0123456789.") }
	number := func(s string) (float64, bool) {
		v, err := strconv.ParseFloat(strings.TrimPrefix(s, prefix(s)), 64)
		return v, err == nil
	}
	for _, v := range values {
		if _, ok := number(v); !ok || prefix(v) != prefix(values[0]) {
			return values
		}
	}
	sorted := slices.Clone(values)
	slices.SortFunc(sorted, func(a, b string) int {
		x, _ := number(a)
		y, _ := number(b)
		return cmp.Compare(x, y)
	})
	return sorted
}

// label names a row in charts.
func (r *pivotRow) label() string { return strings.Join(r.values, " ") }

// settings writes what all rows have in common.
func (p *pivot) settings() string {
	parts := make([]string, len(p.common))
	for i, pair := range p.common {
		parts[i] = pair.Key + " " + readable(pair.Value)
	}
	return strings.Join(parts, ", ")
}

// readable puts commas into whole numbers.
func readable(value string) string {
	if len(value) > 4 && strings.Trim(value, "0123456789") == "" {
		return runs.Thousands(value)
	}
	return value
}

// table puts a figure into a row for each setting and a column for each engine;
// false when no record has it.
func (p *pivot) table(m runs.Measure) (Table, bool) {
	t, ok := p.fill(m.Unit, p.rows, nil, func(pivotRow) runs.Measure { return m })
	t.Of = m.Unit
	return t, ok
}

// kinds is like table, with a row for each kind of operation.
func (p *pivot) kinds(unit string) (Table, bool) {
	var rows []pivotRow
	var kinds []string
	for _, r := range p.rows {
		for _, kind := range kindsOf(r, p.engines) {
			rows = append(rows, r)
			kinds = append(kinds, kind)
		}
	}
	i := -1
	t, ok := p.fill(unit, rows, kinds, func(pivotRow) runs.Measure {
		i++
		return runs.Measure{Unit: unit, Kind: kinds[i]}
	})
	t.Of = unit + " by kind of operation"
	return t, ok
}

// kindsOf returns the kinds of operations of a row in their order.
func kindsOf(r pivotRow, engines []string) []string {
	var kinds []string
	for _, engine := range engines {
		g := r.byEngine[engine]
		if g == nil {
			continue
		}
		for _, record := range g.Records {
			for i := range record.Latencies {
				d := &record.Latencies[i]
				if !slices.Contains(kinds, d.Kind) && !repeats(record, d) {
					kinds = append(kinds, d.Kind)
				}
			}
		}
	}
	return kinds
}

// repeats tells whether latencies of all operations are those of one kind.
func repeats(r *result.Record, all *result.Distribution) bool {
	return all.Kind == "all" && slices.ContainsFunc(r.Latencies, func(d result.Distribution) bool {
		return d.Kind != all.Kind && d.Count == all.Count
	})
}

// fill makes a table of rows; kinds, if any, is a further column.
func (p *pivot) fill(unit string, rows []pivotRow, kinds []string, measure func(pivotRow) runs.Measure) (Table, bool) {
	t := Table{Columns: heads(p.keys...)}
	for i, key := range p.keys {
		if key == "rate" || key == "qps" { // what was delivered is a figure
			t.Columns[i].Head = key + " asked"
		}
	}
	if kinds != nil {
		t.Columns = append(t.Columns, Column{Head: "operation"})
	}
	if len(t.Columns) == 0 {
		t.Columns = heads("")
	}
	for _, e := range p.engines {
		t.Columns = append(t.Columns, Column{Head: e + " " + unit, Engine: e, Numeric: true})
	}
	var values [][]*float64
	found := false
	for i, r := range rows {
		cells := names(r.values...)
		for j := range cells {
			cells[j].Text = readable(cells[j].Text)
		}
		if kinds != nil {
			cells = append(cells, text(kinds[i]))
		}
		if len(cells) == 0 {
			cells = names("all")
		}
		figures := make([]*float64, len(cells))
		m := measure(r)
		baseline := r.byEngine[p.engines[0]]
		for _, e := range p.engines {
			cell, v := figure(r.byEngine[e], baseline, m)
			cells, figures = append(cells, cell), append(figures, v)
			found = found || v != nil || strings.HasPrefix(cell.Text, maximum)
		}
		t.Rows, values = append(t.Rows, cells), append(values, figures)
	}
	if !found {
		return Table{}, false
	}
	shade(&t, values, result.Better(unit))
	return t, true
}

// maximum marks what stands where a quantile has too few operations.
const maximum = "max "

// figure is the median of a group, with what is known of its accuracy and how
// it compares with the baseline.
func figure(g, baseline *runs.Group, m runs.Measure) (Cell, *float64) {
	if g == nil {
		return Cell{}, nil
	}
	if g.Failed() {
		return Cell{Text: "failed", Detail: g.Records[0].Error, Class: "fail"}, nil
	}
	n, of := g.Count(m), ""
	if n > 0 {
		of = fmt.Sprintf(" (n %s)", runs.Thousands(fmt.Sprint(n)))
	}
	v, ok := g.Median(m)
	if ok {
		return Cell{Text: Number(v) + of, Detail: accuracy(g, baseline, m)}, &v
	}
	// A high quantile of few operations is their maximum, and called that.
	if longest, ok := g.Longest(m); ok && n > 0 {
		return Cell{Text: maximum + Number(longest) + of}, nil
	}
	return Cell{}, nil
}

// repeats writes how many runs the medians are of.
func (p *pivot) repeats() string {
	low, high := 0, 0
	for _, r := range p.rows {
		for _, g := range r.byEngine {
			n := len(g.Good())
			if n == 0 {
				continue
			}
			if low == 0 || n < low {
				low = n
			}
			high = max(high, n)
		}
	}
	switch {
	case high <= 1:
		return "single runs"
	case low == high:
		return fmt.Sprintf("medians of %d runs", high)
	}
	return fmt.Sprintf("medians of %d to %d runs", low, high)
}
