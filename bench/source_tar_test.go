package bench

import (
	"archive/tar"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/feed"
	"github.com/varvedb/varve/testdata"
)

const realTar = "../testdata/arkiv-small/blocks.tar"

// some returns the first n blocks.
func some(t *testing.T, blocks iter.Seq2[entity.Block, error], n int) (list []entity.Block) {
	t.Helper()
	for b, err := range blocks {
		require.NoError(t, err)
		if list = append(list, b); len(list) == n {
			break
		}
	}
	return list
}

// A tar's blocks are loaded, and the blocks after them are copies of it, again
// and again, with new entities. Each goes on where the one before it has ended.
func TestTarSource(t *testing.T) {
	cache, names := openCache(t), map[string]bool{}
	for _, factor := range []uint64{1, 3} {
		s, err := TarSource(cache, realTar, factor, 1)
		require.NoError(t, err)
		names[s.Name] = true
		loaded := collect(t, s.Blocks())
		if factor == 1 {
			require.Equal(t, some(t, feed.TarBlocks(realTar), testdata.ArkivCount), loaded)
		}
		rest := some(t, s.Rest(), 3*testdata.ArkivCount)
		require.Equal(t, rest, some(t, s.Rest(), 3*testdata.ArkivCount), "the same each time")
		require.Len(t, rest, 3*testdata.ArkivCount)
		require.Equal(t, loaded, collect(t, s.Blocks()))

		changing := 0
		keys := map[entity.Key]bool{}
		for _, b := range loaded {
			for i := range b.Ops {
				keys[b.Ops[i].Key] = true
			}
		}
		for _, b := range rest[:testdata.ArkivCount] {
			for i := range b.Ops {
				require.False(t, keys[b.Ops[i].Key], "a key is used again")
			}
			if len(b.Ops) > 0 {
				changing++
			}
		}
		require.Equal(t, changing, s.Changing)

		// An expectation that remembers what operations keep follows the first copy.
		all, kept := NewExpectation(true), NewExpectation(true)
		kept.only, err = s.keeps()
		require.NoError(t, err)
		require.NotEmpty(t, kept.only)
		for i, b := range append(loaded, rest...) {
			require.NoError(t, all.Apply(&b), "block %d", b.Number)
			if i < len(loaded)+testdata.ArkivCount {
				require.NoError(t, kept.Apply(&b), "block %d", b.Number)
				require.Equal(t, all.Head(), kept.Head())
			}
		}
	}
	copied := filepath.Join(t.TempDir(), "x.tar")
	require.NoError(t, os.WriteFile(copied, testdata.ArkivBlocks, 0o600))
	s, err := TarSource(cache, copied, 3, 1)
	require.NoError(t, err)
	require.True(t, names[s.Name], "what is in it counts, and not where it is")
	require.Len(t, names, 2)

	// A tar is read once, and again when it is another.
	info, err := os.Stat(copied)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, make([]byte, info.Size()), 0o600))
	require.NoError(t, os.Chtimes(copied, info.ModTime(), info.ModTime()))
	s, err = TarSource(cache, copied, 3, 1)
	require.NoError(t, err)
	require.True(t, names[s.Name])
	require.NoError(t, os.Chtimes(copied, info.ModTime(), info.ModTime().Add(1)))
	_, err = TarSource(cache, copied, 3, 1)
	require.ErrorIs(t, err, store.ErrInvalid)
}

func TestTarSourceRefuses(t *testing.T) {
	cache := openCache(t)
	empty := filepath.Join(t.TempDir(), "empty.tar")
	f, err := os.Create(empty)
	require.NoError(t, err)
	w := feed.NewTarWriter(f)
	require.NoError(t, w.Write(entity.Block{Number: 7}))
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
	_, err = TarSource(cache, empty, 1, 1)
	require.ErrorIs(t, err, store.ErrInvalid)
	_, err = TarSource(cache, realTar, 0, 1)
	require.ErrorIs(t, err, store.ErrInvalid)
	_, err = TarSource(cache, filepath.Join(t.TempDir(), "none.tar"), 1, 1)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = TarSource(cache, "source.go", 1, 1)
	require.ErrorIs(t, err, tar.ErrHeader)
}

// A tar of a state alone is measured as a whole history: each of its blocks can be read.
func TestTarSourceWithHorizon(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.tar")
	f, err := os.Create(path)
	require.NoError(t, err)
	w := feed.NewTarWriter(f)
	for b, err := range feed.TarBlocks(realTar) {
		require.NoError(t, err)
		b.Horizon = testdata.ArkivHead
		require.NoError(t, w.Write(b))
	}
	require.NoError(t, errors.Join(w.Close(), f.Close()))
	s, err := TarSource(openCache(t), path, 2, 1)
	require.NoError(t, err)
	for _, b := range slices.Concat(collect(t, s.Blocks()), some(t, s.Rest(), 9)) {
		require.Zero(t, b.Horizon, "block %d", b.Number)
	}
}
