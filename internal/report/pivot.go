package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/stat"
	"github.com/varvedb/varve/internal/report/runs"
)

// enginesOf returns the engines of groups in order.
func enginesOf(groups []*runs.Group) []string {
	found := nonempty(runs.Distinct(groups, "engine")...)
	sortEngines(found)
	return found
}

// pivot is an experiment's groups with the engines side by side: a row for each
// of the other settings.
type pivot struct {
	groups  []*runs.Group // in the order of rows and engines
	engines []string
	keys    []string      // settings that vary, besides the engine
	common  result.Config // settings that do not
	rows    []pivotRow
	floor   runs.Floor
	sized   func(profile string) float64 // where profiles are sizes
}

// pivotRow is one setting on each engine.
type pivotRow struct {
	values   []string // of the keys
	byEngine map[string]*runs.Group
}

// newPivot puts rows in natural order: blocks are measured in random order, so that
// in which records came says nothing.
func newPivot(groups []*runs.Group, floor runs.Floor) *pivot {
	return pivotOf(groups, floor, keysOf(groups))
}

// keysOf are the settings of groups besides the engine.
func keysOf(groups []*runs.Group) (keys []string) {
	for _, g := range groups {
		for _, pair := range g.Config.Without("engine") {
			keys = runs.AppendNew(keys, pair.Key)
		}
	}
	return keys
}

// pivotOf makes rows of some settings.
func pivotOf(groups []*runs.Group, floor runs.Floor, keys []string) *pivot {
	p := &pivot{engines: enginesOf(groups), floor: floor}
	for _, key := range keys {
		if values := runs.Distinct(groups, key); len(values) > 1 {
			p.keys = append(p.keys, key)
		} else {
			p.common = append(p.common, result.Pair{Key: key, Value: values[0]})
		}
	}
	for _, g := range groups {
		r := pivotRow{byEngine: map[string]*runs.Group{}}
		for _, key := range p.keys {
			r.values = append(r.values, g.Get(key))
		}
		i, found := slices.BinarySearchFunc(p.rows, r, func(a, b pivotRow) int { return slices.CompareFunc(a.values, b.values, natural) })
		if !found {
			p.rows = slices.Insert(p.rows, i, r)
		}
		if old := p.rows[i].byEngine[g.Get("engine")]; old == nil || old.Failed() {
			p.rows[i].byEngine[g.Get("engine")] = g
		}
	}
	for _, r := range p.rows {
		p.groups = append(p.groups, p.of(&r)...)
	}
	return p
}

// of are the groups of a row, in the order of engines.
func (p *pivot) of(r *pivotRow) (groups []*runs.Group) {
	for _, e := range p.engines {
		if g := r.byEngine[e]; g != nil {
			groups = append(groups, g)
		}
	}
	return groups
}

// size is the index of the key that says how much data a row is of; -1 where there is
// none, or no other size.
func (p *pivot) size() int {
	return slices.IndexFunc(p.keys, func(key string) bool {
		return slices.Contains(sizes, key) || p.sized != nil && key == "profile"
	})
}

// series are the rows that differ in their size alone, from the smallest on.
func (p *pivot) series() [][]pivotRow {
	return runs.By(p.rows, func(r pivotRow) string { return strings.Join(p.but(&r, p.size()), " ") })
}

// but are the values of a row without those of some keys; -1 is none.
func (p *pivot) but(r *pivotRow, at ...int) (values []string) {
	for i, v := range r.values {
		if !slices.Contains(at, i) {
			values = append(values, v)
		}
	}
	return values
}

// heads are those of the keys. What was delivered is a figure.
func (p *pivot) heads() []string {
	words := slices.Clone(p.keys)
	for i, key := range p.keys {
		if key == "rate" || key == "qps" {
			words[i] = key + " asked"
		}
	}
	return words
}

// label names a row in charts.
func (r *pivotRow) label() string { return strings.Join(r.values, " ") }

// settings writes how many runs medians are of, and what all rows have in common.
func (p *pivot) settings() string {
	parts := make([]string, len(p.common))
	for i, pair := range p.common {
		parts[i] = pair.Key + " " + readable(pair.Value)
	}
	return joinWords("; ", repeats(p.groups), strings.Join(parts, ", ")) + "."
}

// repeats writes how many runs medians are of.
func repeats(groups []*runs.Group) string {
	low, high := math.MaxInt, 0
	for _, g := range groups {
		if n := len(g.Good()); n > 0 {
			low, high = min(low, n), max(high, n)
		}
	}
	spread := "the range"
	if high >= enoughRuns && low < enoughRuns {
		spread = fmt.Sprintf("the 95 %% interval, of fewer than %d the range", enoughRuns)
	} else if high >= enoughRuns {
		spread = "the 95 % interval"
	}
	switch high {
	case 0, 1:
		return "Single runs"
	case low:
		return fmt.Sprintf("Medians of %d runs (%s)", high, spread)
	}
	return fmt.Sprintf("Medians of %d to %d runs (%s)", low, high, spread)
}

