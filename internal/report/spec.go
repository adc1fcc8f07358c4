package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/varvedb/varve/bench/rebac"
	"github.com/varvedb/varve/internal/report/runs"
	"github.com/varvedb/varve/internal/verdict"
)

// spec is how an experiment is shown. Units are words in a string.
type spec struct {
	ids     string // of experiments
	metrics string // units on the page, a table each
	kinds   string // units of latencies there, a table by kind of operation each
	apart   bool   // its workloads vary different things: tables of their own for each

	brief []view                   // its tables in a document
	full  string                   // size of the documents' own, as key=value; "" is scale=1
	grows string                   // the experiment that has its figures over sizes
	sized func(string) float64     // how much data the name of a profile stands for
	parts []string                 // of the evaluation: what the documents want of its figures
	judge func(*experiment) string // says whether the documents are right, where factors do not tell

	tables func(*pivot) []Table // further ones, if not nil

	bars      string // units that have a chart, with their tables; those joined by + stand on each other
	growth    string // units that have a chart over the size of the data
	quantiles bool   // distributions are drawn
	timeline  bool
}

// indexes are the factors that Experiments 1 to 3 of the documents report.
const indexes = "indexes:0:2 indexes:0:6"

// specs are the experiments that have a renderer.
var specs = []spec{
	{
		ids: "A1", metrics: "rows/s", bars: "rows/s", full: "rows=1000000",
		brief: []view{{units: "rows/s", size: largest, hide: "indexes=2", compare: indexes}},
	},
	{
		ids: "A4", metrics: "rows/s", bars: "rows/s", full: "rows=1000000",
		brief: []view{{units: "rows/s", size: largest, compare: "mode:bulk:single"}},
	},
	{
		ids: "A2 A3", metrics: "rows/s p99-ms", bars: "rows/s", full: "rows=10000000",
		brief: []view{{units: "rows/s", size: largest, hide: "indexes=2", compare: indexes}},
	},
	{
		ids: "A5", metrics: "ent/s p99-ms rows/s p50-ms", bars: "ent/s", quantiles: true, full: "entities=100000",
		brief: []view{{units: "ent/s", hide: "profile=large-256B", compare: "profile:minimal-256B:minimal profile:typical-256B:typical profile:large-256B:large"}},
	},
	{
		ids: "A6", metrics: "ent/s p99-ms rows/s p50-ms", bars: "ent/s", quantiles: true, full: "entities=100000",
		brief: []view{{units: "ent/s", with: "A5", where: "profile=minimal|typical|large", compare: "layout:arkiv:simple", gain: true}},
	},
	{
		ids: "A7", metrics: "ent/s", bars: "ent/s", full: "entities=50000",
		brief: []view{{units: "ent/s", size: largest, hide: "memory=0.5", compare: "memory:0.1:1.5", gain: true, claim: 1}},
	},
	{
		ids: "A8", metrics: "p50-ms max-ms p99-ms", tables: correlations, quantiles: true, full: "blocks=50000", judge: judgeCorrelations,
		brief: []view{
			{units: "r-entities r-attributes r-strings r-numbers r-payload-each", where: "profile=mendoza layout=arkiv"},
			{units: "partial-entities partial-strings partial-numbers partial-payload_bytes", where: "profile=independent layout=arkiv"},
		},
	},
	{
		ids: "A11", metrics: "ent/s B/ent rows/s p50-ms p99-ms", bars: "ent/s B/ent", full: "entities=100000",
		brief: []view{{units: "ent/s", size: largest, compare: "layout:step"}},
	},
	{
		ids: "A12", metrics: "qps", kinds: "p50-ms", bars: "qps",
		brief: []view{{units: "qps", size: largest, compare: "layout:step", gain: true}},
	},
	{
		ids: "A13", metrics: "ent/s p99-ms fsync-us", bars: "ent/s p99-ms", full: "entities=100000",
		brief: []view{{units: "ent/s", size: largest, where: "durability=durable|unsafe", compare: "durability:unsafe:durable store:tmpfs:disk"}},
	},
	{
		ids: "A14", tables: coefficients, full: "entities=50000", judge: judgeDesign,
		brief: []view{{where: "entities=5000|50000"}},
	},
	{
		ids: "B1", metrics: "load-s rows/s data-MB B/row", bars: "rows/s", growth: "rows/s",
		brief: []view{{units: "rows/s data-MB"}},
	},
	{
		ids: "C1", grows: "D5", metrics: "qps", kinds: "p50-ms p99-ms", bars: "qps", quantiles: true, parts: []string{verdict.PartV1},
		brief: []view{{units: "qps", where: "clients=1", one: true}},
	},
	{
		ids: "C2", metrics: "qps skipped late lag-ms", kinds: "p99-ms", bars: "qps", quantiles: true,
		brief: []view{{units: "p99-ms", where: "loop=open-1000|open-10000", size: largest}},
	},
	{
		ids: "C3", metrics: "qps resident-before resident-after", kinds: "p50-ms", bars: "qps",
		brief: []view{{units: "qps", size: largest, hide: "temperature=lukewarm", compare: "temperature:warm:cold"}},
	},
	{
		ids: "D1", grows: "D5", metrics: "rows/s settled-rows/s p50-ms p99-ms wal-MB max-ms resident", bars: "p99-ms db-MB+wal-MB",
		quantiles: true, timeline: true, parts: []string{verdict.PartWrites, verdict.PartChecklist},
		brief: []view{{units: "settled-rows/s", where: "rate=max", one: true}, {units: "p99-ms", where: "rate=6000", one: true}},
	},
	{
		ids: "D2", metrics: "p99-ms wal-MB max-ms", kinds: "p99-ms", bars: "p99-ms", quantiles: true, timeline: true,
		brief: []view{{units: "p99-ms", size: largest, kinds: "without-checkpoint with-checkpoint"}},
	},
	{
		ids: "D3", metrics: "p99-ms growth-MB p50-ms max-ms wal-MB", bars: "p99-ms", quantiles: true, parts: []string{verdict.PartReorg},
		brief: []view{{units: "p99-ms growth-MB", size: largest}},
	},
	{
		ids: "D4", metrics: "p99-ms qps ceiling-qps rows/s read-p99-ms", bars: "p99-ms ceiling-qps", quantiles: true, timeline: true,
		parts: []string{verdict.PartCombined},
		brief: []view{{units: "ceiling-qps", size: largest}, {units: "p99-ms", where: "rate=6000", size: largest}},
	},
	{
		ids: "D5", metrics: "p99-ms qps-A qps-B qps-C rows/s p99-ms-A p99-ms-B p99-ms-C", growth: "p99-ms qps-A", parts: []string{verdict.PartTree},
		brief: []view{{units: "p99-ms qps-B", hide: "scale=0.1|0.3"}},
	},
	{
		ids: "E1", metrics: "qps", kinds: "p50-ms p99-ms", bars: "qps", quantiles: true,
		brief: []view{
			{units: "qps", where: "scale=0.02|1"},
			{units: "p50-ms", kinds: "nodes-in-dc node-match node-state", where: "clients=1 scale=0.02|1"},
		},
	},
	{ids: "E2", metrics: "rows/s p99-ms", bars: "rows/s", brief: []view{{units: "rows/s", where: "scale=0.02|1 dc=0|100", compare: "dc:0:100"}}},
	{
		ids: "E3", metrics: "rows/s qps p99-ms", kinds: "p99-ms", bars: "p99-ms", quantiles: true,
		brief: []view{{units: "qps p99-ms", where: "scale=0.02|1 qps=500"}},
	},
	{
		ids: "F1", metrics: "p50-ms ev/s p99-ms max-ms", bars: "ev/s", full: events,
		brief: []view{{units: "ev/s", where: "layout=tags batch=1|1000", hide: "profile=tiny", compare: "batch:1:1000", gain: true}},
	},
	{
		ids: "F2", metrics: "op/s p50-ms p99-ms max-ms", bars: "op/s", full: events,
		brief: []view{{units: "ev/s", where: "layout=tags clients=1|20", hide: "profile=tiny", compare: "clients:1:20", gain: true}},
	},
	{ids: "F3", metrics: "op/s p99-ms p50-ms max-ms", bars: "op/s", full: events, brief: []view{{units: "op/s", where: "layout=tags clients=1|128", hide: "profile=tiny"}}},
	{ids: "F4", metrics: "p50-ms op/s p99-ms max-ms", full: events, brief: []view{{units: "op/s", where: "layout=tags clients=1|16", hide: "profile=tiny"}}},
	{
		ids: "F5", metrics: "p50-ms p99-ms max-ms ev/s", full: events,
		brief: []view{{units: "p50-ms", where: "layout=tags query=course-by-id|courses-by-category|enrolments-by-grade", hide: "profile=tiny", compare: "profile:tiny:small"}},
	},
	{ids: "F6", metrics: "rss-MB heap-MB", full: events, brief: []view{{units: "rss-MB", where: "layout=tags", hide: "profile=tiny"}}},
	{
		ids: "F7", metrics: "p50-ms p99-ms max-ms ev/s", full: events,
		brief: []view{{units: "p50-ms", where: "layout=tags", hide: "profile=tiny", compare: "profile:tiny:small"}},
	},
	{
		ids: "F8", metrics: "p50-ms p99-ms max-ms ev/s", full: events,
		brief: []view{{units: "p50-ms", where: "layout=tags", hide: "profile=tiny", compare: "projectors:1:5"}},
	},
	{
		ids: "G1", apart: true, full: "profile=full",
		metrics: "ingest-s rows/s closure-s data-MB qps p50-ms p95-ms p99-ms cpu-ms/1k index-s max-ms errors",
		brief:   []view{{units: "p95-ms", where: "closure=materialised clients=1", size: "full"}, {units: "ingest-s closure-s", size: "full"}},
		sized:   permissions,
	},
	{
		ids: "G2", apart: true, full: "relationships=10000000", judge: judgeService,
		metrics: "load-s rel/s data-MB B/rel qps share-success check-p50-ms check-p95-ms lookup-p50-ms lookup-p95-ms write-p50-ms write-p95-ms",
		brief:   []view{{units: "check-p95-ms write-p95-ms", where: "script=authzed qps=1000|10000", hide: "relationships=1000000"}},
	},
	{
		ids: "H1", metrics: "p50-ms op/s p99-ms max-ms", bars: "op/s", full: "profile=256B",
		brief: []view{
			{units: "p50-ms", where: "clients=1 op=put|get-warm|get-cold|put-get", compare: "protocol:grpc:rest"},
			{units: "op/s", where: "clients=32 op=put|get-warm", hide: "protocol=local"},
		},
	},
	{
		ids: "H3", metrics: "qps p99-ms rows/s follow-p99-ms p50-ms capacity-qps behind-blocks skipped cores", kinds: "p50-ms p99-ms",
		bars: "qps", quantiles: true, timeline: true,
		brief: []view{{units: "qps", where: "loop=closed", size: largest}, {units: "p99-ms follow-p99-ms", where: "loop=open-300", size: largest}},
	},
	{
		ids: "Q1", apart: true,
		metrics: "commit-p50-ms commit-p99-ms commit-max-ms rows/s get-p50-ms get-p99-ms query-p50-ms query-max-ms data-MB B/ent",
		brief:   []view{{units: "commit-p50-ms commit-p99-ms get-p50-ms query-p50-ms B/ent"}},
	},
}

