package lab

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
)

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