// readable puts commas into whole numbers.
func readable(value string) string {
	if len(value) > 4 && strings.Trim(value, "0123456789") == "" {
		return runs.Thousands(value)
	}
	return value
}

// table puts a figure into a row for each setting, or each kind of operation in it,
// and a column for each engine; it is none when no record has the figure.
func (p *pivot) table(unit string, byKind bool) []Table {
	named, of := heads(p.heads()...), unit
	if byKind {
		named, of = append(named, Column{Head: "operation"}), unit+" by kind of operation"
	} else if len(named) == 0 {
		named = heads("")
	}
	g := newGrid(named, engineHeads(p.engines, " "+unit))
	g.Of = of
	found := false
	for _, r := range p.rows {
		kinds := []string{""}
		if byKind {
			kinds = p.kinds(&r)
		}
		for _, kind := range kinds {
			for i, e := range p.engines {
				c := p.figure(r.byEngine[e], r.byEngine[p.engines[0]], runs.Measure{Unit: unit, Kind: kind})
				found = found || c.Value != nil || strings.HasPrefix(c.Text, maximum)
				*g.at(r.names(kind), i) = c
			}
		}
	}
	if !found {
		return nil
	}
	g.Rows = slices.DeleteFunc(g.Rows, func(row []Cell) bool {
		return !slices.ContainsFunc(row[g.named:], func(c Cell) bool { return c.Text != "" })
	})
	g.shade(result.Better(unit))
	return []Table{*g}
}

// names are the first cells of a row, or of a kind of operation in it.
func (r *pivotRow) names(kind string) (words []string) {
	for _, v := range r.values {
		words = append(words, readable(v))
	}
	if kind != "" {
		words = append(words, kind)
	}
	if len(words) == 0 {
		words = []string{"all"}
	}
	return words
}

// kinds returns the kinds of operations of a row in their order. Latencies of all
// operations that are those of one kind are none of their own.
func (p *pivot) kinds(r *pivotRow) []string {
	var kinds []string
	for _, g := range p.of(r) {
		for _, record := range g.Records {
			for _, d := range record.Latencies {
				if d.Kind != "all" || !slices.ContainsFunc(record.Latencies, func(o result.Distribution) bool {
					return o.Kind != d.Kind && o.Count == d.Count
				}) {
					kinds = runs.AppendNew(kinds, d.Kind)
				}
			}
		}
	}
	return kinds
}

// enoughRuns are those whose median has an interval.
const enoughRuns = 6

// maximum marks what stands where a quantile has too few operations.
const maximum = "max "

// figure is the median of a group, with what is known of its accuracy and how
// it compares with the baseline.
func (p *pivot) figure(g, baseline *runs.Group, m runs.Measure) Cell {
	switch {
	case g == nil:
		return Cell{}
	case g.Failed():
		return Cell{Text: "failed", Class: "fail", Link: failureID(g.Key())}
	}
	n, of := g.Count(m), ""
	if n > 0 {
		of = fmt.Sprintf(" (n %s)", runs.Thousands(fmt.Sprint(n)))
	}
	values := g.Values(m)
	if v, ok := runs.Median(values); ok {
		return Cell{Text: runs.Number(v) + of, Value: &v, Spread: spread(values), Detail: p.compare(values, baseline, g, m)}
	}
	// A high quantile of few operations is their maximum, and called that.
	if longest, ok := g.Longest(m); ok && n > 0 {
		return Cell{Text: maximum + runs.Number(longest) + of}
	}
	return Cell{}
}

// interval is that of the median, or where there are too few runs for one the range.
func interval(values []float64) (low, high float64) {
	if s := stat.Summarize(values); s.Bounded() {
		return s.Low, s.High
	}
	return slices.Min(values), slices.Max(values)
}

func spread(values []float64) string { return spreadOf(values, runs.Number) }

// spreadOf writes the interval of values; "" where it is none.
func spreadOf(values []float64, write func(float64) string) string {
	if len(values) < 2 {
		return ""
	}
	low, high := interval(values)
	if write(low) == write(high) {
		return ""
	}
	return write(low) + "–" + write(high)
}

// compare is the ratio to the baseline, unless they are as far apart as two
// measurements of the same, with the p-value of there being no difference where the
// runs are enough for one.
func (p *pivot) compare(values []float64, baseline, g *runs.Group, m runs.Measure) string {
	if baseline == nil || baseline == g {
		return ""
	}
	old := baseline.Values(m)
	if len(old) == 0 {
		return ""
	}
	c := stat.Compare(old, values)
	if c.Old.Median == 0 {
		return ""
	}
	text := fmt.Sprintf("%s× %s", runs.Number(c.New.Median/c.Old.Median), baseline.Get("engine"))
	switch {
	case p.floor.Inside(m.Unit, c.New.Median, c.Old.Median):
		return text + ", inside the noise"
	case c.LeastP >= stat.Alpha:
		return text
	case c.P < stat.Alpha:
		return fmt.Sprintf("%s (p=%.2g)", text, c.P)
	}
	return fmt.Sprintf("%s (p=%.2g, not significant)", text, c.P)
}
