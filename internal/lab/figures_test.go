package lab

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
)

// TestSteady: a phase is steady by its first fifth and its last one. The second in
// which it ended is cut short, and does not count.
func TestSteady(t *testing.T) {
	for name, c := range map[string]struct {
		counts []int64
		rate   float64
		known  bool
	}{
		"as many":               {[]int64{8, 8, 1, 1, 1, 1, 1, 1, 8, 8, 3}, 1, true},
		"half as many":          {[]int64{8, 8, 1, 1, 1, 1, 1, 1, 4, 4, 3}, 0.5, true},
		"none in the end":       {[]int64{8, 8, 1, 1, 1, 1, 1, 1, 0, 0, 3}, 0, true},
		"none in the beginning": {[]int64{0, 0, 1, 1, 1, 1, 1, 1, 8, 8, 3}, 0, false},
		"too short":             {[]int64{8, 8, 8, 8, 8, 8, 8, 8, 8}, 0, false},
	} {
		seconds := make([]latency.Second, len(c.counts))
		for i, n := range c.counts {
			seconds[i].Count = n
		}
		rate, known := steady(seconds)
		require.Equal(t, c.known, known, name)
		if known {
			require.InDelta(t, c.rate, rate, 1e-9, name)
		}
	}
}

// A division by zero is not written, and a set with one is refused by its line.
func TestOnlyNumbers(t *testing.T) {
	dir := t.TempDir()
	set, err := OpenSet(dir)
	require.NoError(t, err)
	r := &Record{Name: "Commit", Keys: Keys{{"engine", "sqlite"}}, Metrics: []bench.Metric{{Value: math.NaN(), Unit: "B/ent"}, {Value: 0, Unit: "rows/s"}, {Value: math.Inf(1), Unit: "sync/s"}}}
	require.NoError(t, set.Add("A5", "sqlite", "now", r))
	path := filepath.Join(dir, "A5-sqlite-now.txt")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "BenchmarkCommit/engine=sqlite 1 0 rows/s\n")
	require.NoError(t, os.WriteFile(path, append(text, "BenchmarkCommit/engine=sqlite 1 NaN rows/s\n"...), 0o600))
	_, err = OpenSet(dir)
	require.ErrorContains(t, err, "BenchmarkCommit/engine=sqlite: NaN rows/s is not a finite number")
}
