package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/internal/filelease"
	"github.com/varvedb/varve/store/driver"
)

// A builder that writes two files, one in a directory.
func sampleBuilder(built *atomic.Int32) builder {
	return func(_ context.Context, dir string) (Ready, error) {
		built.Add(1)
		if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
			return Ready{}, err
		}
		return Ready{Head: 7}, errors.Join(
			os.WriteFile(filepath.Join(dir, "a"), []byte("one"), 0o644),
			os.WriteFile(filepath.Join(dir, "sub", "b"), []byte("two"), 0o600))
	}
}

func openCache(t *testing.T) *Cache {
	t.Helper()
	c, err := OpenCache(t.TempDir())
	require.NoError(t, err)
	return c
}

func copyOut(t *testing.T, c *Cache, build builder) Ready {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "copy")
	r, _, err := c.checkOut(t.Context(), dir, "key", false, build)
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(dir, "sub", "b"))
	require.NoError(t, err)
	require.Equal(t, "two", string(text))
	return r
}

func TestCacheBuildsOnce(t *testing.T) {
	c, built := openCache(t), new(atomic.Int32)
	first := copyOut(t, c, sampleBuilder(built))
	require.Equal(t, first, copyOut(t, c, sampleBuilder(built)))
	require.Equal(t, int32(1), built.Load())
	require.Equal(t, int64(6), first.Bytes)
	require.Equal(t, uint64(7), first.Head)

	// Copies are their own, and a cache is the same in another directory.
	dir := filepath.Join(t.TempDir(), "copy")
	_, _, err := c.checkOut(t.Context(), dir, "key", false, sampleBuilder(built))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sub", "b"), []byte("bad"), 0o600))
	copyOut(t, c, sampleBuilder(built))
	elsewhere := filepath.Join(t.TempDir(), "cache")
	require.NoError(t, os.CopyFS(elsewhere, os.DirFS(c.root)))
	moved, err := OpenCache(elsewhere)
	require.NoError(t, err)
	copyOut(t, moved, sampleBuilder(built))
	require.Equal(t, int32(1), built.Load())
}

func TestCacheRebuildsWhatIsDamaged(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, dir string){
		"no marker":     func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, markerFile))) },
		"broken marker": func(t *testing.T, dir string) { require.NoError(t, os.Truncate(filepath.Join(dir, markerFile), 9)) },
		"foreign marker": func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, markerFile), []byte(`{"key": "other"}`), 0o644))
		},
		"file cut":     func(t *testing.T, dir string) { require.NoError(t, os.Truncate(filepath.Join(dir, dataDir, "a"), 1)) },
		"file missing": func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, dataDir, "a"))) },
		"no data":      func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(filepath.Join(dir, dataDir))) },
	} {
		t.Run(name, func(t *testing.T) {
			c, built := openCache(t), new(atomic.Int32)
			copyOut(t, c, sampleBuilder(built))
			damage(t, c.path("key"))
			copyOut(t, c, sampleBuilder(built))
			require.Equal(t, int32(2), built.Load())
		})
	}
}

func TestCacheKeepsNothingOfAFailedBuild(t *testing.T) {
	c, built := openCache(t), new(atomic.Int32)
	broken := errors.New("broken")
	fail := func(ctx context.Context, dir string) (Ready, error) {
		r, err := sampleBuilder(built)(ctx, dir)
		return r, errors.Join(err, broken)
	}
	_, _, err := c.checkOut(t.Context(), filepath.Join(t.TempDir(), "copy"), "key", false, fail)
	require.ErrorIs(t, err, broken)
	require.NoDirExists(t, c.path("key"))
	copyOut(t, c, sampleBuilder(built))
}

func TestCacheConcurrentBuilders(t *testing.T) {
	c, built := openCache(t), new(atomic.Int32)
	dir := t.TempDir()
	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			_, _, errs[i] = c.checkOut(t.Context(), filepath.Join(dir, string(rune('a'+i))), "key", false, sampleBuilder(built))
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, int32(1), built.Load())
}

// TestSweepCache: a data set that is being built or that is complete stays.
func TestSweepCache(t *testing.T) {
	c, built := openCache(t), new(atomic.Int32)
	t.Setenv(CacheEnv, c.root)
	copyOut(t, c, sampleBuilder(built))
	for _, key := range []string{"killed", "building"} {
		held, err := filelease.Open(c.path(key)+".lock", 0o644)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(c.path(key), dataDir), 0o755))
		if key == "killed" {
			require.NoError(t, held.Close())
		} else {
			defer held.Close()
		}
	}
	run, err := c.NewRun()
	require.NoError(t, err)
	require.NoError(t, run.held.Close()) // as if its process had been killed
	require.NoError(t, SweepCache())
	require.NoDirExists(t, c.path("killed"))
	require.DirExists(t, c.path("building"))
	require.DirExists(t, c.path("key"))
	require.NoDirExists(t, run.path)
	require.NoError(t, EmptyCache())
	require.DirExists(t, c.path("building"))
	require.NoDirExists(t, c.path("key"))
}

