package stat

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// Summary is the median of a sample with the interval of its order statistics,
// which needs 6 observations: with fewer it is unbounded, and Low and High are
// infinite.
type Summary struct {
	Median    float64
	Low, High float64
	N         int
}

// Bounded tells whether the sample is large enough for an interval.
func (s Summary) Bounded() bool { return !math.IsInf(s.Low, 0) && !math.IsInf(s.High, 0) }

// Spread returns the larger distance of the interval's ends from the median, as
// a part of the median; infinite when it is unbounded, NaN around 0.
func (s Summary) Spread() float64 {
	if s.Low == s.High {
		return 0
	}
	return max(s.High-s.Median, s.Median-s.Low) / math.Abs(s.Median)
}

// Summarize returns the median of a sample with its interval, as benchstat
// prints it. The sample must not be empty.
func Summarize(values []float64) Summary {
	return summarize(benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds))
}

func summarize(s *benchmath.Sample) Summary {
	b := benchmath.AssumeNothing.Summary(s, Confidence)
	return Summary{Median: b.Center, Low: b.Lo, High: b.Hi, N: len(s.Values)}
}

// Comparison is what can be said of two samples.
type Comparison struct {
	Old, New Summary
	Delta    float64 // of the medians: (new - old) / |old|; NaN when only the old one is 0
	P        float64 // of both being from one distribution: Mann-Whitney U, two-sided
	Alpha    float64

	// Need is how many observations a side would be enough to tell any
	// difference; 0 when there are enough.
	Need int
}

// Significant tells whether the samples differ, whatever by how much.
func (c Comparison) Significant() bool { return c.P < c.Alpha }

// Warning says what keeps the comparison from telling anything; "" for nothing.
func (c Comparison) Warning() string {
	if c.Need == 0 {
		return ""
	}
	return fmt.Sprintf("need ≥ %d samples to detect a difference at alpha level %v", c.Need, c.Alpha)
}

// Compare tests whether two samples, which must not be empty, come from one
// distribution, as benchstat does: by the Mann-Whitney U test, which assumes
// nothing of the distribution. Alpha is the p-value below which they differ; 0
// means Alpha.
func Compare(before, after []float64, alpha float64) Comparison {
	if alpha == 0 {
		alpha = Alpha
	}
	thresholds := benchmath.DefaultThresholds
	thresholds.CompareAlpha = alpha
	a := benchmath.NewSample(slices.Clone(before), &thresholds)
	b := benchmath.NewSample(slices.Clone(after), &thresholds)
	c := Comparison{Old: summarize(a), New: summarize(b), Alpha: alpha}
	c.Delta = delta(c.Old.Median, c.New.Median)
	if higher(before, after) {
		a, b = b, a
	}
	c.P = min(benchmath.AssumeNothing.Compare(a, b).P, 1) // 1 when all values are equal
	if smallestP(len(before), len(after)) >= alpha {
		c.Need = NeedSamples(alpha)
	}
	return c
}

// higher tells whether the first sample has the higher ranks. benchmath takes
// the tail of the test from the distribution of its first argument, which with
// equal values in samples of different size is not that of the second: the one
// with the lower ranks has to come first.
func higher(a, b []float64) bool {
	ranks := Ranks(slices.Concat(a, b))
	var sum float64
	for _, r := range ranks[:len(a)] {
		sum += r
	}
	return sum/float64(len(a)) > float64(len(ranks)+1)/2
}

// delta returns the relative change from one median to another.
func delta(from, to float64) float64 {
	switch {
	case from == to:
		return 0
	case from == 0:
		return math.NaN()
	}
	return (to - from) / math.Abs(from)
}

// NeedSamples returns how many observations a side the test needs before it can
// give a p-value below alpha: 4 for 0.05.
func NeedSamples(alpha float64) int {
	for n := 2; ; n++ {
		if smallestP(n, n) < alpha || n > 1000 {
			return n
		}
	}
}

// smallestP returns the p-value of samples that do not overlap at all: 2 of all
// the ways to choose one sample from both.
func smallestP(n1, n2 int) float64 {
	total, _ := math.Lgamma(float64(n1 + n2 + 1))
	first, _ := math.Lgamma(float64(n1 + 1))
	second, _ := math.Lgamma(float64(n2 + 1))
	return 2 * math.Exp(first+second-total)
}
