package stat_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/bench/stat"
)

// R: cor.test(mtcars$wt, mtcars$mpg), and with method = "spearman".
func TestCorrelationOfCars(t *testing.T) {
	c, err := stat.Pearson(weight, mpg)
	require.NoError(t, err)
	require.InDelta(t, -0.8676594, c.R, 1e-7)
	require.InDelta(t, -0.9338264, c.Low, 1e-7)
	require.InDelta(t, -0.7440872, c.High, 1e-7)
	require.InEpsilon(t, 1.294e-10, c.P, 1e-3)
	require.Equal(t, 32, c.N)

	s, err := stat.Spearman(weight, mpg)
	require.NoError(t, err)
	require.InDelta(t, -0.886422, s.R, 1e-6)
	// Bonett and Wright by hand: the interval of z is wider by √(1+r²/2).
	z, half := math.Atanh(s.R), 1.959964*math.Sqrt((1+s.R*s.R/2)/29)
	require.InDelta(t, math.Tanh(z-half), s.Low, 1e-6)
	require.InDelta(t, math.Tanh(z+half), s.High, 1e-6)
}

func TestRanksShareTies(t *testing.T) {
	require.Equal(t, []float64{4, 1.5, 3, 1.5}, stat.Ranks([]float64{9, 2, 5, 2}))
	require.Empty(t, stat.Ranks(nil))
}

func TestCorrelationErrors(t *testing.T) {
	_, err := stat.Pearson([]float64{1, 2, 3}, []float64{1, 2, 3})
	require.ErrorIs(t, err, stat.ErrTooFew)
	_, err = stat.Spearman([]float64{1, 1, 1, 1}, []float64{1, 2, 3, 4})
	require.ErrorIs(t, err, stat.ErrConstant)
	_, err = stat.Pearson([]float64{1, 2, 3, 4}, []float64{1, 2})
	require.ErrorContains(t, err, "4 values against 2")
}

func TestPerfectCorrelation(t *testing.T) {
	x := []float64{1, 2, 4, 8, 16}
	c, err := stat.Pearson(x, []float64{-3, -6, -12, -24, -48})
	require.NoError(t, err)
	require.InDelta(t, -1, c.R, 1e-12)
	require.InDelta(t, 0, c.P, 1e-9)
	s, err := stat.Spearman(x, []float64{1, 10, 11, 12, 1000})
	require.NoError(t, err)
	require.Equal(t, stat.Correlation{R: 1, Low: 1, High: 1, N: 5}, s)
}

// sample draws n values that are apart from each other.
func sample(t *rapid.T, name string, n int) []float64 {
	return rapid.SliceOfNDistinct(rapid.Float64Range(0.01, 1000), n, n, rapid.ID[float64]).Draw(t, name)
}

// Neither the order of pairs nor the unit of a side matters, and a rank
// correlation does not see any growing function either.
func TestCorrelationInvariance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(4, 40).Draw(t, "n")
		x, y := sample(t, "x", n), sample(t, "y", n)
		order := rapid.Permutation(indexes(n)).Draw(t, "order")
		scale := rapid.Float64Range(0.1, 100).Draw(t, "scale")
		px, py, grown := make([]float64, n), make([]float64, n), make([]float64, n)
		for to, from := range order {
			px[to], py[to], grown[to] = scale*x[from]+3, y[from], math.Sqrt(x[from])
		}
		a, err := stat.Pearson(x, y)
		require.NoError(t, err)
		b, err := stat.Pearson(px, py)
		require.NoError(t, err)
		require.InDelta(t, a.R, b.R, 1e-6)
		require.True(t, a.Low <= a.R && a.R <= a.High, "%+v", a)
		require.True(t, a.Low >= -1 && a.High <= 1 && a.P >= 0 && a.P <= 1, "%+v", a)

		s, err := stat.Spearman(x, y)
		require.NoError(t, err)
		g, err := stat.Spearman(grown, py)
		require.NoError(t, err)
		require.InDelta(t, s.R, g.R, 1e-9)
	})
}

func indexes(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
