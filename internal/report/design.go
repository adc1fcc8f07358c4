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

// pooledFit fits all repetitions of a configuration; nil when they cannot be.
func pooledFit(g *runs.Group) *stat.Regression {
	var pooled result.Table
	for _, r := range g.Good() {
		if r.Table != nil {
			pooled.Columns, pooled.Rows = r.Table.Columns, append(pooled.Rows, r.Table.Rows...)
		}
	}
	if pooled.Rows == nil {
		return nil
	}
	fit, err := fitDesign(&pooled)
	if err != nil {
		return nil // of blocks that do not vary enough; the page shows the commits themselves
	}
	return fit
}

// coefficients is what each entity, attribute and kilobyte adds to a commit, in
// microseconds with 95 % intervals, and which part of the variance each explains.
func coefficients(p *pivot) []Table {
	named := []string{"layout", "engine"}
	if slices.Contains(p.keys, "entities") { // so many were there before
		named = append(named, "entities")
	}
	t := Table{
		Of:      "coefficients",
		Caption: "What each adds to a commit, in µs with the 95 % interval (linear regression, robust errors), and how many percent of the variance it explains.",
		Columns: append(heads(named...), figureHeads("µs an entity", "µs an attribute", "µs a KB of payload",
			"% by an entity", "% by an attribute", "% by a KB of payload", "R²", "commits")...),
	}
	for _, g := range p.groups {
		fit := pooledFit(g)
		if fit == nil {
			continue
		}
		var row, shares []string
		for _, key := range named {
			row = append(row, readable(g.Get(key)))
		}
		for _, term := range designTerms {
			c := fit.Term(term)
			row = append(row, fmt.Sprintf("%s (%s to %s)", runs.Number(1000*c.Coefficient), runs.Number(1000*c.Low), runs.Number(1000*c.High)))
			shares = append(shares, fmt.Sprintf("%.0f", 100*c.Share))
		}
		t.Rows = append(t.Rows, names(append(append(row, shares...), fmt.Sprintf("%.3f", fit.R2), runs.Thousands(strconv.Itoa(fit.N)))...))
	}
	return t.unlessEmpty()
}

// correlations turns the metrics r-<variable> into rows.
func correlations(p *pivot) []Table {
	t := newGrid(heads("layout", "profile", "with"), engineHeads(p.engines, " r"))
	for _, g := range p.groups {
		for _, m := range g.Records[0].Metrics {
			figure := runs.Measure{Unit: m.Unit}
			variable, ok := strings.CutPrefix(m.Unit, "r-")
			if v, has := g.Median(figure); ok && has {
				*t.at([]string{g.Get("layout"), g.Get("profile"), variable}, slices.Index(p.engines, g.Get("engine"))) =
					Cell{Text: fmt.Sprintf("%.2f", v), Spread: spread(g.Values(figure))}
			}
		}
	}
	t.Of, t.Caption = "correlations", "Correlation of the time of a commit with what is in its block."
	return t.unlessEmpty()
}
