package stat_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/bench/stat"
)

func TestMedian(t *testing.T) {
	values := []float64{4, 1, 3, 2}
	require.Equal(t, 2.5, stat.Median(values))
	require.Equal(t, 3.0, stat.Median([]float64{5, 3, 1}))
	require.Equal(t, []float64{4, 1, 3, 2}, values)
	require.True(t, math.IsNaN(stat.Median(nil)))
}

// JSON has no infinity: without an interval there is none.
func TestSummaryJSON(t *testing.T) {
	for want, values := range map[string][]float64{
		`{"median":2,"low":null,"high":null,"n":3}`: {1, 2, 3},
		`{"median":2,"low":2,"high":2,"n":6}`:       {2, 2, 2, 2, 2, 2},
	} {
		text, err := json.Marshal(stat.Summarize(values))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
}

// R: wilcox.test of samples that do not overlap has the smallest p-value there
// is, 2 of all ways to choose.
func TestCompare(t *testing.T) {
	before, after := []float64{10, 11, 12, 13, 14}, []float64{20, 21, 22, 23, 24}
	c := stat.Compare(before, after)
	require.InDelta(t, 2.0/252, c.P, 1e-12)
	require.Equal(t, 12.0, c.Old.Median)
	require.InDelta(t, c.P, c.LeastP, 1e-12)
	require.False(t, c.Old.Bounded()) // 5 observations are one too few

	c = stat.Compare(before[:3], after[:3])
	require.InDelta(t, 0.1, c.P, 1e-12)
	require.InDelta(t, c.P, c.LeastP, 1e-12)

	c = stat.Compare(before[:1], append(slices.Clone(after), 25, 26, 27))
	require.InDelta(t, 2.0/9, c.LeastP, 1e-12) // 1 against 8

	c = stat.Compare([]float64{5, 5, 5, 5}, []float64{5, 5, 5, 5})
	require.Equal(t, 1.0, c.P)
}

func TestSummarize(t *testing.T) {
	s := stat.Summarize([]float64{1, 2, 3, 4, 5, 6})
	require.Equal(t, stat.Summary{Median: 3.5, Low: 1, High: 6, N: 6}, s)
	require.True(t, s.Bounded())
	require.InDelta(t, 2.5/3.5, s.Spread(), 1e-12)
	require.Zero(t, stat.Summarize([]float64{2, 2, 2, 2, 2, 2}).Spread())
}

func TestChange(t *testing.T) {
	require.Equal(t, 1.0, stat.Change(2, 4))
	require.Equal(t, 1.0, stat.Change(4, 2))
	require.Equal(t, 0.5, stat.Change(-2, -3))
	require.Zero(t, stat.Change(0, 0))
	require.True(t, math.IsInf(stat.Change(0, 1), 1))
	require.True(t, math.IsInf(stat.Change(-1, 1), 1))
}

// Benjamini and Hochberg 1995, section 3.2: of these 15 tests 4 are found at 0.05,
// where Bonferroni finds 3.
func TestFalseDiscovery(t *testing.T) {
	p := []float64{0.3240, 0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.4262, 0.5719, 0.6528, 0.7590, 1}
	require.InDelta(t, 0.05*5/15, stat.FalseDiscovery(p, 0.05), 1e-12)
	require.InDelta(t, 0.05/3, stat.FalseDiscovery([]float64{1, 0.5, 0.9}, 0.05), 1e-12)
	require.InDelta(t, 0.05, stat.FalseDiscovery([]float64{0.01, 0.04}, 0.05), 1e-12)
}

func TestDoubling(t *testing.T) {
	steady := []float64{10, 10.1, 9.9}
	d := stat.NewDoubling(0.05)
	require.Zero(t, d.Seen(steady, 0, 3, 3)) // 0.1 at best
	require.Equal(t, 1.0, d.Seen(steady, 0, 4, 4))
	require.Equal(t, 1.0, d.Seen(steady, 0, 3, 5)) // 2 of 56
	require.Equal(t, 4, d.Need(steady, 0))
	require.Equal(t, 8, stat.NewDoubling(0.05/200).Need(steady, 0))
	require.Zero(t, d.Seen(steady, 1.2, 4, 4)) // noise that hides a doubling
	require.Equal(t, 5, d.Need(steady, 1.2))   // shrinks with more of them
	require.Equal(t, 1.0, d.Seen([]float64{0, 0, 0, 7}, 0, 4, 4))

	wide := []float64{4, 6, 8, 10, 12, 14, 20, 30}
	need := d.Need(wide, 0)
	require.GreaterOrEqual(t, d.Seen(wide, 0, need, need), stat.Likely)
	require.Less(t, d.Seen(wide, 0, need-1, need-1), stat.Likely)
	require.Zero(t, d.Need([]float64{1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}, 0))
}

// The test is of ranks and the same from either side.
func TestCompareInvariance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := sample(t, "old", rapid.IntRange(1, 12).Draw(t, "n"))
		after := sample(t, "new", rapid.IntRange(1, 12).Draw(t, "m"))
		scaled := func(values []float64) []float64 {
			list := make([]float64, len(values))
			for i, v := range values {
				list[len(values)-1-i] = 8 * v // exactly, and in another order
			}
			return list
		}
		a, b := stat.Compare(before, after), stat.Compare(scaled(before), scaled(after))
		require.InDelta(t, a.P, b.P, 1e-12)
		require.LessOrEqual(t, a.P, 1.0)
		require.InDelta(t, a.P, stat.Compare(after, before).P, 1e-9)
		require.Equal(t, a.LeastP, b.LeastP)
		require.LessOrEqual(t, min(a.LeastP, 1), a.P+1e-12)
	})
}

