// Package stat has the one thing that x/perf and gonum have no function for: regressions whose
// intervals hold for times and that tell how much each predictor explains. Intervals are of 95 %,
// and two-sided.
package stat

import (
	"errors"
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
