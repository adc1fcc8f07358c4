package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/varvedb/varve/internal/report/runs"
	"github.com/varvedb/varve/internal/verdict"
)

// spec is how an experiment is shown.
type spec struct {
	id      string
	metrics []string // units, a table each
	kinds   []string // units of latencies, a table by kind of operation each
	byKind  bool     // these are the answer, also in a document
	brief   []string // of metrics, those in a document; nil means all
	apart   bool     // its workloads vary different things: tables of their own for each

	// tables, if not nil, makes further tables.
	tables func(groups []*runs.Group) []Table
}

// specs are the experiments that have a renderer, by id.
var specs = []spec{
	{id: "A1", metrics: []string{"rows/s"}},
	{id: "A2", metrics: []string{"rows/s", "p99-ms"}},
	{id: "A3", metrics: []string{"rows/s", "p99-ms"}},
	{id: "A4", metrics: []string{"rows/s"}},
	{id: "A5", metrics: []string{"ent/s", "rows/s", "p50-ms", "p99-ms"}, brief: []string{"ent/s", "p99-ms"}},
	{id: "A6", metrics: []string{"ent/s", "rows/s", "p50-ms", "p99-ms"}, brief: []string{"ent/s", "p99-ms"}},
	{id: "A7", metrics: []string{"ent/s"}},
	{id: "A8", metrics: []string{"p50-ms", "p99-ms", "max-ms"}, tables: correlations, brief: []string{"p50-ms", "max-ms"}},
	{id: "A11", metrics: []string{"ent/s", "rows/s", "p50-ms", "p99-ms", "B/ent"}, brief: []string{"ent/s", "B/ent"}},
	{id: "A12", metrics: []string{"qps"}, kinds: []string{"p50-ms"}},
	{id: "A13", metrics: []string{"ent/s", "p99-ms", "fsync-us"}, brief: []string{"ent/s", "p99-ms"}},
	{id: "A14", tables: coefficients},
	{id: "C1", metrics: []string{"qps"}, kinds: []string{"p50-ms", "p99-ms"}},
	{id: "C2", metrics: []string{"qps", "late", "skipped", "lag-ms"}, kinds: []string{"p99-ms"}, brief: []string{"qps", "skipped"}},
	{id: "C3", metrics: []string{"qps", "resident-before", "resident-after"}, kinds: []string{"p50-ms"}, brief: []string{"qps"}},
	{id: "D1", metrics: []string{"rows/s", "settled-rows/s", "p50-ms", "p99-ms", "max-ms", "wal-MB", "resident"}, brief: []string{"rows/s", "settled-rows/s", "p50-ms", "p99-ms", "wal-MB"}},
	{id: "D2", metrics: []string{"p99-ms", "max-ms", "wal-MB"}, kinds: []string{"p99-ms"}, byKind: true, brief: []string{"p99-ms", "wal-MB"}},
	{id: "D3", metrics: []string{"p50-ms", "p99-ms", "max-ms", "growth-MB", "wal-MB"}, brief: []string{"p99-ms", "growth-MB"}},
	{id: "D4", metrics: []string{"p99-ms", "rows/s", "qps", "ceiling-qps", "read-p99-ms"}, brief: []string{"p99-ms", "qps", "ceiling-qps"}},
	{id: "D5", metrics: []string{"p99-ms", "rows/s", "qps-A", "qps-B", "qps-C", "p99-ms-A", "p99-ms-B", "p99-ms-C"}, brief: []string{"p99-ms", "qps-A", "qps-B", "qps-C"}},
	{id: "E1", metrics: []string{"qps"}, kinds: []string{"p50-ms", "p99-ms"}, byKind: true},
	{id: "E2", metrics: []string{"rows/s", "p99-ms"}},
	{id: "G1", apart: true, metrics: []string{"ingest-s", "rows/s", "index-s", "closure-s", "data-MB", "qps", "p50-ms", "p95-ms", "p99-ms", "max-ms", "errors", "cpu-ms/1k"},
		brief: []string{"ingest-s", "rows/s", "closure-s", "data-MB", "qps", "p50-ms", "p95-ms", "p99-ms", "cpu-ms/1k"}},
	{id: "G2", apart: true, metrics: []string{"load-s", "rel/s", "data-MB", "B/rel", "qps", "share-success", "check-p50-ms", "check-p95-ms", "lookup-p50-ms", "lookup-p95-ms", "write-p50-ms", "write-p95-ms"}},
	{id: "Q1", apart: true, metrics: []string{"commit-p50-ms", "commit-p99-ms", "commit-max-ms", "rows/s", "get-p50-ms", "get-p99-ms", "query-p50-ms", "query-max-ms", "data-MB", "B/ent"}},
	{id: "E3", metrics: []string{"rows/s", "qps", "p99-ms"}, kinds: []string{"p99-ms"}},
}

