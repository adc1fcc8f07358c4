package sqlite_test

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// TestReadersShareMemory: those readers that are used first have most of the cache, Settings
// says how much, and all connections together have no more than the budget.
func TestReadersShareMemory(t *testing.T) {
	ctx := context.Background()
	const readers, atWork, budget = 5, 2, 64 << 20
	d, ok := driver.Lookup("sqlite")
	require.True(t, ok)
	e, err := d.Open(ctx, &url.URL{Scheme: "sqlite", Path: filepath.Join(t.TempDir(), "varve.db")},
		driver.Options{Memory: budget, Readers: readers, Concurrency: atWork}.WithDefaults())
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()

	list, err := e.Settings(ctx)
	require.NoError(t, err)
	said := map[string]int64{}
	for _, s := range list {
		if n, err := strconv.ParseInt(s.Value, 10, 64); err == nil {
			said[s.Name] = n
		}
	}
	cache := func(r driver.Reader) int64 {
		n, err := driver.QueryInt(ctx, r, "PRAGMA cache_size")
		require.NoError(t, err)
		return n
	}
	for range 2 { // once they are idle, the first are used first again
		views, err := e.Snapshots(ctx, readers)
		require.NoError(t, err)
		sum := said["cache_size"] + said["further_reader_cache_size"] // the writer's and the spare's
		for i, v := range views {
			name := "further_reader_cache_size"
			if i < atWork {
				name = "reader_cache_size"
			}
			require.Equal(t, said[name], cache(v), "reader %d", i)
			sum += cache(v)
		}
		require.InDelta(t, -budget/1024, sum, 16) // divided without the rest
		require.NoError(t, driver.CloseReaders(views[atWork:]))
		require.NoError(t, driver.CloseReaders(views[:atWork]))
	}
	require.Greater(t, -said["reader_cache_size"], -3*said["further_reader_cache_size"])
}

// TestSynchronous: each level of durability is SQLite's that keeps its promise.
func TestSynchronous(t *testing.T) {
	d, ok := driver.Lookup("sqlite")
	require.True(t, ok)
	for level, want := range map[driver.Durability]string{driver.Durable: "2", driver.Relaxed: "1", driver.Unsafe: "0"} {
		e, err := d.Open(t.Context(), &url.URL{Scheme: "sqlite", Path: filepath.Join(t.TempDir(), "varve.db")},
			driver.Options{Durability: level}.WithDefaults())
		require.NoError(t, err)
		list, err := e.Settings(t.Context())
		require.NoError(t, errors.Join(err, e.Close()))
		require.Contains(t, list, driver.Setting{Name: "synchronous", Value: want}, "%s", level)
	}
}
