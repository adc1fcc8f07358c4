package report

import (
	"cmp"
	"fmt"
	"strings"
)

// Empty tells that nothing was measured.
func (t *Table) Empty() bool {
	for _, row := range t.Rows {
		for _, c := range row[t.Keys:] {
			if c.Text != "–" && c.Text != notMeasured {
				return false
			}
		}
	}
	return true
}

const notMeasured = "not measured"

// Table makes the table of a view.
func (s *Set) Table(v View) (*Table, error) {
	sel, err := s.choose(v)
	if err != nil {
		return nil, fmt.Errorf("table %q: %w", v.Title, err)
	}
	if v.Fit {
		return s.fit(sel)
	}
	t := &Table{Title: v.Title, Note: sel.note(), Query: sel.query()}
	if len(v.Columns) == 1 && v.Columns[0].Across != "" {
		t.Unit = cmp.Or(v.Columns[0].Name, v.Columns[0].Unit)
	}
	for _, f := range sel.fields {
		t.Heads = append(t.Heads, strings.TrimPrefix(f.Name, "/"))
	}
	t.Keys = len(t.Heads)
	groups, keys := sel.group()
	peers := s.beside(sel)
	for _, c := range sel.columns {
		t.Heads = append(t.Heads, strings.TrimSuffix(c.head, ", "+t.Unit))
		t.Heads = append(t.Heads, peers.heads(c)...)
	}
	for _, key := range keys {
		row := make([]Cell, 0, len(t.Heads))
		for _, value := range key {
			row = append(row, Cell{Text: value})
		}
		lines := groups[joined(key)]
		for _, c := range sel.columns {
			row = append(row, figure(lines, c).cell())
			row = append(row, peers.cells(lines, c)...)
		}
		if len(lines) == 0 {
			for i := range row[t.Keys:] {
				row[t.Keys+i].Text = notMeasured
			}
		}
		t.Rows = append(t.Rows, row)
	}
	t.sayOnce()
	if v.Ranked {
		s.rank(sel, t)
	}
	if v.Compare != nil {
		t.Under = s.compare(sel, *v.Compare)
	}
	return t, nil
}

// sayOnce moves the number of measurements below the table where all figures have the same.
func (t *Table) sayOnce() {
	common := ""
	each := func(f func(c *Cell, n string)) {
		for _, row := range t.Rows {
			for i := range row[t.Keys:] {
				if c := &row[t.Keys+i]; c.More != "" {
					f(c, c.More[strings.LastIndex(c.More, "n="):])
				}
			}
		}
	}
	same := true
	each(func(_ *Cell, n string) {
		same = same && (common == "" || common == n)
		common = n
	})
	if common == "" || !same {
		return
	}
	each(func(c *Cell, n string) { c.More = strings.TrimSuffix(strings.TrimSuffix(c.More, n), ", ") })
	t.Note += ", " + common + " each"
}
