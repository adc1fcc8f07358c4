package report

import (
	"slices"
	"strconv"

	"golang.org/x/perf/benchfmt"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/combin"
	"gonum.org/v1/gonum/stat/distuv"
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

// term is the coefficient of a predictor in a regression, with its interval of 95 %.
type term struct {
	coefficient, low, high float64

	// share is the part of the variance that the predictor explains, averaged over all orders in which predictors can
	// be added (Lindeman, Merenda and Gold): unlike the square of a correlation it neither counts twice what two
	// predictors explain together nor gives it to the one that came first. Shares add up to R².
	share float64
}

// regress fits the response to a few predictors by ordinary least squares with an intercept. Its
// intervals hold although residuals spread more in some places than in others, as times do (the
// standard errors HC3 of MacKinnon and White): x/perf and gonum have no function for these. It
// returns nil where the data cannot tell: there are not more observations than terms, the response
// or a predictor does not vary, or a predictor is a linear combination of others.
func regress(y []float64, predictors [][]float64) (terms []term) {
	n, k := len(y), len(predictors)+1
	columns := append(slices.Clone(predictors), y)
	if n <= k || slices.ContainsFunc(columns, func(c []float64) bool { return slices.Min(c) == slices.Max(c) }) {
		return nil
	}
	coefficients, errors := leastSquares(append([][]float64{slices.Repeat([]float64{1}, n)}, predictors...), y)
	if coefficients == nil {
		return nil
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - k)}.Quantile(1 - (1-confidence)/2)
	for j, share := range shares(columns) {
		b, half := coefficients[j+1], t*errors[j+1]
		terms = append(terms, term{b, b - half, b + half, share})
	}
	return terms
}

// illConditioned is how many times errors of the data may grow in the coefficients.
const illConditioned = 1e10

// leastSquares returns the coefficients of columns and their standard errors HC3, for which each observation
// brings its own variance, larger where it has much leverage; nil where columns depend on each other.
func leastSquares(columns [][]float64, y []float64) (coefficients, errors []float64) {
	n, k := len(y), len(columns)
	x, lengths := mat.NewDense(n, k, nil), make([]float64, k)
	for j, c := range columns {
		lengths[j] = floats.Norm(c, 2) // bytes beside counts would cost digits
		for i, v := range c {
			x.Set(i, j, v/lengths[j])
		}
	}
	var svd mat.SVD
	if !svd.Factorize(x, mat.SVDThin) || !(svd.Cond() < illConditioned) {
		return nil, nil
	}
	var u, v, inverse mat.Dense
	svd.UTo(&u)
	svd.VTo(&v)
	scales := svd.Values(nil)
	v.Apply(func(_, j int, v float64) float64 { return v / scales[j] }, &v)
	inverse.Mul(&u, v.T()) // transposed: a column gives a coefficient

	var b, residuals mat.VecDense
	b.MulVec(inverse.T(), mat.NewVecDense(n, y))
	residuals.MulVec(x, &b)
	residuals.SubVec(mat.NewVecDense(n, y), &residuals)
	for i := range n {
		leverage := floats.Dot(u.RawRowView(i), u.RawRowView(i))
		floats.Scale(residuals.AtVec(i)/max(1-leverage, 1e-12), inverse.RawRowView(i))
	}
	for j, length := range lengths {
		coefficients = append(coefficients, b.AtVec(j)/length)
		errors = append(errors, mat.Norm(inverse.ColView(j), 2)/length)
	}
	return coefficients, errors
}

// shares returns what each column but the last, the response, adds to R² of the last, averaged over
// all orders in which columns can be added.
func shares(columns [][]float64) []float64 {
	data := mat.NewDense(len(columns[0]), len(columns), nil)
	for j, c := range columns {
		data.SetCol(j, c)
	}
	var all mat.SymDense
	stat.CorrelationMatrix(&all, data, nil)
	k := len(columns) - 1
	explained := func(set []int) float64 {
		var of, with mat.SymDense
		of.SubsetSym(&all, set)
		with.SubsetSym(&all, append(slices.Clone(set), k))
		return min(max(1-mat.Det(&with)/mat.Det(&of), 0), 1)
	}
	list, orders := make([]float64, k), combin.Permutations(k, k)
	for _, order := range orders {
		before := 0.0
		for i, j := range order {
			after := explained(order[:i+1])
			list[j] += (after - before) / float64(len(orders))
			before = after
		}
	}
	return list
}
