package stat

import (
	"encoding/json"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
	"gonum.org/v1/gonum/stat/combin"
)

// Summary is a median with its interval. That of a sample is of its order
// statistics, which needs 6 observations: with fewer it is unbounded, and Low and
// High are infinite.
type Summary struct {
	Median    float64
	Low, High float64
	N         int
}

// Bounded tells whether there are enough observations for an interval.
func (s Summary) Bounded() bool { return !math.IsInf(s.Low, 0) && !math.IsInf(s.High, 0) }

// MarshalJSON writes null for the ends of an unbounded interval: JSON has no infinity.
func (s Summary) MarshalJSON() ([]byte, error) {
	var low, high *float64
	if s.Bounded() {
		low, high = &s.Low, &s.High
	}
	return json.Marshal(struct {
		Median float64  `json:"median"`
		Low    *float64 `json:"low"`
		High   *float64 `json:"high"`
		N      int      `json:"n"`
	}{s.Median, low, high, s.N})
}

// Spread returns the larger distance of the interval's ends from the median, as
// a part of the median; infinite when it is unbounded or the median is 0.
func (s Summary) Spread() float64 {
	if s.Low == s.High {
		return 0
	}
	return max(s.High-s.Median, s.Median-s.Low) / math.Abs(s.Median)
}

// Median returns the middle of values, NaN for none. It does not change them.
func Median(values []float64) float64 { return median(slices.Sorted(slices.Values(values))) }

func median(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Summarize returns the median of a sample with its interval, as benchstat
// prints it. The sample must not be empty.
func Summarize(values []float64) Summary { return summarize(newSample(values)) }

func newSample(values []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
}

func summarize(s *benchmath.Sample) Summary {
	b := benchmath.AssumeNothing.Summary(s, Confidence)
	return Summary{Median: b.Center, Low: b.Lo, High: b.Hi, N: len(s.Values)}
}

// Comparison is what can be said of two samples.
type Comparison struct {
	Old    Summary `json:"old"`
	New    Summary `json:"new"`
	P      float64 `json:"p"` // of both being from one distribution: Mann-Whitney U, two-sided
	LeastP float64 `json:"-"` // the smallest P that samples of these sizes can have
}

// Compare tests whether two samples, which must not be empty, come from one
// distribution, as benchstat does: by the Mann-Whitney U test, which assumes
// nothing of the distribution.
func Compare(before, after []float64) Comparison {
	a, b := newSample(before), newSample(after)
	// Samples that do not overlap at all are 2 of all the ways to choose one from both.
	ways := combin.LogGeneralizedBinomial(float64(len(before)+len(after)), float64(len(before)))
	return Comparison{Old: summarize(a), New: summarize(b), P: pValue(a, b), LeastP: 2 * math.Exp(-ways)}
}

// pValue orders the samples before the test. benchmath takes the tail from the
// distribution of its first argument, which with equal values in samples of
// different size is not that of the second: the one with the lower ranks has to
// come first.
func pValue(a, b *benchmath.Sample) float64 {
	if above(a.Values, b.Values) < len(a.Values)*len(b.Values) {
		a, b = b, a
	}
	return min(benchmath.AssumeNothing.Compare(a, b).P, 1) // 1 when all values are equal
}

// Change returns by what part of the smaller one two figures differ: 1 for a
// doubling and for a halving, infinite from 0 and across it.
func Change(a, b float64) float64 {
	switch {
	case a == b:
		return 0
	case a*b <= 0:
		return math.Inf(1)
	}
	return math.Abs(a-b) / min(math.Abs(a), math.Abs(b))
}

// FalseDiscovery returns the level of many tests: of those with a p-value not
// above it, no more than the given part is expected to be no difference at all
// (Benjamini and Hochberg). It is also the level that one more test would have
// had to reach, so that where nothing differs it is rate / len(p).
func FalseDiscovery(p []float64, rate float64) float64 {
	sorted := slices.Sorted(slices.Values(p))
	part := rate / float64(len(sorted))
	found := len(sorted)
	for found > 0 && sorted[found-1] > part*float64(found) {
		found--
	}
	return part * float64(min(found+1, len(sorted)))
}
