package experiment

import (
	"iter"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/store"
)

var factors = []string{"entities", "strings", "numbers", "payload_bytes"}

// timed is a record of blocks whose commits take a millisecond for each ten strings,
// and nothing else but noise.
func timed(t *testing.T, blocks iter.Seq2[store.Block, error], n int) *result.Record {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 1))
	r := &result.Record{Table: &result.Table{Columns: sampledColumns}}
	for b, err := range blocks {
		require.NoError(t, err)
		row := observe(&b, 0)
		row[len(row)-1] = row[2]/10 + 5*random.NormFloat64()
		if r.Table.Rows = append(r.Table.Rows, row); len(r.Table.Rows) == n {
			break
		}
	}
	require.Len(t, r.Table.Rows, n)
	return r
}

func figure(t *testing.T, r *result.Record, unit string) float64 {
	t.Helper()
	v, ok := r.Metric(unit)
	require.True(t, ok, unit)
	return v
}

// TestProductionBlocksCannotTellFactorsApart: in the blocks of the base profile
// entities, strings and numbers vary together, so that numbers, which cost nothing
// here, correlate with the time as strings do.
func TestProductionBlocksCannotTellFactorsApart(t *testing.T) {
	source, err := bench.MendozaSource(0.01, 1, 0, 0.5)
	require.NoError(t, err)
	m := mendoza{Dataset: bench.Dataset{Source: source.Bare}}
	r := timed(t, m.Rest(), 1_000)
	require.NoError(t, correlate(r))
	require.Greater(t, figure(t, r, "r-numbers"), 0.9)
	for _, f := range []string{"entities", "strings", "numbers"} {
		require.Greater(t, figure(t, r, "vif-"+f), float64(inflated), f)
		_, known := r.Metric("partial-" + f)
		require.False(t, known, "a partial correlation of %s would say nothing", f)
	}
	require.Contains(t, r.Notes[len(r.Notes)-4], "cannot be told apart")
}

// TestIndependentBlocksTellFactorsApart: each factor is independent of the others, as
// it is counted in the blocks, and what costs nothing is found to cost nothing.
func TestIndependentBlocksTellFactorsApart(t *testing.T) {
	const repeats = 4
	r := timed(t, independent(7, 1, repeats), repeats*81)
	require.NoError(t, explain(r))
	for _, f := range factors {
		require.Less(t, figure(t, r, "vif-"+f), 1.001, f)
	}
	require.Greater(t, figure(t, r, "partial-strings"), 0.9)
	require.InDelta(t, 1, figure(t, r, "beta-strings"), 0.05)
	for _, f := range []string{"entities", "numbers", "payload_bytes"} {
		require.InDelta(t, 0, figure(t, r, "partial-"+f), 0.2, f)
	}
}

// TestIndependentBlocks: every combination of the levels comes, in blocks that follow
// the head and never twice the same entity.
func TestIndependentBlocks(t *testing.T) {
	combinations := map[[4]float64]int{}
	keys := map[store.Key]bool{}
	next := uint64(8)
	for b, err := range independent(7, 1, 2) {
		require.NoError(t, err)
		require.Equal(t, next, b.Number)
		next++
		combinations[[4]float64(observe(&b, time.Second)[1:5])]++
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
