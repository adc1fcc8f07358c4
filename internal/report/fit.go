package report

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/perf/benchfmt"
	gonum "gonum.org/v1/gonum/stat"

	"github.com/varvedb/varve/bench/stat"
)

// response is the unit of the blocks of a designed experiment that its other units explain.
const response = "ms"

// fit makes a row for each regression of the time of blocks over what is in them.
func (s *Set) fit(sel *selection) (*Table, error) {
	t := &Table{Title: sel.view.Title, Note: "µs that each adds to a commit (95 % interval), the part of the variance that it explains, and its correlation with the time", Query: sel.query()}
	for _, f := range sel.fields {
		t.Heads = append(t.Heads, f.Name[1:])
	}
	t.Keys = len(t.Heads)
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
		row := make([]Cell, 0, len(t.Heads))
		for _, value := range key {
			row = append(row, Cell{Text: value})
		}
		cells, err := regression(groups[joined(key)], predictors)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", key, err)
		}
		t.Rows = append(t.Rows, append(row, cells...))
	}
	return t, nil
}

func regression(lines []*benchfmt.Result, predictors []string) ([]Cell, error) {
	of := make([]stat.Predictor, len(predictors))
	for i, unit := range predictors {
		of[i] = stat.Predictor{Name: unit, Values: unitOf(lines, unit)}
	}
	r, err := stat.Regress(unitOf(lines, response), of)
	if errors.Is(err, stat.ErrDependent) || errors.Is(err, stat.ErrTooFew) || errors.Is(err, stat.ErrConstant) {
		return slices.Repeat([]Cell{{Text: "–"}}, 3*len(predictors)+2), nil
	}
	if err != nil {
		return nil, err
	}
	var cells []Cell
	for _, unit := range predictors {
		t := r.Term(unit)
		const toMicro = 1000
		cells = append(cells,
			Cell{Number(toMicro * t.Coefficient), Number(toMicro*t.Low) + "–" + Number(toMicro*t.High)},
			Cell{Text: strconv.Itoa(int(100*t.Share + 0.5))}, Cell{Text: Number(gonum.Correlation(unitOf(lines, unit), unitOf(lines, response), nil))})
	}
	return append(cells, Cell{Text: Number(r.R2)}, Cell{Text: Number(float64(r.N))}), nil
}

// unitOf returns the values of a unit.
func unitOf(lines []*benchfmt.Result, unit string) []float64 {
	list := make([]float64, len(lines))
	for i, l := range lines {
		list[i], _ = l.Value(unit)
	}
	return list
}
