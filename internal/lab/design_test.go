package lab

import (
	"iter"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/store/entity"
)

// TestFactorial: each repetition has every combination once, in a different
// order that the seed decides.
func TestFactorial(t *testing.T) {
	levels := [][]float64{{1, 2, 3}, {10, 20}}
	points := factorial(1, 4, levels...)
	require.Len(t, points, 4*6)
	require.NotEqual(t, points[:6], points[6:12])
	require.ElementsMatch(t, points[:6], points[6:12])
	require.Equal(t, points, factorial(1, 4, levels...))
	require.NotEqual(t, points, factorial(2, 4, levels...))
}

// TestDesignBlocks: in the blocks of the base profile strings and numbers come together, so that no
// regression tells them apart; in the designed ones, which never have the same entity twice, they do
// not.
func TestDesignBlocks(t *testing.T) {
	keys := map[entity.Key]bool{}
	correlated := func(blocks iter.Seq2[entity.Block, error], n int) float64 {
		var strings, numbers []float64
		for b, err := range blocks {
			require.NoError(t, err)
			for i := range b.Ops {
				require.False(t, b.Ops[i].Kind == entity.Create && keys[b.Ops[i].Key])
				keys[b.Ops[i].Key] = true
			}
			row := observe(&b)
			if strings, numbers = append(strings, row[1]/row[0]), append(numbers, row[2]/row[0]); len(strings) == n {
				break
			}
		}
		require.Len(t, strings, n)
		return stat.Correlation(strings, numbers, nil)
	}
	source, err := bench.MendozaSource(0.01, 1, 0, 0.5)
	require.NoError(t, err)
	require.Greater(t, correlated(bench.Dataset{Source: source}.Rest(), 1_000), 0.5)
	designed := designBlocks(bench.GenOptions{Seed: 1}, factorial(1, 1, designLevels...))
	require.InDelta(t, 0, correlated(designed, 81), 1e-9)
	var first []entity.Key
	for range 2 { // the check of commits makes the blocks again
		for b, err := range designed {
			require.NoError(t, err)
			first = append(first, b.Ops[0].Key)
			break
		}
	}
	require.Equal(t, first[0], first[1])
}
