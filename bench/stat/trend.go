package stat

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// PowerLaw is y = factor · x^Exponent, a line between logarithms. An exponent of
// 0 is no growth, 1 is growth in proportion.
type PowerLaw struct {
	Exponent float64

	n                      int
	origin                 float64 // log y at x = 1
	meanX, squaresX, sigma float64 // of log x; of the residuals
}

// FitPowerLaw fits a power law by least squares of log y over log x, as for the
// time of a commit over the size of the data. All values must be positive. It
// returns ErrTooFew for fewer than 3 points, which leave nothing to take the
// interval from, and ErrConstant when x does not vary.
func FitPowerLaw(x, y []float64) (PowerLaw, error) {
	switch {
	case len(x) < 3:
		return PowerLaw{}, fmt.Errorf("power law: %d points: %w", len(x), ErrTooFew)
	case constant(x):
		return PowerLaw{}, fmt.Errorf("power law: %w", ErrConstant)
	case slices.Min(x) <= 0 || slices.Min(y) <= 0:
		return PowerLaw{}, fmt.Errorf("power law: values must be positive")
	}
	logs := func(values []float64) []float64 {
		list := make([]float64, len(values))
		for i, v := range values {
			list[i] = math.Log(v)
		}
		return list
	}
	x, y = logs(x), logs(y)
	n := float64(len(x))
	p := PowerLaw{n: len(x)}
	p.origin, p.Exponent = stat.LinearRegression(x, y, nil, false)
	mean, variance := stat.MeanVariance(x, nil)
	p.meanX, p.squaresX = mean, variance*(n-1)
	for i := range x {
		p.sigma += math.Pow(y[i]-p.origin-p.Exponent*x[i], 2) / (n - 2)
	}
	p.sigma = math.Sqrt(p.sigma)
	return p, nil
}

// Interval returns that of the exponent.
func (p PowerLaw) Interval() (low, high float64) {
	half := p.student() * p.sigma / math.Sqrt(p.squaresX)
	return p.Exponent - half, p.Exponent + half
}

// student is how many standard errors an interval is wide on either side.
func (p PowerLaw) student() float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(p.n - 2)}.Quantile(1 - Alpha/2)
}

// At returns the value at x, with the interval of one more observation there. Far
// from what was measured it holds only if the law does.
func (p PowerLaw) At(x float64) Summary {
	n, d := float64(p.n), math.Log(x)-p.meanX
	mid := p.origin + p.Exponent*math.Log(x)
	half := p.student() * p.sigma * math.Sqrt(1+1/n+d*d/p.squaresX)
	return Summary{Median: math.Exp(mid), Low: math.Exp(mid - half), High: math.Exp(mid + half), N: p.n}
}
