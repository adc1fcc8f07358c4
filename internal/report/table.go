package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Empty tells that nothing was measured.
func (t *Table) Empty() bool {
	for _, row := range t.Rows {
		for _, c := range row[t.Keys:] {
			if c.Text != "–" {
				return false
			}
		}
	}
	return true
}

// Table makes the table of a view.
func (s *Set) Table(v View) (*Table, error) {
	sel, err := s.choose(v)
	if err != nil {
		return nil, fmt.Errorf("table %q: %w", v.Title, err)
	}
	if v.Fit {
		return fit(sel), nil
	}
	t := sel.table(sel.note())
	if len(v.Columns) == 1 && v.Columns[0].Across != "" {
		t.Unit = cmp.Or(v.Columns[0].Name, v.Columns[0].Unit)
	}
	for _, c := range sel.columns {
		if c.peer == "" {
			c.head = strings.TrimSuffix(c.head, ", "+t.Unit)
		}
		t.Heads = append(t.Heads, c.head)
	}
	several, all := len(sittingsOf(sel.lines)) > 1, sittingsOf(s.Lines)
	if several {
		t.Heads = append(t.Heads, "sitting")
	}
	rows := sel.group()
	for _, r := range rows {
		cells := cellsOf(r.key)
		for _, c := range sel.columns {
			cells = append(cells, s.figure(r.lines, c).cell())
		}
		if several {
			cells = append(cells, numbers(sittingsOf(r.lines), all))
		}
		t.Rows = append(t.Rows, cells)
	}
	t.sayOnce()
	t.Note += unfinished(rows)
	if v.Ranked {
		s.rank(sel, t, rows)
	}
	if v.Compare != nil {
		t.Under = s.compare(sel, *v.Compare)
	}
	return t, nil
}

// unfinished names the rows with phases in which no commit, or no read, finished:
// their times are missing and not unmeasured.
func unfinished(rows []row) (note string) {
	for _, r := range rows {
		for _, what := range []struct{ name, rate, key, time string }{
			{"commit", "rows/s", "rate", "max-ms"}, {"read", "qps", "mix", "read-max-ms"},
		} {
			n := 0
			for _, l := range r.lines {
				rate, has := l.Value(what.rate)
				_, timed := l.Value(what.time)
				_, longest := l.Value("max-ms") // of a phase of reads alone
				asked := Key(l, what.key)
				if has && rate == 0 && !timed && !longest && asked != "" && asked != "0" {
					n++
				}
			}
			if n > 0 {
				note += fmt.Sprintf(", no %s finished in %d of %s", what.name, n, strings.Join(r.key, " "))
			}
		}
	}
	return note
}

// numbers has the places of some sittings among all.
func numbers(sittings, all []string) Cell {
	list := make([]string, len(sittings))
	for i, id := range sittings {
		list[i] = strconv.Itoa(slices.Index(all, id) + 1)
	}
	return Cell{Text: strings.Join(list, ", ")}
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
