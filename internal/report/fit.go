package report

import (
	"slices"
	"strconv"

	"golang.org/x/perf/benchfmt"
	"gonum.org/v1/gonum/stat"
)

// response is the unit of the blocks of a designed experiment that its other units explain.
const response = "ms"

// fit makes a row for each regression of the time of blocks over what is in them.
func fit(sel *selection) *Table {
	t := sel.table("µs that each adds to a commit (95 % interval), the part of the variance that it explains, and its correlation with the time")
	groups, keys := sel.group()
	var predictors []string
	for _, l := range sel.lines {
		for _, v := range l.Values {
			if v.Unit != response {
				predictors = appendNew(predictors, v.Unit)
			}
		}
	}
	for _, p := range predictors {
		t.Heads = append(t.Heads, "µs, "+p, "%, "+p, "r, "+p)
	}
	t.Heads = append(t.Heads, "R²", "commits")
	for _, key := range keys {
		t.Rows = append(t.Rows, append(cellsOf(key), regression(groups[joined(key)], predictors)...))
	}
	return t
}

func regression(lines []*benchfmt.Result, predictors []string) (cells []Cell) {
	times, of := unitOf(lines, response), make([][]float64, len(predictors))
	for i, unit := range predictors {
		of[i] = unitOf(lines, unit)
	}
	r2, terms := 0.0, regress(times, of)
	if terms == nil {
		return slices.Repeat([]Cell{{Text: "–"}}, 3*len(predictors)+2)
	}
	for i, t := range terms {
		const toMicro = 1000
		cells = append(cells, Cell{Number(toMicro * t.coefficient), Number(toMicro*t.low) + "–" + Number(toMicro*t.high)},
			Cell{Text: strconv.Itoa(int(100*t.share + 0.5))}, Cell{Text: Number(stat.Correlation(of[i], times, nil))})
		r2 += t.share
	}
	return append(cells, Cell{Text: Number(r2)}, Cell{Text: Number(float64(len(lines)))})
}

// unitOf returns the values of a unit.
func unitOf(lines []*benchfmt.Result, unit string) []float64 {
	list := make([]float64, len(lines))
	for i, l := range lines {
		list[i], _ = l.Value(unit)
	}
	return list
}
