package report

import (
	"fmt"

	"github.com/varvedb/varve/internal/verdict"
)

// criteriaTable has a row for each criterion and a column for each engine, for
// one layout.
func criteriaTable(r *verdict.Report, layout string) Table {
	t := Table{
		Caption: "Criteria, layout " + layout + ": measured, with the margin (above 1× is on the good side).",
		Columns: heads("criterion", "wanted"),
	}
	var rows []string
	at := map[string]int{}
	columns := 0
	for i := range r.Assessments {
		a := &r.Assessments[i]
		if a.Layout != layout {
			continue
		}
		columns++
		t.Columns = append(t.Columns, Column{Head: a.Engine, Engine: a.Engine})
		for _, c := range a.Criteria {
			key := c.Part + ": " + c.Name
			n, ok := at[key]
			if !ok {
				n = len(rows)
				at[key] = n
				rows = append(rows, key)
				t.Rows = append(t.Rows, names(key, c.Wanted()))
			}
			for len(t.Rows[n]) < columns+1 {
				t.Rows[n] = append(t.Rows[n], Cell{})
			}
			t.Rows[n] = append(t.Rows[n], criterionCell(&c))
		}
	}
	for i := range t.Rows {
		for len(t.Rows[i]) < len(t.Columns) {
			t.Rows[i] = append(t.Rows[i], Cell{})
		}
	}
	return t
}

func criterionCell(c *verdict.Criterion) Cell {
	cell := Cell{Class: string(c.Verdict), Detail: c.Note}
	if c.Got == nil {
		cell.Text = string(c.Verdict)
		return cell
	}
	cell.Text = fmt.Sprintf("%s, %s", c.Answer(), c.Measured())
	if c.Margin != nil {
		cell.Text += " (" + c.Times() + ")"
	}
	return cell
}

// decisionTable is the go/no-go of each engine and layout.
func decisionTable(r *verdict.Report) Table {
	t := Table{Caption: "V1: 621,000 entities, 10–50K rows/s with 1–10K reads/s.", Columns: heads("layout")}
	var layouts, engines []string
	for _, a := range r.Assessments {
		layouts, engines = appendNew(layouts, a.Layout), appendNew(engines, a.Engine)
	}
	for _, e := range engines {
		t.Columns = append(t.Columns, Column{Head: e, Engine: e})
	}
	class := map[verdict.Decision]string{verdict.Go: "pass", verdict.NoGo: "fail", verdict.Undecided: "unknown"}
	for _, layout := range layouts {
		row := names(layout)
		for _, e := range engines {
			a := r.Find(e, layout)
			if a == nil {
				row = append(row, Cell{})
				continue
			}
			row = append(row, Cell{Text: string(a.V1), Class: class[a.V1], Detail: v1Detail(a)})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// v1Detail says what the decision rests on.
func v1Detail(a *verdict.Assessment) string {
	var text string
	for _, c := range a.Criteria {
		if c.Part == verdict.PartV1 && c.Got != nil {
			text = join(text, c.Name+" "+c.Measured()+" "+c.Answer())
		}
	}
	return text
}

// walkTable is the way through the decision tree, for Markdown.
func walkTable(r *verdict.Report) Table {
	t := Table{
		Caption: "Commit p99 below 500 ms at 5x with 6,000 rows/s sustained, asked of SQLite, libSQL, Postgres and DuckDB in this order.",
		Columns: heads("layout", "engine", "commit p99 at 5x", "rows/s sustained", "answer", "so"),
	}
	for _, w := range r.Walks {
		for i, s := range w.Steps {
			so := ""
			if i == len(w.Steps)-1 {
				so = w.Leaf
			}
			row := names(w.Layout, s.Engine)
			for _, c := range s.Criteria {
				row = append(row, Cell{Text: c.Measured() + ", " + c.Answer(), Detail: c.Note})
			}
			t.Rows = append(t.Rows, append(row, Cell{Text: string(s.Answer), Class: string(s.Answer)}, text(so)))
		}
	}
	return t
}

func appendNew(list []string, s string) []string {
	for _, have := range list {
		if have == s {
			return list
		}
	}
	return append(list, s)
}
