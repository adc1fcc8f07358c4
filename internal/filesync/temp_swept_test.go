package filesync

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTempDirWhileSwept: a directory is not removed while its run goes on, though
// other runs look for directories of runs that were killed at any moment.
func TestTempDirWhileSwept(t *testing.T) {
	stem := filepath.Join(t.TempDir(), "x")
	done := make(chan struct{})
	var sweeping sync.WaitGroup
	for range 2 {
		sweeping.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					if _, err := Sweep(stem); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for range 1000 {
		temp, err := TempDir(stem, nil)
		require.NoError(t, err)
		err = os.WriteFile(filepath.Join(temp.Path(), "file"), nil, 0o600)
		if err != nil {
			t.Error(err)
			break
		}
		require.NoError(t, temp.Remove())
	}
	close(done)
	sweeping.Wait()
}
