package stat

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// fit is a least-squares solution by QR. The columns are scaled to length 1,
// which keeps bytes beside counts from costing digits.
type fit struct {
	n, k         int
	x            *mat.Dense // scaled
	lengths      []float64  // of the columns before
	qr           mat.QR
	inverse      *mat.TriDense // of R
	coefficients []float64     // in units of the columns as given
	residuals    []float64
	rss          float64 // sum of the squared residuals
	condition    float64 // of x
}

// dependent is the length, of 1, that a column may have left beside those before
// it before it counts as a combination of them.
const dependent = 1e-10

func fitColumns(columns []Predictor, y []float64) (*fit, error) {
	f := &fit{n: len(y), k: len(columns)}
	f.x = mat.NewDense(f.n, f.k, nil)
	for j, c := range columns {
		length := floats.Norm(c.Values, 2)
		f.lengths = append(f.lengths, length)
		for i, v := range c.Values {
			f.x.Set(i, j, v/length)
		}
	}
	f.qr.Factorize(f.x)
	if err := f.invert(columns); err != nil {
		return nil, err
	}
	scaled, err := f.solve(y)
	if err != nil {
		return nil, err
	}
	f.residuals = f.residualsOf(scaled, y)
	f.rss = floats.Dot(f.residuals, f.residuals)
	for j, v := range scaled.RawVector().Data {
		f.coefficients = append(f.coefficients, v/f.lengths[j])
	}
	return f, nil
}

// invert takes R from the factors, and its inverse and condition.
func (f *fit) invert(columns []Predictor) error {
	var tall mat.Dense
	f.qr.RTo(&tall)
	r := mat.NewTriDense(f.k, mat.Upper, nil)
	for i := range f.k {
		for j := i; j < f.k; j++ {
			r.SetTri(i, j, tall.At(i, j))
		}
		if math.Abs(r.At(i, i)) < dependent {
			return fmt.Errorf("%s is a combination of the terms before it: %w", columns[i].Name, ErrDependent)
		}
	}
	f.condition = mat.Cond(r, 2)
	f.inverse = mat.NewTriDense(f.k, mat.Upper, nil)
	if err := f.inverse.InverseTri(r); err != nil {
		return fmt.Errorf("%w: %w", ErrDependent, err)
	}
	return nil
}

func (f *fit) solve(y []float64) (*mat.VecDense, error) {
	var b mat.VecDense
	if err := f.qr.SolveVecTo(&b, false, mat.NewVecDense(f.n, y)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDependent, err)
	}
	return &b, nil
}

func (f *fit) residualsOf(scaled *mat.VecDense, y []float64) []float64 {
	var fitted mat.VecDense
	fitted.MulVec(f.x, scaled)
	residuals := make([]float64, f.n)
	for i, v := range y {
		residuals[i] = v - fitted.AtVec(i)
	}
	return residuals
}

// errors returns the standard errors of the coefficients if the residuals spread
// evenly.
func (f *fit) errors() []float64 {
	variance := f.rss / float64(f.n-f.k)
	list := make([]float64, f.k)
	for j := range list {
		var sum float64
		for i := j; i < f.k; i++ {
			sum += f.inverse.At(j, i) * f.inverse.At(j, i)
		}
		list[j] = math.Sqrt(variance*sum) / f.lengths[j]
	}
	return list
}

// robustErrors returns the standard errors HC3 of MacKinnon and White: each
// observation brings its own variance, larger where it has much leverage.
func (f *fit) robustErrors() []float64 {
	var q mat.Dense // thin: the one of mat.QR is n×n
	q.Mul(f.x, f.inverse)
	for i := range f.n {
		row := q.RawRowView(i)
		left := max(1-floats.Dot(row, row), 1e-12)
		floats.Scale(f.residuals[i]/left, row)
	}
	// The weighted rows of Q, brought back by the inverse of R, are what each
	// observation adds to each coefficient.
	var parts mat.Dense
	parts.Mul(&q, f.inverse.T())
	list := make([]float64, f.k)
	for j := range list {
		list[j] = mat.Norm(parts.ColView(j), 2) / f.lengths[j]
	}
	return list
}

// spread returns the p-value of Koenker's form of the Breusch-Pagan test: whether
// the squares of the residuals depend on the predictors.
func (f *fit) spread() float64 {
	squared := make([]float64, f.n)
	for i, e := range f.residuals {
		squared[i] = e * e
	}
	if constant(squared) {
		return 1
	}
	b, err := f.solve(squared)
	if err != nil {
		return 1
	}
	left := f.residualsOf(b, squared)
	r2 := 1 - floats.Dot(left, left)/squares(squared)
	return distuv.ChiSquared{K: float64(f.k - 1)}.Survival(float64(f.n) * max(r2, 0))
}
