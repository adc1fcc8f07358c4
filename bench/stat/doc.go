// Package stat says how sure one can be of what was measured: correlations and
// regressions with intervals, the comparison of two samples as benchstat makes
// it, what remains of many such comparisons and what they could have seen, power
// laws over growing sizes, and run orders of designed experiments.
//
// Intervals are of 95 % (Confidence) and two-sided. Nothing here assumes that
// times are normally distributed, but for regressions, where large samples and
// robust standard errors stand in for it. The same values give the same answer.
// Doubts are data: results have Warnings for readers.
package stat

import "errors"

// Confidence is the level of all intervals.
const Confidence = 0.95

// Alpha is the p-value below which a difference counts as one.
const Alpha = 1 - Confidence

// ErrTooFew is returned for samples that are too small to say anything.
var ErrTooFew = errors.New("too few observations")

// ErrConstant is returned where something has to vary and does not.
var ErrConstant = errors.New("all observations are equal")
