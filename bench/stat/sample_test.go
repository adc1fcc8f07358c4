package stat_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/bench/stat"
)

func TestQuantile(t *testing.T) {
	values := []float64{4, 1, 3, 2}
	require.Equal(t, 2.5, stat.Median(values))
	require.Equal(t, 1.75, stat.Quantile(values, 0.25)) // R: quantile(1:4, .25)
	require.Equal(t, 1.0, stat.Quantile(values, 0))
	require.Equal(t, 4.0, stat.Quantile(values, 1))
	require.Equal(t, []float64{4, 1, 3, 2}, values)
	require.True(t, math.IsNaN(stat.Median(nil)))
}

func TestGeoMean(t *testing.T) {
	require.InDelta(t, 4, stat.GeoMean([]float64{2, 8}), 1e-12)
	require.True(t, math.IsNaN(stat.GeoMean([]float64{2, 0})))
	require.True(t, math.IsNaN(stat.GeoMean(nil)))
}

func TestBootstrap(t *testing.T) {
	a, err := stat.MedianInterval(1, mpg)
	require.NoError(t, err)
	require.Equal(t, stat.Median(mpg), a.Value)
	require.True(t, a.Low < a.Value && a.Value < a.High, "%+v", a)
	again, err := stat.MedianInterval(1, mpg)
	require.NoError(t, err)
	require.Equal(t, a, again)

	_, err = stat.MedianInterval(1, []float64{3})
	require.ErrorIs(t, err, stat.ErrTooFew)
}

// The interval of a mean by bootstrap is that of its standard error, nearly.
func TestBootstrapMean(t *testing.T) {
	mean := func(values []float64) (m float64) {
		for _, v := range values {
			m += v / float64(len(values))
		}
		return m
	}
	e, err := stat.Bootstrap(5, mpg, mean)
	require.NoError(t, err)
	m, squares := mean(mpg), 0.0
	for _, v := range mpg {
		squares += (v - m) * (v - m)
	}
	half := 1.96 * math.Sqrt(squares) / float64(len(mpg))
	require.InDelta(t, m-half, e.Low, 0.1*half)
	require.InDelta(t, m+half, e.High, 0.1*half)
}

// Nine in ten intervals of 95 % hold the true median, at least. Draws are fixed
// by seeds, so the test does not depend on luck.
func TestMedianIntervalCovers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const runs = 200
	covered := 0
	for run := range runs {
		values := make([]float64, 60)
		for i := range values {
			values[i] = random.ExpFloat64()
		}
		e, err := stat.MedianInterval(uint64(run), values)
		require.NoError(t, err)
		if e.Low <= math.Ln2 && math.Ln2 <= e.High {
			covered++
		}
	}
	require.Greater(t, covered, runs*9/10)
	require.Less(t, covered, runs)
}

func TestRatioInterval(t *testing.T) {
	double := make([]float64, len(mpg))
	for i, v := range mpg {
		double[i] = 2 * v
	}
	e, err := stat.RatioInterval(9, double, mpg)
	require.NoError(t, err)
	require.Equal(t, 2.0, e.Value)
	require.True(t, 1 < e.Low && e.Low < 2 && 2 < e.High, "%+v", e)
	_, err = stat.RatioInterval(9, mpg, []float64{0, 0, 0})
	require.ErrorIs(t, err, stat.ErrConstant)
}

// R: wilcox.test of samples that do not overlap has the smallest p-value there
// is, 2 of all ways to choose.
func TestCompare(t *testing.T) {
	before, after := []float64{10, 11, 12, 13, 14}, []float64{20, 21, 22, 23, 24}
	c := stat.Compare(before, after, 0)
	require.InDelta(t, 2.0/252, c.P, 1e-12)
	require.True(t, c.Significant())
	require.Equal(t, 12.0, c.Old.Median)
	require.InDelta(t, 10.0/12, c.Delta, 1e-12)
	require.Zero(t, c.Need)
	require.Empty(t, c.Warning())
	require.False(t, c.Old.Bounded()) // 5 observations are one too few

	c = stat.Compare(before[:3], after[:3], 0)
	require.False(t, c.Significant())
	require.InDelta(t, 0.1, c.P, 1e-12)
	require.Equal(t, "need ≥ 4 samples to detect a difference at alpha level 0.05", c.Warning())

	c = stat.Compare(before[:1], append(slices.Clone(after), 25, 26, 27), 0)
	require.Equal(t, 4, c.Need) // 1 against 8 can reach 2/9 at best

	c = stat.Compare([]float64{5, 5, 5, 5}, []float64{5, 5, 5, 5}, 0.05)
	require.Equal(t, 1.0, c.P)
	require.Zero(t, c.Delta)

	require.True(t, math.IsNaN(stat.Compare([]float64{0}, []float64{1}, 0).Delta))
}

func TestSummarize(t *testing.T) {
	s := stat.Summarize([]float64{1, 2, 3, 4, 5, 6})
	require.Equal(t, stat.Summary{Median: 3.5, Low: 1, High: 6, N: 6}, s)
	require.True(t, s.Bounded())
	require.InDelta(t, 2.5/3.5, s.Spread(), 1e-12)
	require.Zero(t, stat.Summarize([]float64{2, 2, 2, 2, 2, 2}).Spread())
}

func TestNeedSamples(t *testing.T) {
	for alpha, want := range map[float64]int{0.5: 2, 0.11: 3, 0.05: 4, 0.01: 5, 0.001: 7} {
		require.Equal(t, want, stat.NeedSamples(alpha), "%v", alpha)
	}
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
		a, b := stat.Compare(before, after, 0), stat.Compare(scaled(before), scaled(after), 0)
		require.InDelta(t, a.P, b.P, 1e-12)
		require.LessOrEqual(t, a.P, 1.0)
		require.InDelta(t, a.Delta, b.Delta, 1e-9)
		require.InDelta(t, a.P, stat.Compare(after, before, 0).P, 1e-9)
		require.Equal(t, a.Need, b.Need)
	})
}

// The p-value is twice the part of all ways to deal the values into two samples
// in which the lower one ranks as low, equal values included.
func TestCompareByCounting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.Map(rapid.IntRange(1, 5), func(n int) float64 { return float64(n) })
		before := rapid.SliceOfN(few, 1, 5).Draw(t, "old")
		after := rapid.SliceOfN(few, 1, 5).Draw(t, "new")
		ranks := stat.Ranks(slices.Concat(before, after))
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
		require.InDelta(t, want, stat.Compare(before, after, 0).P, 1e-9)
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
	require.True(t, p.Low < 1 && 1 < p.High, "%+v", p)
	require.InDelta(t, 3, p.Factor, 0.1)
	at := p.At(16)
	require.InDelta(t, 48, at.Value, 2)
	require.True(t, at.Low < at.Value && at.Value < at.High)
	require.Greater(t, p.At(1000).High/p.At(1000).Low, at.High/at.Low) // less is known farther out

	exact, err := stat.FitPowerLaw([]float64{1, 10, 100}, []float64{2, 2 * math.Sqrt(10), 20})
	require.NoError(t, err)
	require.InDelta(t, 0.5, exact.Exponent, 1e-9)
	require.InDelta(t, 1, exact.R2, 1e-9)

	_, err = stat.FitPowerLaw([]float64{1, 2}, []float64{1, 2})
	require.ErrorIs(t, err, stat.ErrTooFew)
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
