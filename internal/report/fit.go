package report

import (
	"fmt"
	"slices"

	"golang.org/x/perf/benchfmt"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// response is the unit that the other units of blocks explain in a designed
// experiment.
const response = "ms"

// confidence is the level of the confidence intervals.
const confidence = 0.95

// fit makes a table with a row for each regression of commit times over block
// contents. There is one for each sitting, over the medians of its repeats,
// because the same block again is not a further observation.
func fit(sel *selection, all []string) *Table {
	t := sel.table("µs that each adds to a commit (95 % interval of one sitting), and its correlation with the time")
	var predictors []string
	for _, l := range sel.lines {
		for _, v := range l.Values {
			if v.Unit != response {
				predictors = appendNew(predictors, v.Unit)
			}
		}
	}
	for _, p := range predictors {
		t.Heads = append(t.Heads, "µs, "+p, "r, "+p)
	}
	t.Heads = append(t.Heads, "R²", "blocks", "sitting")
	for _, r := range sel.group() {
		for _, id := range sittingsOf(r.lines) {
			of := r.lines.where(func(l *Line) bool { return sittingOf(l) == id })
			cells := append(cellsOf(r.key), regression(repeated(of, predictors), predictors)...)
			t.Rows = append(t.Rows, append(cells, numbers([]string{id}, all)))
		}
	}
	return t
}

// repeated combines the repeats of each block into one line, with the median of
// their times.
func repeated(lines Lines, predictors []string) (list Lines) {
	times := make(map[string][]float64)
	for _, l := range lines {
		block := string(l.Name)
		for _, unit := range predictors {
			block += fmt.Sprint("/", unitOf(Lines{l}, unit))
		}
		if times[block] == nil {
			list = append(list, &Line{Name: benchfmt.Name(block), Values: l.Values})
		}
		v, _ := l.Value(response)
		times[block] = append(times[block], v)
	}
	for _, l := range list {
		l.Values = append([]benchfmt.Value{{Value: median(times[string(l.Name)]), Unit: response}}, l.Values...)
	}
	return list
}

func regression(lines Lines, predictors []string) (cells []Cell) {
	times, of := unitOf(lines, response), make([][]float64, len(predictors))
	for i, unit := range predictors {
		of[i] = unitOf(lines, unit)
	}
	terms, r2 := regress(times, of)
	if terms == nil {
		return slices.Repeat([]Cell{{Text: "–"}}, 2*len(predictors)+2)
	}
	for i, t := range terms {
		const toMicro = 1000
		cells = append(cells, Cell{Text: Number(toMicro * t.coefficient), Range: Number(toMicro*t.low) + "–" + Number(toMicro*t.high)},
			Cell{Text: Number(stat.Correlation(of[i], times, nil))})
	}
	return append(cells, Cell{Text: Number(r2)}, Cell{Text: Number(float64(len(lines)))})
}

// unitOf returns the values of a unit.
func unitOf(lines Lines, unit string) []float64 {
	list := make([]float64, len(lines))
	for i, l := range lines {
		list[i], _ = l.Value(unit)
	}
	return list
}

// term is the coefficient of a predictor in a regression, with its 95 %
// confidence interval.
type term struct{ coefficient, low, high float64 }

// regress fits the response to a few predictors by ordinary least squares with
// an intercept. Its intervals are valid even if the variance of residuals
// varies, as it does for times (the HC3 standard errors of MacKinnon and
// White); x/perf and gonum have no function for these. R² is the share of the
// variance that the predictors explain together. It returns nil if the data
// cannot determine the coefficients: there are too few observations, the
// response or a predictor does not vary, or a predictor is a linear combination
// of others.
func regress(y []float64, predictors [][]float64) (terms []term, r2 float64) {
	n, k := len(y), len(predictors)+1
	if n <= k || slices.ContainsFunc(append(slices.Clone(predictors), y), func(c []float64) bool { return slices.Min(c) == slices.Max(c) }) {
		return nil, 0
	}
	coefficients, errors, rest := leastSquares(append([][]float64{slices.Repeat([]float64{1}, n)}, predictors...), y)
	if coefficients == nil {
		return nil, 0
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - k)}.Quantile(1 - (1-confidence)/2)
	for j, b := range coefficients[1:] {
		half := t * errors[j+1]
		terms = append(terms, term{b, b - half, b + half})
	}
	return terms, 1 - rest/(stat.Variance(y, nil)*float64(n-1))
}

// illConditioned bounds the condition number: how much errors in the data may
// grow in the coefficients.
const illConditioned = 1e10

// leastSquares returns the coefficients of columns and their HC3 standard
// errors, in which each observation contributes its squared residual, more if
// it has much leverage. It returns nil if columns are linearly dependent. Rest
// is the residual sum of squares.
func leastSquares(columns [][]float64, y []float64) (coefficients, errors []float64, rest float64) {
	n, k := len(y), len(columns)
	x, lengths := mat.NewDense(n, k, nil), make([]float64, k)
	for j, c := range columns {
		lengths[j] = floats.Norm(c, 2) // bytes are so much larger than counts that digits would be lost
		for i, v := range c {
			x.Set(i, j, v/lengths[j])
		}
	}
	var svd mat.SVD
	if !svd.Factorize(x, mat.SVDThin) || !(svd.Cond() < illConditioned) {
		return nil, nil, 0
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
	rest = mat.Dot(&residuals, &residuals)
	for i := range n {
		leverage := floats.Dot(u.RawRowView(i), u.RawRowView(i))
		floats.Scale(residuals.AtVec(i)/max(1-leverage, 1e-12), inverse.RawRowView(i))
	}
	for j, length := range lengths {
		coefficients = append(coefficients, b.AtVec(j)/length)
		errors = append(errors, mat.Norm(inverse.ColView(j), 2)/length)
	}
	return coefficients, errors, rest
}
