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
		for i, r := range rows {
			which := numbers(sittingsOf(r.lines), sittingsOf(s.Lines))
			if many := takeOut(t.Rows[i][t.Keys:]); many != "" {
				which = Cell{Text: many, Range: which.Text}
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
	for _, row := range t.Rows {
		for i := range row[t.Keys:] {
			f(&row[t.Keys+i])
		}
	}
}

// has reports whether any figure has a sign.
func (t *Table) has(sign string) (has bool) {
	t.each(func(c *Cell) { has = has || strings.Contains(c.Text, sign) })
	return has
}

// sayOnce states below the table the number of runs that most figures share,
// instead of in each cell.
func (t *Table) sayOnce() {
	counts, figures, most := make(map[string]int), 0, ""
	t.each(func(c *Cell) {
		if c.Of != "" {
			figures++
			if counts[c.Of]++; counts[c.Of] > counts[most] {
				most = c.Of
			}
		}
	})
	if 2*counts[most] <= figures {
		return
	}
	t.each(func(c *Cell) {
		if c.Of == most {
			c.Of = ""
		}
	})
	t.Note += ", " + most
	if counts[most] < figures {
		t.Note += " where nothing else is said"
	}
}

// takeOut takes the number of sittings that most cells of a row share out of
// these, and returns it.
func takeOut(cells []Cell) (most string) {
	counts := make(map[string]int)
	for _, c := range cells {
		if c.Of != "" {
			if counts[c.Of]++; counts[c.Of] > counts[most] {
				most = c.Of
			}
		}
	}
	for i := range cells {
		if cells[i].Of == most {
			cells[i].Of = ""
		}
	}
	return most
}
