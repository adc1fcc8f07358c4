package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/varvedb/varve/internal/report/runs"
	"github.com/varvedb/varve/internal/verdict"
)

// spec is how an experiment is shown. Units are words in a string.
type spec struct {
	ids     string // of experiments
	metrics string // units, a table each
	more    string // the same, on the page only
	kinds   string // units of latencies, a table by kind of operation each, on the page only
	byKind  bool   // these are the answer, also in a document
	apart   bool   // its workloads vary different things: tables of their own for each

	tables func(*pivot) []Table // further ones, if not nil

	bars      string // units that have a chart, with their tables; those joined by + stand on each other
	growth    string // units that have a chart over the size of the data
	quantiles bool   // distributions are drawn
	timeline  bool
}

// specs are the experiments that have a renderer.
var specs = []spec{
	{ids: "A1 A4", metrics: "rows/s", bars: "rows/s"},
	{ids: "A2 A3", metrics: "rows/s p99-ms", bars: "rows/s"},
	{ids: "A5 A6", metrics: "ent/s p99-ms", more: "rows/s p50-ms", bars: "ent/s", quantiles: true},
	{ids: "A7", metrics: "ent/s", bars: "ent/s"},
	{ids: "A8", metrics: "p50-ms max-ms", more: "p99-ms", tables: correlations, quantiles: true},
	{ids: "A11", metrics: "ent/s B/ent", more: "rows/s p50-ms p99-ms", bars: "ent/s B/ent"},
	{ids: "A12", metrics: "qps", kinds: "p50-ms", bars: "qps"},
	{ids: "A13", metrics: "ent/s p99-ms", more: "fsync-us", bars: "ent/s p99-ms"},
	{ids: "A14", tables: coefficients},
	{ids: "B1", metrics: "load-s rows/s data-MB", more: "B/row", bars: "rows/s"},
	{ids: "C1", metrics: "qps", kinds: "p50-ms p99-ms", bars: "qps", quantiles: true},
	{ids: "C2", metrics: "qps skipped", more: "late lag-ms", kinds: "p99-ms", bars: "qps", quantiles: true},
	{ids: "C3", metrics: "qps", more: "resident-before resident-after", kinds: "p50-ms", bars: "qps"},
	{
		ids: "D1", metrics: "rows/s settled-rows/s p50-ms p99-ms wal-MB", more: "max-ms resident", bars: "p99-ms db-MB+wal-MB",
		quantiles: true, timeline: true,
	},
	{ids: "D2", metrics: "p99-ms wal-MB", more: "max-ms", kinds: "p99-ms", byKind: true, bars: "p99-ms", quantiles: true, timeline: true},
	{ids: "D3", metrics: "p99-ms growth-MB", more: "p50-ms max-ms wal-MB", bars: "p99-ms", quantiles: true},
	{ids: "D4", metrics: "p99-ms qps ceiling-qps", more: "rows/s read-p99-ms", bars: "p99-ms ceiling-qps", quantiles: true, timeline: true},
	{
		ids: "D5", metrics: "p99-ms qps-A qps-B qps-C", more: "rows/s p99-ms-A p99-ms-B p99-ms-C",
		growth: "p99-ms qps-A",
	},
	{ids: "E1", metrics: "qps", kinds: "p50-ms p99-ms", byKind: true, bars: "qps", quantiles: true},
	{ids: "E2", metrics: "rows/s p99-ms", bars: "rows/s"},
	{ids: "E3", metrics: "rows/s qps p99-ms", kinds: "p99-ms", bars: "p99-ms", quantiles: true},
	{ids: "F1", metrics: "p50-ms ev/s", more: "p99-ms max-ms", bars: "ev/s"},
	{ids: "F2", metrics: "op/s", more: "p50-ms p99-ms max-ms", bars: "op/s"},
	{ids: "F3", metrics: "op/s p99-ms", more: "p50-ms max-ms", bars: "op/s"},
	{ids: "F4", metrics: "p50-ms op/s", more: "p99-ms max-ms"},
	{ids: "F5 F7 F8", metrics: "p50-ms", more: "p99-ms max-ms ev/s"},
	{ids: "F6", metrics: "rss-MB heap-MB"},
	{ids: "G1", metrics: "ingest-s rows/s closure-s data-MB qps p50-ms p95-ms p99-ms cpu-ms/1k", more: "index-s max-ms errors", apart: true},
	{
		ids: "G2", apart: true,
		metrics: "load-s rel/s data-MB B/rel qps share-success check-p50-ms check-p95-ms lookup-p50-ms lookup-p95-ms write-p50-ms write-p95-ms",
	},
	{ids: "H1", metrics: "p50-ms op/s", more: "p99-ms max-ms", bars: "op/s"},
	{
		ids: "H3", metrics: "qps p99-ms rows/s follow-p99-ms", more: "p50-ms capacity-qps behind-blocks skipped cores", kinds: "p50-ms p99-ms",
		bars: "qps", quantiles: true, timeline: true,
	},
	{
		ids: "Q1", apart: true,
		metrics: "commit-p50-ms commit-p99-ms commit-max-ms rows/s get-p50-ms get-p99-ms query-p50-ms query-max-ms data-MB B/ent",
	},
}

// experiment is what is known of one experiment.
type experiment struct {
	spec
	id      string
	groups  []*runs.Group
	pivots  []*pivot // more than one when its workloads stand apart
	leftOut string
}