func TestCloneTreeKeepsModesAndLinks(t *testing.T) {
	src, dst := filepath.Join(t.TempDir(), "src"), filepath.Join(t.TempDir(), "dst")
	require.NoError(t, os.MkdirAll(filepath.Join(src, "closed"), 0o700))
	require.NoError(t, os.Chmod(src, 0o750))
	file := filepath.Join(src, "closed", "script")
	require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	require.NoError(t, os.Chmod(file, 0o777))
	require.NoError(t, os.Symlink("closed/script", filepath.Join(src, "link")))
	require.NoError(t, cloneTree(dst, src))
	for name, mode := range map[string]os.FileMode{".": 0o750, "closed": 0o700, "closed/script": 0o777} {
		st, err := os.Stat(filepath.Join(dst, name))
		require.NoError(t, err)
		require.Equal(t, mode, st.Mode().Perm(), name)
	}
	text, err := os.ReadFile(filepath.Join(dst, "link"))
	require.NoError(t, err)
	require.Equal(t, "text", string(text))
	require.Error(t, cloneTree(dst, src), "it overwrites nothing")
}

// TestCloneTreeLeavesTheCacheAsItIs: a copy takes no more of the page cache than
// two pieces, while it is made.
func TestCloneTreeLeavesTheCacheAsItIs(t *testing.T) {
	src, dst := t.TempDir(), filepath.Join(t.TempDir(), "dst")
	const pieces = 6
	require.NoError(t, os.WriteFile(filepath.Join(src, "file"), make([]byte, pieces*piece), 0o600))
	err := probe.Evict(t.Context(), src)
	if left, _ := probe.Residency(src); err != nil || left.Resident > 0 {
		t.Skip("temporary directory cannot leave the memory: set TMPDIR to one on a disk")
	}
	copied := make(chan error, 1)
	go func() { copied <- cloneTree(dst, src) }()
	most := int64(0)
	for {
		select {
		case err := <-copied:
			require.NoError(t, err)
			require.Less(t, most*int64(os.Getpagesize()), int64(pieces*piece/2))
			for _, dir := range []string{src, dst} {
				left, err := probe.Residency(dir)
				require.NoError(t, err)
				require.Zero(t, left.Resident, dir)
				require.Equal(t, int64(pieces*piece/os.Getpagesize()), left.Total, dir)
			}
			return
		default:
			if pages, err := probe.Residency(dst); err == nil { // there is none at first
				most = max(most, pages.Resident)
			}
		}
	}
}

// TestRoom: the size of a data set and its copy is estimated before they are
// written. The data set itself is used where there is no room for a copy.
func TestRoom(t *testing.T) {
	const mb = 1 << 20
	c, built := openCache(t), new(atomic.Int32)
	for _, step := range []struct {
		name            string
		asked           bool // for the data set itself
		free, estimate  uint64
		builtIt         bool
		inPlace, enough bool
	}{
		{name: "to build and to copy", free: spareSpace + 10*mb, estimate: 5 * mb, enough: true},
		{name: "only to build", free: spareSpace + 10*mb - 1, estimate: 5 * mb, enough: true, inPlace: true},
		{name: "asked for", asked: true, free: spareSpace + 10*mb, estimate: 5 * mb, enough: true, inPlace: true},
		{name: "not even to build", free: spareSpace + 5*mb - 1, estimate: 5 * mb},
		{name: "built, to copy", builtIt: true, free: spareSpace + 6, estimate: 5 * mb, enough: true},
		{name: "built, no copy", builtIt: true, free: spareSpace + 5, estimate: 5 * mb, enough: true, inPlace: true},
		{name: "built, on a full disk", builtIt: true, estimate: 5 * mb, enough: true, inPlace: true},
	} {
		t.Run(step.name, func(t *testing.T) {
			if c.InPlace = false; step.builtIt {
				copyOut(t, c, sampleBuilder(built)) // of 6 bytes
			}
			c.InPlace = step.asked
			inPlace, err := c.room("key", step.estimate, step.free)
			if !step.enough {
				require.ErrorIs(t, err, driver.ErrDiskFull)
				return
			}
			require.NoError(t, err)
			require.Equal(t, step.inPlace, inPlace)
		})
	}
}
