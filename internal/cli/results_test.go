package cli

import (
	"bytes"
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/lab"
)

// compared makes results of engines with a commit's median for each repeat, and what rank says of
// them.
func compared(t *testing.T, off string, failed error, medians map[string][]float64) (*results, string) {
	t.Helper()
	dir := t.TempDir()
	set, err := lab.OpenSet(dir)
	require.NoError(t, err)
	for engine, values := range medians {
		for i, v := range values {
			r := &lab.Record{Name: "GeneratedBlocks", Keys: lab.Keys{{Name: "engine", Value: engine}}, Count: 1, Metrics: []bench.Metric{{Value: v, Unit: "commit-p50-ms"}}}
			r.Manifest.Set("repeat", strconv.Itoa(i+1))
			r.Manifest.Set("machine-off", off)
			r.Manifest.Set(lab.DigestKey, "7 abc")
			r.Err = failed
			require.NoError(t, set.Add("Q1", engine, "now", r))
		}
	}
	got, err := readResults(dir, "Q1")
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, got.print(&out))
	require.NoError(t, got.rank(&out, got.failure() == nil))
	return got, out.String()
}

// TestRank: an order is told where all repeats show it, and is told to be luck otherwise.
func TestRank(t *testing.T) {
	_, out := compared(t, "", nil, map[string][]float64{"one": {1, 1.1, 1.2}, "two": {1.3, 1.4, 1.5}, "three": {1.45, 1.2, 1.6}})
	require.Contains(t, out, "commits of 100 entities, median in ms: one 1.1 [1–1.2] < two 1.4 [1.3–1.5] ≈ three 1.45 [1.2–1.6]\n")
	require.Contains(t, out, "Every answer was compared with the right one")
	require.NotContains(t, out, "cannot be relied on")
	_, out = compared(t, "", nil, map[string][]float64{"one": {1, 1}, "two": {9, 9}})
	require.Contains(t, out, "one 1 [1–1] ≈ two 9 [9–9]\n", "two repeats are too few")
}

// TestRankOnABusyMachine: the machine is looked at, and its state is said.
func TestRankOnABusyMachine(t *testing.T) {
	_, out := compared(t, "other programs use 50 % of the cores", nil, map[string][]float64{"one": {1, 1, 1}, "two": {2, 2, 2}})
	require.Contains(t, out, "The machine was not at rest: other programs use 50 % of the cores. These ranks cannot be relied on.\n")
}

// TestRankAfterAFailure: nobody says then that answers were right.
func TestRankAfterAFailure(t *testing.T) {
	got, out := compared(t, "", errors.New("the disk is full"), map[string][]float64{"one": {1}})
	require.ErrorContains(t, got.failure(), "the disk is full")
	require.NotContains(t, out, "Every answer")
}

// TestSameDigests: what was given the same holds the same.
func TestSameDigests(t *testing.T) {
	of := func(engine, digest string) *row {
		return &row{name: "RealBlocks", keys: []string{"engine=" + engine, "layout=arkiv"}, digests: []string{digest}}
	}
	require.NoError(t, (&results{rows: []*row{of("one", "7 abc"), of("two", "7 abc")}}).sameDigests())
	require.ErrorIs(t, (&results{rows: []*row{of("one", "7 abc"), of("two", "7 abd")}}).sameDigests(), bench.ErrMismatch)
}