// experiment reads the records of an experiment. One that has no spec shows its
// figures as they come.
func (in *Input) experiment(id string) experiment {
	x := experiment{id: id}
	x.groups, x.leftOut = in.of(id)
	if i := slices.IndexFunc(specs, func(s spec) bool { return slices.Contains(strings.Fields(s.ids), id) }); i >= 0 {
		x.spec = specs[i]
	} else {
		var units []string
		for _, g := range x.groups {
			for _, r := range g.Records {
				for _, m := range r.Metrics {
					units = runs.AppendNew(units, m.Unit)
				}
			}
		}
		x.metrics = strings.Join(units, " ")
	}
	x.split(in.floor())
	return x
}

// split puts groups together that have tables together. It leaves out those of no
// configuration: what a process that ended before its first measurement leaves behind.
func (x *experiment) split(floor runs.Floor) {
	measured := runs.Where(x.groups, func(g *runs.Group) bool { return !runs.End(g.Records[0]) })
	parts := runs.By(measured, func(*runs.Group) bool { return true })
	if x.apart {
		parts = runs.By(measured, func(g *runs.Group) string { return g.Name })
	}
	x.pivots = nil
	for _, part := range parts {
		x.pivots = append(x.pivots, newPivot(part, floor))
	}
}

// figures makes the tables of figures. Those of a document are fewer: the page has
// all.
func (x *experiment) figures(document bool) []Table {
	units, kinds := strings.Fields(x.metrics), strings.Fields(x.kinds)
	switch {
	case !document:
		units = append(units, strings.Fields(x.more)...)
	case !x.byKind:
		kinds = nil
	}
	var tables []Table
	for _, p := range x.pivots {
		first := len(tables)
		for _, unit := range units {
			tables = append(tables, p.table(unit, false)...)
		}
		for _, unit := range kinds {
			tables = append(tables, p.table(unit, true)...)
		}
		if x.spec.tables != nil {
			tables = append(tables, x.spec.tables(p)...)
		}
		if len(tables) > first && (document || x.apart) {
			tables[first].Caption = strings.TrimSpace(p.settings() + " " + tables[first].Caption)
		}
	}
	return tables
}

// Tables returns the tables of an experiment for Markdown, at least one: when
// nothing was measured it says so, and what to run.
func Tables(in *Input, id string) []Table {
	x := in.experiment(id)
	tables := x.figures(true)
	if len(tables) == 0 {
		tables = []Table{x.missing("`")}
	}
	last := &tables[len(tables)-1]
	last.Notes = nonempty(slices.Concat(last.Notes, x.endings(false), []string{sentence(x.leftOut)})...)
	return tables
}

// missing says that there is nothing to show of an experiment.
func (x *experiment) missing(quote string) Table {
	why := "Not measured."
	if x.leftOut != "" {
		why = "No records of a known revision."
	}
	return Table{Notes: []string{why + " To measure it: " + quote + verdict.Command(x.id, "", "", 0) + quote}}
}

// endings are the errors of runs, each once, or only those that are in no table.
func (x *experiment) endings(hidden bool) []string {
	var notes []string
	for _, g := range x.groups {
		for _, r := range g.Records {
			if r.Error != "" && (!hidden || runs.End(r)) {
				notes = runs.AppendNew(notes, fmt.Sprintf("Failed: %s: %s", r.Config, oneLine(r.Error)))
			}
		}
	}
	return notes
}

// WriteText writes what was measured of an experiment for a terminal: a table for each
// workload, with its settings and engines below each other and the figures side by
// side, and what failed.
func WriteText(out io.Writer, in *Input, id string) error {
	loose := *in
	loose.loose = true
	x := loose.experiment(id)
	x.apart = true
	slices.SortStableFunc(x.groups, func(a, b *runs.Group) int { return cmp.Compare(a.Name, b.Name) }) // and not as they were measured
	x.split(nil)
	for _, p := range x.pivots {
		units := slices.DeleteFunc(strings.Fields(x.metrics+" "+x.more), func(unit string) bool { return len(p.table(unit, false)) == 0 })
		if len(units) == 0 {
			continue // what failed is said below
		}
		fmt.Fprintf(out, "%s: %s\n", p.groups[0].Name, p.settings())
		if err := p.text(out, units); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	for _, note := range nonempty(append(x.endings(false), x.leftOut)...) {
		fmt.Fprintln(out, note)
	}
	return nil
}

// text writes units below each other and engines side by side, which fits into the 80 columns
// of a terminal. Where a setting varies the engines stand below each other, a line for each
// of its values. Figures are to the right.
func (p *pivot) text(out io.Writer, units []string) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	line := func(cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")+"\t") }
	if len(p.keys) == 0 {
		line(append([]string{""}, p.engines...)...)
		for _, unit := range units {
			cells := []string{unit}
			for _, name := range p.engines {
				cells = append(cells, p.figure(p.rows[0].byEngine[name], nil, runs.Measure{Unit: unit}).Text)
			}
			line(cells...)
		}
		return w.Flush()
	}
	line(slices.Concat(p.keys, []string{"engine"}, units)...)
	for _, r := range p.rows {
		for _, g := range p.of(&r) {
			cells := append(slices.Clone(r.values), g.Get("engine"))
			for _, unit := range units {
				cells = append(cells, p.figure(g, nil, runs.Measure{Unit: unit}).Text)
			}
			line(cells...)
		}
	}
	return w.Flush()
}
