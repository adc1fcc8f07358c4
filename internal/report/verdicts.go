package report

import (
	"fmt"
	"slices"

	"github.com/varvedb/varve/internal/report/runs"
	"github.com/varvedb/varve/internal/verdict"
)

// assessed are the engines of assessments.
func assessed(list []verdict.Assessment) (engines []string) {
	for _, a := range list {
		engines = runs.AppendNew(engines, a.Engine)
	}
	return engines
}

// criteriaTables have a row for each criterion and a column for each engine; each
// is of one layout.
func criteriaTables(r *verdict.Report) []Table {
	var tables []Table
	for _, w := range r.Walks {
		own := slices.DeleteFunc(slices.Clone(r.Assessments), func(a verdict.Assessment) bool { return a.Layout != w.Layout })
		g := newGrid(heads("criterion", "wanted"), engineHeads(assessed(own), ""))
		g.Caption = "Criteria, layout " + w.Layout + ": measured, with the margin (above 1× is on the good side)."
		for i, a := range own {
			for _, c := range a.Criteria {
				*g.at([]string{c.Part + ": " + c.Name, c.Wanted()}, i) = criterionCell(&c)
			}
		}
		tables = append(tables, *g)
	}
	return tables
}

// criterionCell is a word with its figure; why a run failed is where its link leads.
func criterionCell(c *verdict.Criterion) Cell {
	if c.Got == nil && c.Verdict == verdict.Fail {
		return Cell{Text: string(c.Verdict), Class: string(c.Verdict), Link: failureID(c.Source)}
	}
	cell := Cell{Text: string(c.Verdict), Class: string(c.Verdict), Detail: c.Note}
	if c.Got != nil {
		cell.Text = fmt.Sprintf("%s, %s", c.Answer(), c.Measured())
	}
	if c.Margin != nil {
		cell.Text += " (" + c.Times() + ")"
	}
	return cell
}

var decisionClass = map[verdict.Decision]string{verdict.Go: "pass", verdict.NoGo: "fail", verdict.Undecided: "unknown"}

// decisionTable is the go/no-go of each engine and layout.
func decisionTable(r *verdict.Report) Table {
	engines := assessed(r.Assessments)
	g := newGrid(heads("layout"), engineHeads(engines, ""))
	g.Caption = "V1: 621,000 entities, 10–50K rows/s with 1–10K reads/s."
	for _, a := range r.Assessments {
		*g.at([]string{a.Layout}, slices.Index(engines, a.Engine)) = Cell{Text: string(a.V1), Class: decisionClass[a.V1], Link: "criteria"}
	}
	return *g
}
