package lab

import (
	"iter"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/store/entity"
)

// TestFactorial: each repetition has every combination once, in an order of its own, which the
// seed decides.
func TestFactorial(t *testing.T) {
	levels := [][]float64{{1, 2, 3}, {10, 20}}
	points := factorial(1, 4, levels...)
	require.Len(t, points, 4*6)
	require.NotEqual(t, points[:6], points[6:12])
	require.ElementsMatch(t, points[:6], points[6:12])
	require.Equal(t, points, factorial(1, 4, levels...))
	require.NotEqual(t, points, factorial(2, 4, levels...))
}

// TestFactorsAreIndependent: in the blocks of the base profile strings and numbers come
// together, so that no regression tells them apart; in A8's own blocks they do not.
func TestFactorsAreIndependent(t *testing.T) {
	columns := func(blocks iter.Seq2[entity.Block, error], n int) (strings, numbers []float64) {
		for b, err := range blocks {
			require.NoError(t, err)
			row := observe(0, &b)
			if strings, numbers = append(strings, row[1]), append(numbers, row[2]); len(strings) == n {
				break
			}
		}
		require.Len(t, strings, n)
		return strings, numbers
	}
	source, err := bench.MendozaSource(0.01, 1, 0, 0.5)
	require.NoError(t, err)
	m := bench.Dataset{Source: source}
	strings, numbers := columns(m.Rest(), 1_000)
	require.Greater(t, stat.Correlation(strings, numbers, nil), 0.9)
	strings, numbers = columns(independent(7, 1, 2), 2*81)
	require.InDelta(t, 0, stat.Correlation(strings, numbers, nil), 1e-9)
}

// TestIndependentBlocks: every combination of the levels comes, in blocks that follow
// the head and never twice the same entity.
func TestIndependentBlocks(t *testing.T) {
	combinations := map[[4]float64]int{}
	keys := map[entity.Key]bool{}
	next := uint64(8)
	for b, err := range independent(7, 1, 2) {
		require.NoError(t, err)
		require.Equal(t, next, b.Number)
		next++
		combinations[[4]float64(observe(0, &b))]++
		for i := range b.Ops {
			require.False(t, keys[b.Ops[i].Key])
			keys[b.Ops[i].Key] = true
		}
	}
	require.Len(t, combinations, 81)
	for c, n := range combinations {
		require.Equal(t, 2, n, "%v", c)
	}
}
