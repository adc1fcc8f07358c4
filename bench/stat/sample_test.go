package stat_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/stat"
)

func TestMedian(t *testing.T) {
	values := []float64{4, 1, 3, 2}
	require.Equal(t, 2.5, stat.Median(values))
	require.Equal(t, 3.0, stat.Median([]float64{5, 3, 1}))
	require.Equal(t, []float64{4, 1, 3, 2}, values)
	require.True(t, math.IsNaN(stat.Median(nil)))
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
