package report

import (
	"fmt"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/stat"
	"github.com/varvedb/varve/internal/report/runs"
)

// A designed experiment varies attributes, payload and entities of a block. Its
// commits are explained by what is written in all: so many entities, each with
// its attributes and its payload.
const (
	perEntity    = "entity"
	perAttribute = "attribute"
	perKilobyte  = "KB of payload"
)

var designTerms = []string{perEntity, perAttribute, perKilobyte}

// fitDesign fits the time of a commit to what it writes, with standard errors
// that hold although long commits vary more than short ones.
func fitDesign(t *result.Table) (*stat.Regression, error) {
	attributes, payload := t.Column("attributes"), t.Column("payload_bytes")
	entities, ms := t.Column("entities"), t.Column("ms")
	if attributes == nil || payload == nil || entities == nil || ms == nil {
		return nil, fmt.Errorf("no columns attributes, payload_bytes, entities and ms in %v", t.Columns)
	}
	written := make([]float64, len(ms))
	kilobytes := make([]float64, len(ms))
	for i := range ms {
		written[i] = attributes[i] * entities[i]
		kilobytes[i] = payload[i] / 1024 * entities[i]
	}
	return stat.Regress(ms, []stat.Predictor{
		{Name: perEntity, Values: entities}, {Name: perAttribute, Values: written}, {Name: perKilobyte, Values: kilobytes},
	})
}

// design is the regression of one engine and layout.
type design struct {
	engine, layout string
	fit            *stat.Regression
}

// designs fits those groups that have observations; what cannot be fitted is
// said in the notes.
func designs(groups []*runs.Group) (list []design, notes []string) {
	for _, g := range groups {
		if g.Failed() || g.Good()[0].Table == nil {
			continue
		}
		fit, err := fitDesign(pooled(g))
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s: %v", g.Config, err))
			continue
		}
		list = append(list, design{engine: g.Get("engine"), layout: g.Get("layout"), fit: fit})
	}
	return list, notes
}

// pooled puts the observations of all repetitions into one table.
func pooled(g *runs.Group) *result.Table {
	good := g.Good()
	t := result.Table{Columns: good[0].Table.Columns}
	for _, r := range good {
		if r.Table != nil {
			t.Rows = append(t.Rows, r.Table.Rows...)
		}
	}
	return &t
}

// coefficients is what each entity, attribute and kilobyte adds to a commit, in
// microseconds with 95 % intervals, and which part of the variance each explains.
func coefficients(groups []*runs.Group) []Table {
	list, notes := designs(groups)
	if len(list) == 0 {
		return nil
	}
	t := Table{
		Of:      "coefficients",
		Caption: "What each adds to a commit, in µs with the 95 % interval (linear regression, robust errors), and how many percent of the variance it explains.",
		Columns: heads("layout", "engine"), Notes: notes,
	}
	for _, term := range designTerms {
		t.Columns = append(t.Columns, Column{Head: "µs an " + term, Numeric: true})
	}
	t.Columns[len(t.Columns)-1].Head = "µs a " + perKilobyte
	for _, term := range designTerms {
		t.Columns = append(t.Columns, Column{Head: "% by " + term, Numeric: true})
	}
	t.Columns = append(t.Columns, Column{Head: "R²", Numeric: true}, Column{Head: "commits", Numeric: true})
	for _, d := range list {
		row := names(d.layout, d.engine)
		for _, term := range designTerms {
			c := d.fit.Term(term)
			row = append(row, text(fmt.Sprintf("%s (%s to %s)", Number(1000*c.Coefficient), Number(1000*c.Low), Number(1000*c.High))))
		}
		for _, term := range designTerms {
			row = append(row, text(fixed(100*d.fit.Term(term).Share, 0)))
		}
		t.Rows = append(t.Rows, append(row, text(fixed(d.fit.R2, 3)), text(runs.Thousands(fmt.Sprint(d.fit.N)))))
	}
	return []Table{t}
}

// coefficientChart draws the intervals: a variant for each term, whose units
// differ, and a line for each engine and layout.
func coefficientChart(groups []*runs.Group) (Chart, bool, error) {
	list, _ := designs(groups)
	c := Chart{
		ID: "chart-a14", Open: true, Caption: "A14: what each entity, attribute and kilobyte adds to a commit, µs with 95 % intervals",
		Alt: "Intervals of regression coefficients by engine and layout; the same figures are in the table",
	}
	for _, term := range designTerms {
		d := drawing{
			label: "by " + term,
			x:     axis{name: "µs by " + term, format: "number"}, y: axis{labels: []string{}},
		}
		for i, one := range list {
			label := joinWords(one.engine, one.layout)
			at := float64(len(list) - 1 - i) // the first on top
			coefficient := one.fit.Term(term)
			d.lines = append(d.lines, series{
				name: label, tag: Tag{Engine: one.engine}, symbol: "circle",
				points: [][2]float64{{1000 * coefficient.Low, at}, {1000 * coefficient.Coefficient, at}, {1000 * coefficient.High, at}},
			})
			d.y.labels = append([]string{label}, d.y.labels...)
		}
		if len(d.lines) == 0 {
			return c, false, nil
		}
		v, err := d.variant()
		if err != nil {
			return c, false, err
		}
		c.Variants = append(c.Variants, v)
	}
	c.Tables = coefficients(groups)
	return c, true, nil
}

// maxDots is how many observations a chart has at most: more would be a cloud in
// a page of megabytes.
const maxDots = 400

// blockDots draws the time of each sampled commit over what is in its block.
func blockDots(groups []*runs.Group) (Chart, bool, error) {
	c := Chart{
		ID: "chart-a8", Open: true, Caption: "A8: time of a commit over what is in its block, each dot a block",
		Alt: "Scatter plots of commit time over attributes, entities and payload by engine; the correlations are in the table",
	}
	variables := []struct {
		name    string
		columns []string
	}{{"attributes", []string{"strings", "numbers"}}, {"entities", []string{"entities"}}, {"payload bytes", []string{"payload_bytes"}}}
	for _, layout := range runs.Distinct(groups, "layout") {
		for _, v := range variables {
			d := drawing{
				label: joinWords(layout, "over "+v.name),
				x:     axis{name: v.name + " in the block", log: true, format: "number"}, y: axis{name: "ms", log: true, format: "number"},
			}
			for _, g := range groups {
				if g.Get("layout") != layout || g.Failed() || g.Good()[0].Table == nil {
					continue
				}
				d.dots = append(d.dots, dots(g.Get("engine"), g.Good()[0].Table, v.columns))
			}
			if len(d.dots) == 0 {
				continue
			}
			drawn, err := d.variant()
			if err != nil {
				return c, false, err
			}
			c.Variants = append(c.Variants, drawn)
		}
	}
	c.Tables = correlations(groups)
	return c, len(c.Variants) > 0, nil
}

// dots takes every so many-th observation.
func dots(engine string, t *result.Table, columns []string) series {
	s := series{name: engine, tag: Tag{Engine: engine}}
	ms := t.Column("ms")
	x := make([]float64, len(ms))
	for _, name := range columns {
		for i, v := range t.Column(name) {
			x[i] += v
		}
	}
	for i := 0; i < len(ms); i += max(1, (len(ms)+maxDots-1)/maxDots) {
		if x[i] > 0 && ms[i] > 0 {
			s.points = append(s.points, [2]float64{x[i], ms[i]})
		}
	}
	return s
}
