// Package stat has what x/perf and gonum have no function for: correlations with their intervals,
// regressions whose intervals hold for times and that tell how much each predictor explains, and
// the points of a designed experiment. Intervals are of 95 %, and two-sided.
package stat

import (
	"errors"
	"math"
	"slices"
)

// alpha is the part of intervals that miss.
const alpha = 0.05

// ErrTooFew is returned for samples that are too small to say anything.
var ErrTooFew = errors.New("too few observations")

// ErrConstant is returned where something has to vary and does not.
var ErrConstant = errors.New("all observations are equal")

func constant(values []float64) bool {
	return len(values) == 0 || slices.Min(values) == slices.Max(values)
}

// Median returns the middle of values, NaN for none. It does not change them.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
