//go:build unix

package filelease_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/filelease"
)

func TestNumbers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n")
	one, two := &filelease.Numbers{Path: path, Mode: 0o644}, &filelease.Numbers{Path: path, Mode: 0o644}
	require.Zero(t, one.Raise(0))
	require.EqualValues(t, 5, one.Raise(5))
	require.EqualValues(t, 5, two.Raise(3))
	require.EqualValues(t, 7, two.Raise(7))
	require.EqualValues(t, 7, one.Raise(0))
	require.NoError(t, one.Close())
	require.EqualValues(t, 7, one.Raise(0), "after the end it is what it was")
	require.EqualValues(t, 8, two.Raise(8))
	require.NoError(t, two.Close())
	require.NoFileExists(t, path)

	// A process that was killed leaves the file: its numbers are of another
	// time.
	require.NoError(t, os.WriteFile(path, []byte{9, 9, 9, 9, 9, 9, 9, 9}, 0o600))
	again := &filelease.Numbers{Path: path, Mode: 0o644}
	require.EqualValues(t, 2, again.Raise(2))
	require.NoError(t, again.Close())

	// Unless it is of a number that is kept, and of this start of the system.
	require.Zero(t, again.Kept(0), "a number is kept by nobody yet")
	require.NoFileExists(t, path)
	keeps := &filelease.Numbers{Path: path, Mode: 0o644}
	require.True(t, keeps.Keep(1, 0, 6))
	require.False(t, keeps.Keep(1, 0, 7), "another has changed it")
	require.EqualValues(t, 5, keeps.Raise(5))
	left, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, keeps.Close())
	require.NoFileExists(t, path)
	require.NoError(t, os.WriteFile(path, left, 0o600))
	for range 2 {
		finds := &filelease.Numbers{Path: path, Mode: 0o644}
		require.EqualValues(t, 6, finds.Kept(1))
		require.Zero(t, finds.Raise(0))
		require.NoError(t, finds.Close())
		require.FileExists(t, path, "nobody has confirmed it")
	}
	finds := &filelease.Numbers{Path: path, Mode: 0o644}
	require.EqualValues(t, 6, finds.Kept(1))
	finds.Confirm(1)
	require.NoError(t, finds.Close())
	require.NoFileExists(t, path)
	left[len(left)-10]++ // another start
	require.NoError(t, os.WriteFile(path, left, 0o600))
	finds = &filelease.Numbers{Path: path, Mode: 0o644}
	require.Zero(t, finds.Kept(1))
	require.NoError(t, finds.Close())

	apart := &filelease.Numbers{Path: filepath.Join(path, "no", "directory")}
	require.EqualValues(t, 4, apart.Raise(4))
	require.NoError(t, apart.Close())
}

// TestNumbersConcurrent: while users come and go, no user sees the number fall.
func TestNumbersConcurrent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n")
	stays := &filelease.Numbers{Path: path, Mode: 0o644}
	stays.Raise(1)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 200 {
				comes := &filelease.Numbers{Path: path, Mode: 0o644}
				before := stays.Raise(0)
				if got := comes.Raise(uint64(n * i)); got < before || stays.Raise(0) < got {
					t.Errorf("it was %d, then %d, then %d", before, got, stays.Raise(0))
				}
				if err := comes.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 7*199, stays.Raise(0))
	require.NoError(t, stays.Close())
	require.NoFileExists(t, path)
}
