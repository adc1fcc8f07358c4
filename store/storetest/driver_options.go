package storetest

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// runOptions tests settings, statistics and refused parameters.
func runOptions(t *testing.T, h Harness) {
	t.Run("durability", func(t *testing.T) {
		for _, d := range []driver.Durability{driver.Durable, driver.Relaxed, driver.Unsafe} {
			t.Run(string(d), func(t *testing.T) { testDurability(t, h, d) })
		}
	})
	parts[Harness]{
		{"Go wins over the URL", testGoWins},
		{"stats", testStats},
		{"refused", testRefusedOptions},
	}.run(t, h)
}

// testDurability: a declared durability level is accepted and read back. Any
// other is refused.
func testDurability(t *testing.T, h Harness, d driver.Durability) {
	ctx := context.Background()
	url := withParams(t, h.NewURL(t), "durability", string(d))
	if !slices.Contains(linkedDriver(t, url).Capabilities.Durabilities, d) {
		refuseOpen(t, url, nil, driver.ErrUnsupported, "")
		return
	}
	db := openDB(t, url)
	defer func() { require.NoError(t, db.Close()) }()
	settings := must(db.Engine().Settings(ctx))(t)
	require.Contains(t, settings, driver.Setting{Name: "durability", Value: string(d)})
	seen := map[string]bool{}
	for _, s := range settings {
		require.NotEmpty(t, s.Name)
		require.False(t, seen[s.Name], "%s is there twice", s.Name)
		seen[s.Name] = true
	}
	inTx(t, db.Engine(), func(driver.Tx) {})
	again := must(db.Engine().Settings(ctx))(t)
	require.Equal(t, settings, again, "same values in the same order")
}

// testGoWins: an option in Go overrides the URL, even a level in the URL that
// the engine would refuse.
func testGoWins(t *testing.T, h Harness) {
	ctx := context.Background()
	url := withParams(t, h.NewURL(t), "durability", "relaxed", "memory", "96MiB", "readers", "3")
	db := h.open(t, url, &store.Options{Durability: driver.Durable, Memory: 128 << 20, Readers: 1})
	settings := must(db.Engine().Settings(ctx))(t)
	require.Contains(t, settings, driver.Setting{Name: "durability", Value: string(driver.Durable)})
	snapshot(t, db.Engine())
	_, err := db.Engine().Snapshot(briefly(t))
	require.ErrorIs(t, err, context.DeadlineExceeded, "one reader at a time")
}

// testStats: engines with files report sizes, which grow.
func testStats(t *testing.T, h Harness) {
	e := h.open(t, h.NewURL(t), nil).Engine()
	newTable(t, e, true, itemsTable("items"), itemRows(0, 5000)...)
	if _, err := driver.Checkpoint(context.Background(), e, true); !errors.Is(err, driver.ErrUnsupported) {
		require.NoError(t, err)
	}
	stats := must(e.Stats(context.Background()))(t)
	require.NotNil(t, stats.DatabaseBytes, "every engine can tell the size of its database")
	require.Greater(t, *stats.DatabaseBytes, int64(20_000))
	if e.Capabilities().WALCheckpoint {
		require.NotNil(t, stats.WALBytes)
	}
	for name, n := range map[string]*int64{
		"wal_bytes": stats.WALBytes, "checkpoints": stats.Checkpoints, "cache_hits": stats.CacheHits, "cache_misses": stats.CacheMisses,
	} {
		require.True(t, n == nil || *n >= 0, name)
	}
}

// testRefusedOptions: an invalid option is refused with ErrInvalid or
// ErrUnsupported. None is ignored.
func testRefusedOptions(t *testing.T, h Harness) {
	url := h.NewURL(t)
	for _, params := range [][2]string{
		{"no_such_parameter", "1"}, {"durability", "eventual"}, {"durability", ""}, {"memory", "lots"}, {"memory", "-1"}, {"memory", "0"},
		{"readers", "0"}, {"readers", "-1"}, {"readers", "many"}, {"concurrency", "0"}, {"lock_timeout", "5"}, {"max_reader_age", "old"},
		{"lock_timeout", "-1s"}, {"max_reader_age", "-1s"},
		{"layout", "no-such-layout"}, {"layout", ""}, {"layout", "arkiv,"}, {"layout", "arkiv,compact"}, {"layout", "tags"},
		{"read_only", "maybe"}, {"checkpoint", "sometimes"}, {"checkpoint_frames", "0"}, {"checkpoint_frames", "x"},
	} {
		t.Run(params[0]+"="+params[1], func(t *testing.T) {
			refuseOpen(t, withParams(t, url, params[0], params[1]), nil, store.ErrInvalid, params[0])
		})
	}
	t.Run("given twice", func(t *testing.T) {
		refuseOpen(t, withParams(t, url, "readers", "2")+"&readers=3", nil, store.ErrInvalid, "")
	})
	t.Run("unknown to the engine", func(t *testing.T) {
		refuseOpen(t, url, &store.Options{Params: map[string]string{"no_such_parameter": "1"}}, nil, "no_such_parameter")
	})
	if !linkedDriver(t, url).Capabilities.WALCheckpoint {
		t.Run("checkpoint policy", func(t *testing.T) {
			for _, policy := range []driver.CheckpointPolicy{driver.Inline, driver.Background, driver.Manual} {
				refuseOpen(t, url, &store.Options{Checkpoint: policy}, driver.ErrUnsupported, "")
			}
		})
	}
	t.Run("unknown layout", func(t *testing.T) {
		_, err := store.Open(context.Background(), withParams(t, url, "layout", "no-such-layout"), nil)
		for _, known := range []string{"arkiv", "compact"} {
			require.ErrorContains(t, err, known)
		}
	})
	t.Run("given in Go", func(t *testing.T) {
		for _, opts := range []store.Options{
			{Readers: -1}, {Concurrency: -1}, {Memory: -1}, {WALFrames: -1}, {LockTimeout: -1}, {MaxReaderAge: -1},
			{Durability: "eventual"}, {Checkpoint: "sometimes"},
		} {
			refuseOpen(t, url, &opts, store.ErrInvalid, "")
		}
	})
	if !h.Server {
		left := must(filepath.Glob(filePath(t, url) + "*"))(t)
		require.Empty(t, left, "what is refused makes no database")
	}
}
