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

// rank marks the best rows of each column of a table, and says below it which row is the best most
// often, and why that cannot be relied on.
func (s *Set) rank(sel *selection, t *Table, rows []row) {
	won, unsure, of := make([]int, len(rows)), make([]int, len(rows)), 0 // columns
	for i, c := range sel.columns {
		figures := make([]*Figure, len(rows))
		for row, r := range rows {
			figures[row] = figure(r.lines, c)
		}
		best := best(figures, s.Units.GetBetter(c.unit) > 0)
		if best == nil {
			continue
		}
		of++
		rival := func(f *Figure) bool { return f != nil && f.Center != best.Center && !f.Apart(best) }
		for row, f := range figures {
			if f == nil {
				continue
			}
			mark := " "
			switch {
			case rival(f):
				mark = "≈"
			case f.Center == best.Center:
				mark = "*"
				won[row]++
				if slices.ContainsFunc(figures, rival) {
					unsure[row]++
				}
			}
			t.Rows[row][t.Keys+i] = f.ranked(mark)
		}
	}
	if len(rows) > 1 && of > 0 {
		t.Note += fmt.Sprintf("\n± is half of the range, * the best of a column,\n≈ not told apart from it: the ranges overlap, or are of fewer than %d.\n\n%s.",
			Judged, winners(sel, rows, won, unsure, of))
	}
}

// best is the figure with the best median, nil for none.
func best(figures []*Figure, higher bool) (best *Figure) {
	for _, f := range figures {
		if f != nil && (best == nil || f.Center != best.Center && f.Center > best.Center == higher) {
			best = f
		}
	}
	return best
}

// winners is a sentence on the rows that have won most columns, and on those of them that others may have won.
func winners(sel *selection, rows []row, won, unsure []int, of int) string {
	most := slices.Max(won)
	var names, doubts []string
	for row, n := range won {
		if n == most {
			names = append(names, strings.Join(rows[row].key, " "))
			if unsure[row] > 0 {
				doubts = append(doubts, fmt.Sprintf("in %d of its columns others are not told apart from %s", unsure[row], names[len(names)-1]))
			}
		}
	}
	for _, l := range sel.lines {
		if off := l.GetConfig("machine-off"); off != "" {
			doubts = append(doubts, "the machine was not at rest, "+off)
			break
		}
	}
	text := fmt.Sprintf("%s is the best in %d of %d columns", names[0], most, of)
	if len(names) > 1 {
		text = fmt.Sprintf("%s are each the best in %d of %d columns", strings.Join(names, " and "), most, of)
	}
	if len(doubts) > 0 {
		text += ", but this cannot be relied on: " + strings.Join(doubts, "; ")
	}
	return text
}
