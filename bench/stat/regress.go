package stat

import (
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/combin"
	"gonum.org/v1/gonum/stat/distuv"
)

// ErrDependent is returned when a predictor is a linear combination of others,
// so that no data can tell their effects apart.
var ErrDependent = errors.New("predictors depend on each other")

// Predictor is a quantity that may explain the response: a value for each
// observation.
type Predictor struct {
	Name   string
	Values []float64
}

// Regression is a line, or a plane of more dimensions, through observations.
type Regression struct {
	N     int     // observations
	R2    float64 // part of the response's variance that is explained
	Terms []Term  // the intercept, then the predictors
}

// Intercept is the name of the first term.
const Intercept = "(intercept)"

// Term is a coefficient of a regression with its interval.
type Term struct {
	Name                   string // of the predictor
	Coefficient, Low, High float64

	// Share is the term's part of the variance, averaged over all orders in which
	// terms can be added (Lindeman, Merenda and Gold): unlike the square of a
	// correlation it neither counts twice what two predictors explain together nor
	// gives it to the one that came first. Shares add up to R2. 0 for the intercept.
	Share float64
}

// Term returns the term of a name, or nil.
func (r *Regression) Term(name string) *Term {
	i := slices.IndexFunc(r.Terms, func(t Term) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Terms[i]
}

// Regress fits the response to a few predictors by ordinary least squares with an
// intercept. Its intervals hold although residuals spread more in some places than
// in others, as times do (the standard errors HC3 of MacKinnon and White). It returns
// ErrTooFew when there are not more observations than terms, ErrConstant when the
// response or a predictor does not vary, and ErrDependent.
func Regress(y []float64, predictors []Predictor) (*Regression, error) {
	n, k := len(y), len(predictors)+1
	if n <= k {
		return nil, fmt.Errorf("regression: %d observations for %d terms: %w", n, k, ErrTooFew)
	}
	columns := []Predictor{{Intercept, slices.Repeat([]float64{1}, n)}}
	for _, p := range append(slices.Clone(predictors), Predictor{"the response", y}) {
		if len(p.Values) != n {
			return nil, fmt.Errorf("regression: %s has %d values for %d observations", p.Name, len(p.Values), n)
		}
		if constant(p.Values) {
			return nil, fmt.Errorf("regression: %s: %w", p.Name, ErrConstant)
		}
		columns = append(columns, p)
	}
	coefficients, stdErrors, err := leastSquares(columns[:k], y)
	if err != nil {
		return nil, fmt.Errorf("regression: %w", err)
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - k)}.Quantile(1 - alpha/2)
	r := &Regression{N: n}
	for j, share := range append([]float64{0}, shares(columns[1:])...) {
		b, half := coefficients[j], t*stdErrors[j]
		r.Terms = append(r.Terms, Term{Name: columns[j].Name, Coefficient: b, Low: b - half, High: b + half, Share: share})
		r.R2 += share
	}
	return r, nil
}

// illConditioned is how many times errors of the data may grow in the coefficients.
const illConditioned = 1e10

// leastSquares returns the coefficients of columns and their standard errors HC3,
// for which each observation brings its own variance, larger where it has much
// leverage.
func leastSquares(columns []Predictor, y []float64) (coefficients, stdErrors []float64, err error) {
	n, k := len(y), len(columns)
	x, lengths := mat.NewDense(n, k, nil), make([]float64, k)
	for j, c := range columns {
		lengths[j] = floats.Norm(c.Values, 2) // bytes beside counts would cost digits
		for i, v := range c.Values {
			x.Set(i, j, v/lengths[j])
		}
	}
	var svd mat.SVD
	if !svd.Factorize(x, mat.SVDThin) || !(svd.Cond() < illConditioned) {
		return nil, nil, ErrDependent
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
		stdErrors = append(stdErrors, mat.Norm(inverse.ColView(j), 2)/length)
	}
	return coefficients, stdErrors, nil
}

// shares returns what each column but the last, the response, adds to R² of the
// last, averaged over all orders in which columns can be added.
func shares(columns []Predictor) []float64 {
	k, all := len(columns)-1, correlations(columns)
	explained := func(set []int) float64 {
		var of, with mat.SymDense
		of.SubsetSym(all, set)
		with.SubsetSym(all, append(slices.Clone(set), k))
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

// correlations returns that of each column with each.
func correlations(columns []Predictor) *mat.SymDense {
	data := mat.NewDense(len(columns[0].Values), len(columns), nil)
	for j, c := range columns {
		data.SetCol(j, c.Values)
	}
	var all mat.SymDense
	stat.CorrelationMatrix(&all, data, nil)
	return &all
}