// specOf returns the renderer of an experiment; one without shows its figures as
// they come.
func specOf(id string, groups []*runs.Group) spec {
	i := slices.IndexFunc(specs, func(s spec) bool { return s.id == id })
	if i >= 0 {
		return specs[i]
	}
	s := spec{id: id}
	for _, g := range groups {
		for _, r := range g.Records {
			for _, m := range r.Metrics {
				if !slices.Contains(s.metrics, m.Unit) {
					s.metrics = append(s.metrics, m.Unit)
				}
			}
		}
	}
	return s
}

// experiment is what is known of one experiment, in words and tables.
type experiment struct {
	settings string  // what all its runs have in common
	tables   []Table // none: not measured
	ends     []string
}

// newExperiment makes the tables of an experiment. Those of a document are fewer:
// the page has all.
func newExperiment(in *Input, id string, document bool) experiment {
	groups := in.groups(id)
	s := specOf(id, groups)
	x := experiment{ends: endings(groups)}
	if document && s.brief != nil {
		s.metrics = s.brief
	}
	if document && !s.byKind {
		s.kinds = nil
	}
	for _, part := range s.parts(groups) {
		p, first := newPivot(part), len(x.tables)
		for _, unit := range s.metrics {
			if t, ok := p.table(runs.Measure{Unit: unit}); ok {
				x.tables = append(x.tables, t)
			}
		}
		for _, unit := range s.kinds {
			if t, ok := p.kinds(unit); ok {
				x.tables = append(x.tables, t)
			}
		}
		x.settings = capital(join(p.repeats(), p.settings())) + "."
		if s.apart && len(x.tables) > first {
			x.tables[first].Caption, x.settings = x.settings, ""
		}
	}
	if s.tables != nil {
		x.tables = append(x.tables, s.tables(groups)...)
	}
	return x
}

// parts are the groups that have tables together.
func (s *spec) parts(groups []*runs.Group) (parts [][]*runs.Group) {
	if !s.apart {
		return [][]*runs.Group{groups}
	}
	var seen []string
	for _, g := range groups {
		if !slices.Contains(seen, g.Name) && !isEnd(g) {
			seen = append(seen, g.Name)
			parts = append(parts, runs.Where(groups, func(o *runs.Group) bool { return o.Name == g.Name }))
		}
	}
	return parts
}

// Tables returns the tables of an experiment for Markdown, at least one: when
// nothing was measured it says so, and what to run.
func Tables(in *Input, id string) []Table {
	x := newExperiment(in, id, true)
	if len(x.tables) == 0 {
		return []Table{missing(id, x.ends)}
	}
	first, last := &x.tables[0], &x.tables[len(x.tables)-1]
	first.Caption = strings.TrimSpace(x.settings + " " + first.Caption)
	last.Notes = append(last.Notes, x.ends...)
	return x.tables
}

// missing says that an experiment was not measured.
func missing(id string, ends []string) Table {
	notes := []string{fmt.Sprintf("Not measured. To measure it: `%s`", verdict.Command(id, "", "", 0))}
	return Table{Notes: append(notes, ends...)}
}

// endings are the errors of runs, each once.
func endings(groups []*runs.Group) []string {
	var notes []string
	for _, g := range groups {
		for _, r := range g.Records {
			if r.Error == "" {
				continue
			}
			note := fmt.Sprintf("Failed: %s: %s", r.Config, oneLine(r.Error))
			if !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	return notes
}

func join(parts ...string) string {
	var text string
	for _, p := range parts {
		switch {
		case p == "":
		case text == "":
			text = p
		default:
			text += "; " + p
		}
	}
	return text
}
