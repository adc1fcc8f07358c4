package report

import (
	"fmt"
	"slices"
	"strings"
)

// rank marks the best rows of each column of a table, and says below it which row is the best most
// often, and why that cannot be relied on.
func (s *Set) rank(sel *selection, t *Table) {
	groups, keys := sel.group()
	won, unsure, of := make([]int, len(keys)), make([]int, len(keys)), 0 // columns
	for i, c := range sel.columns {
		figures := make([]*Figure, len(keys))
		for row, key := range keys {
			figures[row] = figure(groups[joined(key)], c)
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
	if len(keys) > 1 && of > 0 {
		t.Note += fmt.Sprintf("\n± is half of the range, * the best of a column,\n≈ not told apart from it: the ranges overlap, or are of fewer than %d.\n\n%s.",
			Judged, winners(sel, keys, won, unsure, of))
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

// winners is a sentence on the rows that have won most columns, and on those of them that others
// may have won.
func winners(sel *selection, keys [][]string, won, unsure []int, of int) string {
	most := slices.Max(won)
	var names, doubts []string
	for row, n := range won {
		if n == most {
			names = append(names, strings.Join(keys[row], " "))
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
