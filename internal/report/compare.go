package report

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// compare makes a row for each pair of settings and each other key of the table, and a column
// for each engine and each report of others. Less is written with "÷".
func (s *Set) compare(sel *selection, c Compare) (*Table, error) {
	type at struct{ rest, of string }
	figures := make(map[at]map[string]*Figure)
	published := make(map[string]bool)
	var rests, series []string
	collect := func(lines []*benchfmt.Result, seriesKey string) {
		values := make(map[at]map[string][]float64)
		for _, l := range lines {
			v, ok := l.Value(c.Unit)
			if !ok {
				continue
			}
			var rest []string
			for _, f := range sel.fields {
				if key := strings.TrimPrefix(f.Name, "/"); key != c.Key {
					rest = append(rest, Key(l, key))
				}
			}
			a := at{strings.Join(rest, ", "), Key(l, seriesKey)}
			if values[a] == nil {
				values[a] = make(map[string][]float64)
			}
			values[a][Key(l, c.Key)] = append(values[a][Key(l, c.Key)], v)
			rests, series = appendNew(rests, a.rest), appendNew(series, a.of)
		}
		for a, of := range values {
			figures[a] = make(map[string]*Figure)
			for setting, list := range of {
				figures[a][setting] = NewFigure(list, false)
			}
		}
	}
	collect(sel.lines, "engine")
	if own := len(rests); own > 0 {
		ours := len(series)
		collect(s.beside(sel).lines, "peer")
		rests = rests[:own] // what only others measured has nothing beside it
		for _, name := range series[ours:] {
			published[name] = true
		}
	}
	t := &Table{Title: "change of " + c.Unit, Heads: append([]string{c.Key, "of"}, series...), Keys: 2}
	for _, to := range c.To {
		for _, rest := range rests {
			row := []Cell{{Text: c.From + " → " + to}, {Text: rest}}
			for _, name := range series {
				of := figures[at{rest, name}]
				cell := change(of[c.From], of[to])
				if published[name] {
					cell.More = ""
				}
				row = append(row, cell)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	t.Rows = slices.DeleteFunc(t.Rows, func(row []Cell) bool {
		return !slices.ContainsFunc(row[2:], func(c Cell) bool { return c.Text != "–" })
	})
	if len(t.Rows) == 0 {
		return nil, nil
	}
	return t, nil
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
