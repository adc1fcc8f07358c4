package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/stat"
	"github.com/varvedb/varve/internal/report/runs"
)

// A designed experiment varies attributes, payload and entities of a block. Its
// commits are explained by what is written in all: so many entities, each with
// its attributes and its payload.
var designTerms = []string{"an entity", "an attribute", "a KB of payload"}

// fitDesign fits the time of a commit to what it writes, with standard errors
// that hold although long commits vary more than short ones.
func fitDesign(t *result.Table) (*stat.Regression, error) {
	attributes, payload := t.Column("attributes"), t.Column("payload_bytes")
	entities, ms := t.Column("entities"), t.Column("ms")
	if attributes == nil || payload == nil || entities == nil || ms == nil {
		return nil, fmt.Errorf("no columns attributes, payload_bytes, entities and ms in %v", t.Columns)
	}
	written, kilobytes := make([]float64, len(ms)), make([]float64, len(ms))
	for i := range ms {
		written[i] = attributes[i] * entities[i]
		kilobytes[i] = payload[i] / 1024 * entities[i]
	}
	return stat.Regress(ms, []stat.Predictor{
		{Name: designTerms[0], Values: entities}, {Name: designTerms[1], Values: written}, {Name: designTerms[2], Values: kilobytes},
	})
}

// design is the regression of one engine and layout.
type design struct {
	engine, layout string
	fit            *stat.Regression
}

// designs fits those groups that have observations, those of all repetitions
// together; what cannot be fitted is said in the notes.
func designs(groups []*runs.Group) (list []design, notes []string) {
	for _, g := range groups {
		var pooled result.Table
		for _, r := range g.Good() {
			if r.Table != nil {
				pooled.Columns, pooled.Rows = r.Table.Columns, append(pooled.Rows, r.Table.Rows...)
			}
		}
		if pooled.Rows == nil {
			continue
		}
		fit, err := fitDesign(&pooled)
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s: %v", g.Config, err))
			continue
		}
		list = append(list, design{engine: g.Get("engine"), layout: g.Get("layout"), fit: fit})
	}
	return list, notes
}

// coefficients is what each entity, attribute and kilobyte adds to a commit, in
// microseconds with 95 % intervals, and which part of the variance each explains.
func coefficients(p *pivot) []Table {
	list, notes := designs(p.groups)
	if len(list) == 0 {
		return nil
	}
	t := Table{
		Of:      "coefficients",
		Caption: "What each adds to a commit, in µs with the 95 % interval (linear regression, robust errors), and how many percent of the variance it explains.",
		Columns: heads("layout", "engine"), Notes: notes,
	}
	for _, prefix := range []string{"µs ", "% by "} {
		for _, term := range designTerms {
			t.Columns = append(t.Columns, figureHeads(prefix+term)...)
		}
	}
	t.Columns = append(t.Columns, figureHeads("R²", "commits")...)
	for _, d := range list {
		row := names(d.layout, d.engine)
		for _, term := range designTerms {
			c := d.fit.Term(term)
			row = append(row, text(fmt.Sprintf("%s (%s to %s)", runs.Number(1000*c.Coefficient), runs.Number(1000*c.Low), runs.Number(1000*c.High))))
		}
		for _, term := range designTerms {
			row = append(row, text(fixed(100*d.fit.Term(term).Share, 0)))
		}
		t.Rows = append(t.Rows, append(row, names(fixed(d.fit.R2, 3), runs.Thousands(fmt.Sprint(d.fit.N)))...))
	}
	return []Table{t}
}

// fixed writes a figure with a fixed number of decimals.
func fixed(v float64, decimals int) string { return strconv.FormatFloat(v, 'f', decimals, 64) }

// earlierCorrelations are those that the user's documents report of 50,000
// production blocks, by layout (Experiments 8 to 10).
var earlierCorrelations = map[string]map[string]string{
	"arkiv":  {"attributes": "0.96", "strings": "0.97", "numbers": "0.94", "entities": "0.90", "payload-each": "-0.06"},
	"simple": {"strings": "0.96", "numbers": "0.91", "entities": "0.88", "payload-each": "-0.06"},
}

// correlations turns the metrics r-<variable> into rows.
func correlations(p *pivot) []Table {
	t := newGrid(append(heads("layout", "with"), figureHeads("earlier")...), engineHeads(p.engines, " r"))
	for _, layout := range runs.Distinct(p.groups, "layout") {
		for _, g := range runs.Where(p.groups, func(g *runs.Group) bool { return g.Get("layout") == layout }) {
			for _, m := range g.Records[0].Metrics {
				variable, ok := strings.CutPrefix(m.Unit, "r-")
				v, has := g.Median(runs.Measure{Unit: m.Unit})
				if ok && has {
					t.put([]string{layout, variable, earlierCorrelations[layout][variable]}, slices.Index(p.engines, g.Get("engine")),
						Cell{Text: fixed(v, 2), Spread: spread(g.Values(runs.Measure{Unit: m.Unit}))})
				}
			}
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	t.Of, t.Caption = "correlations", "Correlation of the time of a commit with what is in its block."
	return []Table{t.Table}
}
