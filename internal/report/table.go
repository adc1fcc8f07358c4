package report

import (
	"math"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
)

// Table is figures in rows and columns, for any kind of output.
type Table struct {
	Of      string // what it shows of its experiment: a unit, or a name
	Caption string
	Columns []Column
	Rows    [][]Cell // each as long as Columns
	Notes   []string
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
	Detail string // interval, number of runs, comparison: where there is room for it
	Class  string // of an answer: pass, fail or unknown; best for the best of a row

	// Shade is where the figure is between the best (0) and the worst (1) of its
	// table; nil for no shade.
	Shade *float64
}

func text(s string) Cell { return Cell{Text: s} }

// names is the row of a table that has only words.
func names(words ...string) []Cell {
	row := make([]Cell, len(words))
	for i, w := range words {
		row[i] = text(w)
	}
	return row
}

func heads(words ...string) []Column {
	columns := make([]Column, len(words))
	for i, w := range words {
		columns[i] = Column{Head: w}
	}
	return columns
}

// Number writes a figure with three significant digits, thousands apart.
func Number(v float64) string { return runs.Number(v) }

// shade marks the cells of a table by their figures, on a logarithmic scale, and
// the best of each row. Figures that are neither good nor bad stay as they are.
func shade(t *Table, values [][]*float64, good result.Direction) {
	if good == result.Neutral {
		return
	}
	lowerIsBetter := good == result.Lower
	low, high := math.Inf(1), math.Inf(-1)
	for _, row := range values {
		for _, v := range row {
			if v != nil && *v > 0 {
				low, high = min(low, math.Log(*v)), max(high, math.Log(*v))
			}
		}
	}
	for i, row := range values {
		for j, v := range row {
			if v == nil || *v <= 0 || high <= low {
				continue
			}
			at := (math.Log(*v) - low) / (high - low)
			if !lowerIsBetter {
				at = 1 - at
			}
			t.Rows[i][j].Shade = &at
		}
		if best := bestIn(row, lowerIsBetter); best >= 0 {
			t.Rows[i][best].Class = "best"
		}
	}
}

// bestIn returns the index of the best figure of a row; -1 when it is alone, or
// as good as another.
func bestIn(row []*float64, lowerIsBetter bool) int {
	best, equal := -1, 0
	for i, v := range row {
		switch {
		case v == nil:
		case best < 0 || *v != *row[best] && (*v < *row[best]) == lowerIsBetter:
			best, equal = i, 1
		case *v == *row[best]:
			equal++
		}
	}
	if equal != 1 || count(row) < 2 {
		return -1
	}
	return best
}

func count(row []*float64) int {
	n := 0
	for _, v := range row {
		if v != nil {
			n++
		}
	}
	return n
}
