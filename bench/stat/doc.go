// Package stat says how sure one can be of what was measured: what x/perf and gonum
// have for it put together, and what they do not have. That is the noise between two
// measurements of the same, what remains of many comparisons and what they could
// have seen, and what growing sizes say of larger ones.
//
// Intervals are of 95 % (Confidence) and two-sided. The same values give the same
// answer.
package stat

import (
	"errors"
	"slices"
)

// Confidence is the level of all intervals.
const Confidence = 0.95

// Alpha is the p-value below which a difference counts as one.
const Alpha = 1 - Confidence

// ErrTooFew is returned for samples that are too small to say anything.
var ErrTooFew = errors.New("too few observations")

// ErrConstant is returned where something has to vary and does not.
var ErrConstant = errors.New("all observations are equal")

func constant(values []float64) bool {
	return len(values) == 0 || slices.Min(values) == slices.Max(values)
}
