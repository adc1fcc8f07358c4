package source_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/source"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/feed"
	_ "github.com/varvedb/varve/store/sqlite"
	"github.com/varvedb/varve/testdata"
)

const arkiv = "../../testdata/arkiv-small/"

func openCache(t *testing.T) *bench.Cache {
	t.Helper()
	cache, err := bench.OpenCache(t.TempDir())
	require.NoError(t, err)
	return cache
}

// makeStore makes a store of so many blocks of the network, and returns its URL.
func makeStore(t *testing.T, blocks int) string {
	t.Helper()
	url := "sqlite:" + filepath.Join(t.TempDir(), "my node.db")
	db, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	tar, err := feed.OpenTar(arkiv + "blocks.tar")
	require.NoError(t, err)
	defer tar.Close()
	for b, err := range tar.Blocks() {
		require.NoError(t, err)
		if blocks--; blocks < 0 {
			break
		}
		_, err = ents.Apply(t.Context(), b)
		require.NoError(t, err)
	}
	return url
}

// follow returns the expected contents of a store after the blocks of a tar.
func follow(t *testing.T, path string) (x *bench.Expectation) {
	t.Helper()
	tar, err := feed.OpenTar(path)
	require.NoError(t, err)
	defer tar.Close()
	x = bench.NewExpectation(true)
	for b, err := range tar.Blocks() {
		require.NoError(t, err)
		require.NoError(t, x.Apply(&b))
	}
	return x
}

// A block tar of any source has the same history. It is made once, and again
// when the source has changed; a source that is a block tar is used where it
// lies.
func TestPrepare(t *testing.T) {
	cache := openCache(t)
	for _, c := range []struct {
		src, name string
		live      uint64
		digest    string
	}{
		{arkiv + "blocks.tar", "blocks.tar", 605, testdata.ArkivDigest},
		{arkiv + "sqlite-store.db", "sqlite-store.tar", 605, testdata.ArkivDigest},
		{arkiv + "sqlite-bitmap-store.db", "sqlite-bitmap-store.tar", 382, ""},
		{makeStore(t, testdata.ArkivCount), "my-node.tar", 605, testdata.ArkivDigest},
		{"mendoza:scale=0.0005,seed=2", "mendoza-scale-0.0005-seed-2.tar", 0, ""},
	} {
		path, err := source.Prepare(t.Context(), c.src, cache)
		require.NoError(t, err, c.src)
		require.True(t, filepath.IsAbs(path))
		require.Equal(t, c.name, filepath.Base(path))
		x := follow(t, path)
		if c.live > 0 {
			require.Equal(t, c.live, x.Live(), c.src)
		}
		if c.digest != "" {
			require.Equal(t, c.digest, x.Head().Digest.String(), c.src)
		}
		if filepath.Ext(c.src) == ".tar" {
			require.NotContains(t, path, cache.Root())
			continue
		}
		require.Contains(t, path, cache.Root())
		long := time.Unix(1, 0)
		require.NoError(t, os.Chtimes(path, long, long))
		again, err := source.Prepare(t.Context(), c.src, cache)
		require.NoError(t, err)
		require.Equal(t, path, again)
		st, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, long.Unix(), st.ModTime().Unix(), "it was made again")
	}
}

func TestPrepareAnew(t *testing.T) {
	cache := openCache(t)
	text, err := os.ReadFile(arkiv + "sqlite-bitmap-store.db")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "node.db")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	url := makeStore(t, 10)
	for src, change := range map[string]func(){
		file: func() { require.NoError(t, os.Chtimes(file, time.Time{}, time.Unix(5, 0))) },
		url: func() {
			db, err := store.Open(t.Context(), url, nil)
			require.NoError(t, err)
			ents, err := db.Entities(t.Context(), nil)
			require.NoError(t, err)
			_, err = ents.Apply(t.Context(), entity.Block{Number: testdata.ArkivHead, Ops: []entity.Op{{Kind: entity.Create, BTL: 1}}})
			require.NoError(t, err)
			require.NoError(t, db.Close())
		},
	} {
		before, err := source.Prepare(t.Context(), src, cache)
		require.NoError(t, err)
		change()
		after, err := source.Prepare(t.Context(), src, cache)
		require.NoError(t, err)
		require.NotEqual(t, before, after)
		require.Equal(t, filepath.Base(before), filepath.Base(after))
	}
}

func TestPrepareRefuses(t *testing.T) {
	cache := openCache(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx       context.Context
		src, says string
	}{
		{t.Context(), "prepare.go", "neither a block tar nor a SQLite database"},
		{t.Context(), "none.db", "no such file"},
		{t.Context(), makeStore(t, 0), "none of its blocks has an operation"},
		{t.Context(), "mendoza:size=1", "unknown parameter"},
		{ended, "mendoza:scale=0.0005", "context canceled"},
	} {
		_, err := source.Prepare(c.ctx, c.src, cache)
		require.ErrorContains(t, err, c.says, c.src)
	}
	left, err := filepath.Glob(filepath.Join(cache.Root(), "*", "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}