// The p-value is twice the part of all ways to deal the values into two samples
// in which the lower one ranks as low, equal values included.
func TestCompareByCounting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.Map(rapid.IntRange(1, 5), func(n int) float64 { return float64(n) })
		before := rapid.SliceOfN(few, 1, 5).Draw(t, "old")
		after := rapid.SliceOfN(few, 1, 5).Draw(t, "new")
		values := slices.Concat(before, after)
		ranks := make([]float64, len(values)) // equal values share the mean of theirs
		for i, v := range values {
			ranks[i] = 0.5
			for _, other := range values {
				if other < v {
					ranks[i]++
				} else if other == v {
					ranks[i] += 0.5
				}
			}
		}
		got, mean := sum(ranks[:len(before)]), sum(ranks)*float64(len(before))/float64(len(ranks))
		var as, all float64
		for set := range 1 << len(ranks) {
			dealt := 0.0
			n := 0
			for i, r := range ranks {
				if set&(1<<i) != 0 {
					dealt, n = dealt+r, n+1
				}
			}
			if n != len(before) {
				continue
			}
			all++
			if (got-mean)*(dealt-got) >= 0 {
				as++
			}
		}
		want := min(2*as/all, 1)
		if got == mean {
			want = 1
		}
		require.InDelta(t, want, stat.Compare(before, after).P, 1e-9)
	})
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

func TestPowerLaw(t *testing.T) {
	p, err := stat.FitPowerLaw([]float64{1, 2, 4, 8}, []float64{3, 6.3, 11.4, 24.6})
	require.NoError(t, err)
	require.InDelta(t, 1, p.Exponent, 0.05)
	at := p.At(16)
	require.InDelta(t, 48, at.Median, 2)
	require.True(t, at.Low < at.Median && at.Median < at.High)
	require.Greater(t, p.At(1000).High/p.At(1000).Low, at.High/at.Low) // less is known farther out
	// By the textbook's formula, with t = 4.3026527 of 2 degrees of freedom.
	require.InEpsilon(t, 33.60415105, at.Low, 1e-9)
	require.InEpsilon(t, 68.43225995, at.High, 1e-9)

	exact, err := stat.FitPowerLaw([]float64{1, 10, 100}, []float64{2, 2 * math.Sqrt(10), 20})
	require.NoError(t, err)
	require.InDelta(t, 0.5, exact.Exponent, 1e-9)
	require.InEpsilon(t, 2000.0, exact.At(1e6).Median, 1e-9)

	_, err = stat.FitPowerLaw([]float64{1, 2}, []float64{1, 2})
	require.ErrorIs(t, err, stat.ErrTooFew)
	_, err = stat.FitPowerLaw([]float64{2, 2, 2}, []float64{1, 2, 3})
	require.ErrorIs(t, err, stat.ErrConstant)
	_, err = stat.FitPowerLaw([]float64{1, 2, 3}, []float64{1, 0, 3})
	require.ErrorContains(t, err, "positive")
}

func TestFactorial(t *testing.T) {
	levels := [][]float64{{1, 2, 3}, {10, 20}, {100, 200}}
	points := stat.Factorial(4, 3, levels...)
	require.Len(t, points, 36)
	require.Equal(t, points, stat.Factorial(4, 3, levels...))
	require.NotEqual(t, points, stat.Factorial(5, 3, levels...))
	for repeat := range 3 {
		seen := map[[3]float64]bool{}
		for _, p := range points[repeat*12 : repeat*12+12] {
			seen[[3]float64(p)] = true
		}
		require.Len(t, seen, 12)
	}
	require.NotEqual(t, points[:12], points[12:24])
	points[0][0] = 99
	for _, p := range points[1:] {
		require.NotEqual(t, 99.0, p[0])
	}
}

// The interval of an exponent is that of the slope of a line: with the residuals ±d, ∓d, …
// of four points it can be worked out by hand.
func TestPowerLawInterval(t *testing.T) {
	law, err := stat.FitPowerLaw([]float64{1, math.E, math.Exp(2), math.Exp(3)}, []float64{math.Exp(0.1), math.Exp(-0.1), math.Exp(-0.1), math.Exp(0.1)})
	require.NoError(t, err)
	low, high := law.Interval()
	require.InDelta(t, 0, law.Exponent, 1e-12)
	half := 4.3027 * math.Sqrt(0.04/2) / math.Sqrt(5) // Student's t of 2 degrees, the residuals, the squares of x
	require.InDelta(t, half, high, 1e-4)
	require.InDelta(t, -half, low, 1e-4)
}
