package stat

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Correlation is a coefficient of correlation with its interval.
type Correlation struct {
	R    float64 `json:"r"`    // -1…1
	Low  float64 `json:"low"`  // of the 95 % interval
	High float64 `json:"high"` // of the 95 % interval
	P    float64 `json:"p"`    // of no correlation at all, two-sided
	N    int     `json:"n"`    // pairs
}

// minPairs are the fewest from which a correlation has an interval.
const minPairs = 4

// Pearson returns the linear correlation of pairs, with the interval of Fisher's
// transformation and the p-value of the t test. It returns ErrTooFew for fewer
// than 4 pairs and ErrConstant when one side does not vary.
func Pearson(x, y []float64) (Correlation, error) {
	if len(x) != len(y) {
		return Correlation{}, fmt.Errorf("correlation: %d values against %d", len(x), len(y))
	}
	if len(x) < minPairs {
		return Correlation{}, fmt.Errorf("correlation: %d pairs, want at least %d: %w", len(x), minPairs, ErrTooFew)
	}
	if constant(x) || constant(y) {
		return Correlation{}, fmt.Errorf("correlation: %w", ErrConstant)
	}
	n := float64(len(x))
	// Rounding may give a little more than 1.
	r := min(max(stat.Correlation(x, y, nil), -1), 1)
	c := Correlation{R: r, Low: r, High: r, N: len(x)}
	if math.Abs(r) == 1 {
		return c, nil
	}
	half := normalQuantile(1-Alpha/2) * math.Sqrt(1/(n-3))
	c.Low, c.High = math.Tanh(math.Atanh(r)-half), math.Tanh(math.Atanh(r)+half)
	c.P = twoSidedT(r*math.Sqrt((n-2)/(1-r*r)), n-2)
	return c, nil
}

func constant(values []float64) bool {
	return len(values) == 0 || slices.Min(values) == slices.Max(values)
}

func normalQuantile(p float64) float64 { return distuv.UnitNormal.Quantile(p) }

func tQuantile(p, freedom float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile(p)
}

// twoSidedT returns the p-value of a t statistic.
func twoSidedT(t, freedom float64) float64 {
	return 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.CDF(-math.Abs(t))
}
