package report

import (
	"slices"
	"strings"

	"github.com/varvedb/varve/internal/report/runs"
)

// earlierCorrelations are those that the user's documents report of 50,000
// production blocks, by layout (Experiments 8 to 10).
var earlierCorrelations = map[string]map[string]string{
	"arkiv":  {"attributes": "0.96", "strings": "0.97", "numbers": "0.94", "entities": "0.90", "payload-each": "-0.06"},
	"simple": {"strings": "0.96", "numbers": "0.91", "entities": "0.88", "payload-each": "-0.06"},
}

// correlations turns the metrics r-<variable> into rows.
func correlations(groups []*runs.Group) []Table {
	p := newPivot(groups)
	t := Table{
		Of:      "correlations",
		Caption: "Correlation of the time of a commit with what is in its block.",
		Columns: append(heads("layout", "with"), Column{Head: "earlier", Numeric: true}),
	}
	for _, e := range p.engines {
		t.Columns = append(t.Columns, Column{Head: e + " r", Engine: e, Numeric: true})
	}
	for _, layout := range runs.Distinct(groups, "layout") {
		own := runs.Where(groups, func(g *runs.Group) bool { return g.Get("layout") == layout && !isEnd(g) })
		for _, variable := range variables(own) {
			row := names(layout, variable, earlierCorrelations[layout][variable])
			for _, e := range p.engines {
				row = append(row, correlation(own, e, variable))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return []Table{t}
}

const correlationPrefix = "r-"

// variables returns what times were correlated with.
func variables(groups []*runs.Group) []string {
	var found []string
	for _, g := range groups {
		for _, r := range g.Records {
			for _, m := range r.Metrics {
				name, ok := strings.CutPrefix(m.Unit, correlationPrefix)
				if ok && !slices.Contains(found, name) {
					found = append(found, name)
				}
			}
		}
	}
	return found
}

func correlation(groups []*runs.Group, engine, variable string) Cell {
	for _, g := range groups {
		if g.Get("engine") != engine {
			continue
		}
		if v, ok := g.Median(runs.Measure{Unit: correlationPrefix + variable}); ok {
			return Cell{Text: fixed(v, 2), Detail: accuracy(g, nil, runs.Measure{Unit: correlationPrefix + variable})}
		}
	}
	return Cell{}
}
