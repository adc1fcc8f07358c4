package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/varvedb/varve/internal/report/runs"
)

// WriteText writes what was measured of an experiment for a terminal: a table for each
// workload, with its settings and engines below each other and the figures side by
// side, and what failed.
func WriteText(out io.Writer, in *Input, id string) error {
	groups := in.groups(id)
	s := specOf(id, groups)
	s.apart = true
	for i, part := range s.parts(groups) {
		if i > 0 {
			fmt.Fprintln(out)
		}
		t := newPivot(part).wide(s.metrics)
		if err := t.text(out); err != nil {
			return err
		}
	}
	for _, note := range endings(groups) {
		fmt.Fprintln(out, note)
	}
	return nil
}

// wide puts the figures that there are beside each other, in the order of units.
func (p *pivot) wide(units []string) Table {
	t := Table{Caption: capital(join(p.repeats(), p.settings())) + ".", Columns: heads(append(slices.Clone(p.keys), "engine")...)}
	for _, r := range p.rows {
		for _, e := range p.engines {
			if r.byEngine[e] != nil {
				t.Rows = append(t.Rows, append(names(r.values...), text(e)))
			}
		}
	}
	for _, unit := range units {
		p.column(&t, unit, func(g *runs.Group) Cell {
			c, _ := figure(g, nil, runs.Measure{Unit: unit})
			return c
		})
	}
	return t
}

// column adds a column unless all of it is empty.
func (p *pivot) column(t *Table, head string, cell func(g *runs.Group) Cell) {
	var cells []Cell
	for _, r := range p.rows {
		for _, e := range p.engines {
			if g := r.byEngine[e]; g != nil {
				cells = append(cells, cell(g))
			}
		}
	}
	if !slices.ContainsFunc(cells, func(c Cell) bool { return c.Text != "" && c.Text != "failed" }) {
		return
	}
	t.Columns = append(t.Columns, Column{Head: head, Numeric: true})
	for i, c := range cells {
		t.Rows[i] = append(t.Rows[i], c)
	}
}

// text writes columns side by side, figures to the right.
func (t *Table) text(out io.Writer) error {
	if t.Caption != "" {
		fmt.Fprintln(out, t.Caption)
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	line := func(n int, word func(i int) string) {
		words := make([]string, n)
		for i := range words {
			words[i] = word(i)
		}
		fmt.Fprintln(w, strings.Join(words, "\t")+"\t")
	}
	line(len(t.Columns), func(i int) string { return t.Columns[i].Head })
	for _, row := range t.Rows {
		line(len(row), func(i int) string { return row[i].Text })
	}
	return w.Flush()
}
