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

func TestNumber(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n")
	one, two := &filelease.Number{Path: path, Mode: 0o644}, &filelease.Number{Path: path, Mode: 0o644}
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

	// A process that was killed leaves the file: what it says is of another time.
	require.NoError(t, os.WriteFile(path, []byte{9, 9, 9, 9, 9, 9, 9, 9}, 0o600))
	again := &filelease.Number{Path: path, Mode: 0o644}
	require.EqualValues(t, 2, again.Raise(2))
	require.NoError(t, again.Close())

	apart := &filelease.Number{Path: filepath.Join(path, "no", "directory")}
	require.EqualValues(t, 4, apart.Raise(4))
	require.NoError(t, apart.Close())
}

// TestNumberConcurrent: whoever comes and goes, nobody sees it fall.
func TestNumberConcurrent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n")
	stays := &filelease.Number{Path: path, Mode: 0o644}
	stays.Raise(1)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 200 {
				comes := &filelease.Number{Path: path, Mode: 0o644}
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
