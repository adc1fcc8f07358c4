package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// compare makes a row for each pair of settings and each other key of the table, and a column
// for each engine and each report of others. Less is written with "÷".
func (s *Set) compare(sel *selection, c Compare) *Table {
	rest := func(l *benchfmt.Result) string {
		var values []string
		for _, f := range sel.fields {
			if key := strings.TrimPrefix(f.Name, "/"); key != c.Key {
				values = append(values, Key(l, key))
			}
		}
		return strings.Join(values, ", ")
	}
	of := func(l *benchfmt.Result) string { return cmp.Or(Key(l, "engine"), Key(l, "peer")) }
	var rests, series []string // what only others measured has nothing beside it
	for _, l := range sel.lines {
		rests = appendNew(rests, rest(l))
	}
	lines := slices.Concat(sel.lines, s.beside(sel.lines))
	for _, l := range lines {
		if _, ok := l.Value(c.Unit); ok {
			series = appendNew(series, of(l))
		}
	}
	t := &Table{Title: "change of " + c.Unit, Heads: append([]string{c.Key, "of"}, series...), Keys: 2}
	for _, to := range c.To {
		for _, r := range rests {
			row := []Cell{{Text: c.From + " → " + to}, {Text: r}}
			for _, name := range series {
				at := func(setting string) *Figure {
					return figure(lines, column{unit: c.Unit, of: func(l *benchfmt.Result) bool {
						return of(l) == name && rest(l) == r && Key(l, c.Key) == setting
					}})
				}
				cell := change(at(c.From), at(to))
				if !slices.ContainsFunc(sel.lines, func(l *benchfmt.Result) bool { return of(l) == name }) {
					cell.More = "" // published
				}
				row = append(row, cell)
			}
			if slices.ContainsFunc(row[2:], func(c Cell) bool { return c.Text != "–" }) {
				t.Rows = append(t.Rows, row)
			}
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// change is the factor between two figures, with the Mann-Whitney test where both have enough
// measurements to be judged.
func change(from, to *Figure) Cell {
	if from == nil || to == nil || from.Center <= 0 || to.Center <= 0 {
		return Cell{Text: "–"}
	}
	c := Cell{Text: "× " + Number(to.Center/from.Center)}
	if to.Center < from.Center {
		c.Text = "÷ " + Number(from.Center/to.Center)
	}
	if from.N < Judged || to.N < Judged {
		c.More = fmt.Sprintf("n=%d+%d, not judged", from.N, to.N)
		return c
	}
	test := Test(from, to)
	c.More = test.String()
	if test.P > 0.05 {
		c.Text = "~ " + c.Text
	}
	return c
}
