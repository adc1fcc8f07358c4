package report

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/varvedb/varve/bench/result"
)

// Table is figures in rows and columns, for any kind of output.
type Table struct {
	Of      string // what it shows of its experiment: a unit, or a name
	Caption string
	Columns []Column
	Rows    [][]Cell // each as long as Columns
	Notes   []string
	Ranked  bool // the columns have units of their own, and what they measure stands in the cells

	named int // columns that name rows, where it is filled cell by cell
}

// Column is a column's head.
type Column struct {
	Head    string
	Engine  string // whose figures it has; "" for the columns that name rows
	Numeric bool
}

// Cell is a figure or the name of a row.
type Cell struct {
	Text   string // "" when there is nothing
	Spread string // of the figure: its interval, or the range of few runs
	Detail string // comparison: where there is room for it
	Class  string // of an answer: pass, fail or unknown; best for the best of a row
	Link   string // id of the cell that says more
	ID     string // for such links
	Engine string // of the first cell of a row: whose figures the row has

	// Value is the figure, nil when there is none; Shade is where it is between the
	// best (0) and the worst (1) of its table, nil for no shade.
	Value, Shade *float64
}

// names is the row of a table that has only words.
func names(words ...string) []Cell {
	row := make([]Cell, len(words))
	for i, w := range words {
		row[i].Text = w
	}
	return row
}

func heads(words ...string) []Column {
	columns := make([]Column, len(words))
	for i, w := range words {
		columns[i].Head = w
	}
	return columns
}

// figureHeads are heads of columns of figures.
func figureHeads(words ...string) []Column {
	columns := heads(words...)
	for i := range columns {
		columns[i].Numeric = true
	}
	return columns
}

// engineHeads are columns of figures in a unit, or without one of answers, one for
// each engine.
func engineHeads(engines []string, unit string) []Column {
	columns := heads(engines...)
	for i, e := range engines {
		columns[i] = Column{Head: e + unit, Engine: e, Numeric: unit != ""}
	}
	return columns
}

// newGrid begins a table that is filled cell by cell, whose first columns name its rows.
func newGrid(named []Column, columns []Column) *Table {
	return &Table{Columns: slices.Concat(named, columns), named: len(named)}
}

// at is a cell of the row with the names, in one of the columns after them.
func (t *Table) at(row []string, column int) *Cell { return &t.row(row)[t.named+column] }

// row is the row with the names. Rows stand in the order in which they are first named.
func (t *Table) row(words []string) []Cell {
	i := slices.IndexFunc(t.Rows, func(cells []Cell) bool {
		return slices.EqualFunc(cells[:t.named], words, func(c Cell, s string) bool { return c.Text == s })
	})
	if i < 0 {
		i = len(t.Rows)
		t.Rows = append(t.Rows, append(names(words...), make([]Cell, len(t.Columns)-t.named)...))
	}
	return t.Rows[i]
}

// unlessEmpty is the table, or none when it has no rows.
func (t *Table) unlessEmpty() []Table {
	if len(t.Rows) == 0 {
		return nil
	}
	return []Table{*t}
}

// shade marks the cells of a table by their figures, on a logarithmic scale, and
// the best of each row. Figures that are neither good nor bad stay as they are.
func (t *Table) shade(good result.Direction) {
	if good == result.Neutral {
		return
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, row := range t.Rows {
		for _, c := range row {
			if c.Value != nil && *c.Value > 0 {
				low, high = min(low, math.Log(*c.Value)), max(high, math.Log(*c.Value))
			}
		}
	}
	for _, row := range t.Rows {
		for j := range row {
			c := &row[j]
			if c.Value == nil || *c.Value <= 0 || high <= low {
				continue
			}
			c.Shade = new((math.Log(*c.Value) - low) / (high - low))
			if good == result.Higher {
				*c.Shade = 1 - *c.Shade
			}
		}
		if best := bestIn(row, good); best >= 0 {
			row[best].Class = "best"
		}
	}
}

// bestIn returns the index of the best figure of a row; -1 when it is alone, or
// as good as another.
func bestIn(row []Cell, good result.Direction) int {
	bad := func(c Cell) float64 { return -float64(good) * *c.Value }
	figures := slices.DeleteFunc(slices.Clone(row), func(c Cell) bool { return c.Value == nil })
	slices.SortFunc(figures, func(a, b Cell) int { return cmp.Compare(bad(a), bad(b)) })
	if len(figures) < 2 || *figures[0].Value == *figures[1].Value {
		return -1
	}
	return slices.IndexFunc(row, func(c Cell) bool { return c.Value == figures[0].Value })
}

// sentence ends words, if there are any.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	return s + "."
}

// maxError is how much of an error is shown in a line; what follows is mostly the
// rest of a statement.
const maxError = 300

// oneLine makes an error fit into a line.
func oneLine(s string, most int) string {
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + " …"
	}
	return s
}

// nonempty are those words that are not empty, in the same array.
func nonempty(words ...string) []string {
	return slices.DeleteFunc(words, func(s string) bool { return s == "" })
}

// joinWords joins those words that are not empty.
func joinWords(separator string, words ...string) string {
	return strings.Join(nonempty(words...), separator)
}

// slug makes an anchor of words.
func slug(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(s)), "-")
}
