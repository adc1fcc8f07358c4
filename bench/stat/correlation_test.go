package stat_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/bench/stat"
)

// R: cor.test(mtcars$wt, mtcars$mpg).
func TestCorrelationOfCars(t *testing.T) {
	c, err := stat.Pearson(weight, mpg)
	require.NoError(t, err)
	require.InDelta(t, -0.8676594, c.R, 1e-7)
	require.InDelta(t, -0.9338264, c.Low, 1e-7)
	require.InDelta(t, -0.7440872, c.High, 1e-7)
}

func TestCorrelationErrors(t *testing.T) {
	_, err := stat.Pearson([]float64{1, 2, 3}, []float64{1, 2, 3})
	require.ErrorIs(t, err, stat.ErrTooFew)
	_, err = stat.Pearson([]float64{1, 1, 1, 1}, []float64{1, 2, 3, 4})
	require.ErrorIs(t, err, stat.ErrConstant)
}

func TestPerfectCorrelation(t *testing.T) {
	x := []float64{1, 2, 4, 8, 16}
	c, err := stat.Pearson(x, []float64{-3, -6, -12, -24, -48})
	require.NoError(t, err)
	require.InDelta(t, -1, c.R, 1e-12)
	require.InDelta(t, -1, c.High, 1e-9)
}

// sample draws n values that are apart from each other.
func sample(t *rapid.T, name string, n int) []float64 {
	return rapid.SliceOfNDistinct(rapid.Float64Range(0.01, 1000), n, n, rapid.ID[float64]).Draw(t, name)
}

// Neither the order of pairs nor the unit of a side matters.
func TestCorrelationInvariance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(4, 40).Draw(t, "n")
		x, y := sample(t, "x", n), sample(t, "y", n)
		order := rapid.Permutation(indexes(n)).Draw(t, "order")
		scale := rapid.Float64Range(0.1, 100).Draw(t, "scale")
		px, py := make([]float64, n), make([]float64, n)
		for to, from := range order {
			px[to], py[to] = scale*x[from]+3, y[from]
		}
		a, err := stat.Pearson(x, y)
		require.NoError(t, err)
		b, err := stat.Pearson(px, py)
		require.NoError(t, err)
		require.InDelta(t, a.R, b.R, 1e-6)
		require.True(t, a.Low <= a.R && a.R <= a.High, "%+v", a)
		require.True(t, a.Low >= -1 && a.High <= 1, "%+v", a)
	})
}

func indexes(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
