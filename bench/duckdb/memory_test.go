package duckdb_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/store"
)

// A data set is built with the memory that it is used with: with the engine's default, indexes
// of a large one do not fit, whatever --memory gives.
func TestDatasetIsBuiltWithTheMemory(t *testing.T) {
	cache, err := bench.OpenCache(t.TempDir())
	require.NoError(t, err)
	d := bench.Dataset{Engine: bench.Engine{Name: "duckdb"}, Layout: "compact", Profile: bench.Minimal, Gen: bench.GenOptions{Entities: 20, PerBlock: 20}}
	_, err = cache.OpenCopy(t.Context(), d, &store.Options{Memory: 1 << 20})
	require.ErrorContains(t, err, "needs at least 64 MiB")
	built, err := filepath.Glob(filepath.Join(cache.Root(), "*", "ready.json"))
	require.NoError(t, err)
	require.Empty(t, built)
}