// permissions is how many rows of all relations a data set of that name has.
func permissions(name string) float64 {
	size, err := rebac.ParseSize(name)
	if err != nil {
		return 0
	}
	return float64(size.Objects())
}

// events is the larger one of the documents' data sets.
const events = "profile=small"

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
		if len(units) > 0 {
			x.brief = []view{{units: x.metrics}}
		}
	}
	x.split(in.floor(id))
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

// figures makes the tables of figures of the page.
func (x *experiment) figures() []Table {
	var tables []Table
	for _, p := range x.pivots {
		first := len(tables)
		for unit := range strings.FieldsSeq(x.metrics) {
			tables = append(tables, p.table(unit, false)...)
		}
		for unit := range strings.FieldsSeq(x.kinds) {
			tables = append(tables, p.table(unit, true)...)
		}
		if x.spec.tables != nil {
			tables = append(tables, x.spec.tables(p)...)
		}
		if len(tables) > first && x.apart {
			tables[first].Caption = strings.TrimSpace(p.settings() + " " + tables[first].Caption)
		}
	}
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
				notes = runs.AppendNew(notes, fmt.Sprintf("Failed: %s: %s", r.Config, oneLine(r.Error, maxError)))
			}
		}
	}
	return notes
}

// steps is the key of which a document compares each value with the one before.
func (x *experiment) steps() string {
	for _, v := range x.brief {
		if key, ok := strings.CutSuffix(v.compare, ":step"); ok {
			return key
		}
	}
	return ""
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
		units := slices.DeleteFunc(strings.Fields(x.metrics), func(unit string) bool { return len(p.table(unit, false)) == 0 })
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
