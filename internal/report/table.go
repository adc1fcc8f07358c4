package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Empty reports whether no figure was measured.
func (t *Table) Empty() bool {
	empty := true
	t.each(func(c *Cell) { empty = empty && c.Text == "–" })
	return empty
}

// Table makes the table of a view.
func (s *Set) Table(v View) (*Table, error) {
	sel, err := s.choose(v)
	if err != nil {
		return nil, fmt.Errorf("table %q: %w", v.Title, err)
	}
	if v.Fit {
		return fit(sel, sittingsOf(s.Lines)), nil
	}
	t := sel.table(sel.sharedSettings())
	if len(v.Columns) == 1 && v.Columns[0].Across != "" {
		t.Unit = cmp.Or(v.Columns[0].Name, v.Columns[0].Unit)
	}
	for _, c := range sel.columns {
		t.Heads = append(t.Heads, strings.TrimSuffix(c.head, ", "+t.Unit))
		t.Better = append(t.Better, s.Units.GetBetter(c.unit))
	}
	rows := sel.group()
	for _, r := range rows {
		cells := cellsOf(r.key)
		for _, c := range sel.columns {
			cells = append(cells, s.cell(r.lines, c, sel.with))
		}
		t.Rows = append(t.Rows, cells)
	}
	switch n := len(sittingsOf(sel.lines)); {
	case n < 2:
		t.sayOnce()
	case v.Short:
		t.each(func(c *Cell) { c.Of = "" })
		t.Note += fmt.Sprintf(", each figure of up to %d sittings", n)
	default:
		t.Heads = append(t.Heads, "sittings")
		all := sittingsOf(s.Lines)
		for i, r := range rows {
			which := numbers(sittingsOf(r.lines), all)
			figures := t.figures(t.Rows[i])
			if of, _, _ := shared(figures); of != "" {
				takeOut(figures, of)
				which = Cell{Text: of, Of: which.Text}
			}
			t.Rows[i] = append(t.Rows[i], which)
		}
	}
	t.Note += s.unfinished(rows)
	if t.has("×") {
		t.Note += ", × is a ratio to " + sel.with.String() + " of the same sittings"
	}
	t.Note = strings.Join(append([]string{strings.TrimPrefix(t.Note, ", ")}, sel.about...), ". ")
	if v.Ranked {
		s.rank(sel, t, rows)
	}
	if v.Compare != nil {
		t.Under = s.compare(sel, *v.Compare)
	}
	return t, nil
}

// unfinished names the rows with failed runs, and with phases in which no
// commit or no read finished: their times are missing, but not because they
// were not measured.
func (s *Set) unfinished(rows []row) (note string) {
	for _, r := range rows {
		killed := s.Excluded.where(func(x *Line) bool {
			return failed(x) && slices.ContainsFunc(r.lines, func(l *Line) bool { return setting(l) == setting(x) })
		})
		if len(killed) > 0 {
			note += fmt.Sprintf(", %d runs of %s were killed or failed", len(killed), strings.Join(r.key, " "))
		}
		for _, what := range []struct{ name, rate, key, time string }{
			{"commit", "rows/s", "rate", "max-ms"}, {"read", "qps", "mix", "read-max-ms"},
		} {
			idle := r.lines.having(what.rate).where(func(l *Line) bool {
				rate, _ := l.Value(what.rate)
				_, timed := l.Value(what.time)
				_, longest := l.Value("max-ms") // of a phase of reads alone
				asked := Key(l, what.key)
				return rate == 0 && !timed && !longest && asked != "" && asked != "0"
			})
			if len(idle) > 0 {
				note += fmt.Sprintf(", no %s finished in %d of %s", what.name, len(idle), strings.Join(r.key, " "))
			}
		}
	}
	return note
}

// each calls f with each cell that has a figure.
func (t *Table) each(f func(*Cell)) {
	for _, c := range t.figures(t.Rows...) {
		f(c)
	}
}

// figures returns the cells of rows that are no keys.
func (t *Table) figures(rows ...[]Cell) (list []*Cell) {
	for _, row := range rows {
		for i := range row[t.Keys:] {
			list = append(list, &row[t.Keys+i])
		}
	}
	return list
}

// has reports whether any figure has a sign.
func (t *Table) has(sign string) (has bool) {
	t.each(func(c *Cell) { has = has || strings.Contains(c.Text, sign) })
	return has
}

// sayOnce states below the table the number of runs that most figures share,
// instead of in each cell.
func (t *Table) sayOnce() {
	figures := t.figures(t.Rows...)
	most, have, all := shared(figures)
	if 2*have <= all {
		return
	}
	takeOut(figures, most)
	t.Note += ", " + most
	if have < all {
		t.Note += " where nothing else is said"
	}
}

// shared returns the number of sittings and hosts that most figures are of. It
// counts these figures, and all that have such a number.
func shared(figures []*Cell) (most string, have, all int) {
	counts := make(map[string]int)
	for _, c := range figures {
		if c.Of == "" {
			continue
		}
		all++
		if counts[c.Of]++; counts[c.Of] > have {
			most, have = c.Of, counts[c.Of]
		}
	}
	return most, have, all
}

// takeOut takes a number of sittings and hosts out of the figures that have it.
func takeOut(figures []*Cell, of string) {
	for _, c := range figures {
		if c.Of == of {
			c.Of = ""
		}
	}
}
