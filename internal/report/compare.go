package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// compare makes a table with a row for each pair of settings and each value of
// the table's other keys, and a column for each engine and each other program:
// the ratio to the first setting.
func (s *Set) compare(sel *selection, c Compare) *Table {
	rest := func(l *Line) string {
		var values []string
		for _, f := range sel.fields {
			if key := strings.TrimPrefix(f.Name, "/"); key != c.Key {
				values = append(values, Key(l, key))
			}
		}
		return strings.Join(values, ", ")
	}
	of := func(l *Line) string { return cmp.Or(Key(l, "engine"), Key(l, "peer")) }
	lines := slices.Concat(sel.lines, s.published(sel.lines))
	series := lines.having(c.Unit).each(of) // the ones without our figures come last
	t := &Table{Title: "change of " + c.Unit, Heads: append([]string{c.Key, "of"}, series...), Keys: 2}
	for _, to := range c.To {
		for _, r := range sel.lines.each(rest) {
			row := []Cell{{Text: c.From + " → " + to}, {Text: r}}
			for _, name := range series {
				at := func(setting string) *Figure {
					return figure(lines, column{unit: c.Unit, of: func(l *Line) bool {
						return of(l) == name && rest(l) == r && Key(l, c.Key) == setting
					}})
				}
				cell := Cell{Text: "–"}
				if r := Pair(at(to), at(c.From)); r != nil {
					cell = r.cell()
				}
				if !slices.ContainsFunc(sel.lines, func(l *Line) bool { return of(l) == name }) {
					cell = Cell{Text: strings.TrimLeft(cell.Text, "?~ ")} // published
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

// rank marks the best rows in each column of a table. Below the table it says
// which row is the best most often, and which doubts there are.
func (s *Set) rank(sel *selection, t *Table, rows []row) {
	won, unsure, of := make([]int, len(rows)), 0, 0 // columns
	for i, c := range sel.columns {
		figures := make([]*Figure, len(rows))
		best, higher := -1, s.Units.GetBetter(c.unit) > 0
		for row, r := range rows {
			figures[row] = figure(r.lines, c)
			if figures[row] == nil {
				continue
			}
			if best < 0 {
				best = row
			} else if r := Pair(figures[row], figures[best]); r != nil && r.Median != 1 && r.Median > 1 == higher {
				best = row
			}
		}
		if best < 0 {
			continue
		}
		of++
		rivals := 0
		for row, f := range figures {
			if f == nil {
				continue
			}
			cell, mark := &t.Rows[row][t.Keys+i], " "
			switch r := Pair(f, figures[best]); {
			case row == best || r != nil && r.Median == 1:
				mark = "*"
				won[row]++
			case r == nil || !r.Differs():
				mark = "≈"
				rivals = 1
			}
			*cell = Cell{Text: strings.TrimLeft(cell.Text, "?~ ") + mark}
		}
		unsure += rivals
	}
	if len(rows) > 1 && of > 0 {
		t.Note += fmt.Sprintf("\n* is the best of a column, ≈ is not told apart from it\n\n%s.", winners(sel, rows, won, unsure, of))
	}
}

// winners is a sentence about the rows that are the best in most columns, and
// the doubts about that.
func winners(sel *selection, rows []row, won []int, unsure, of int) string {
	most := slices.Max(won)
	var names, doubts []string
	for row, n := range won {
		if n == most {
			names = append(names, strings.Join(rows[row].key, " "))
		}
	}
	if unsure > 0 {
		doubts = append(doubts, fmt.Sprintf("in %d columns others are not told apart from the best", unsure))
	}
	if sel.lines.disturbed() > 0 {
		doubts = append(doubts, "the machine was not at rest (†)")
	}
	text := fmt.Sprintf("Best in %d of %d columns, in these sittings: %s", most, of, strings.Join(names, " and "))
	if len(doubts) > 0 {
		text += ". Not to be relied on: " + strings.Join(doubts, "; ")
	}
	return text
}
