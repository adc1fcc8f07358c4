package probe

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Processes that descend from those that are looked at count, and so does what
// they used when they end between two looks.
func TestTracker(t *testing.T) {
	dir := t.TempDir()
	onDisk(t, dir)
	files := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")}
	for _, name := range files {
		require.NoError(t, os.WriteFile(name, make([]byte, fileSize), 0o600))
	}
	require.NoError(t, Evict(t.Context(), dir))
	var tr tracker
	look := func(pids ...int) Sample {
		t.Helper()
		var s Sample
		tr.next = time.Time{} // memory each time
		require.NoError(t, tr.sample(pids, &s))
		return s
	}
	s := start(t)
	s.do("read " + files[0])
	first := look(s.pid)
	require.NotNil(t, first.Read)
	require.Positive(t, *first.RSS)

	s.do("read " + files[1])
	s.do("hold")
	second := look(s.pid)
	require.GreaterOrEqual(t, *second.Read-*first.Read, int64(fileSize))
	require.GreaterOrEqual(t, *second.RSS-*first.RSS, int64(32<<20))

	s.do("child read " + files[2])
	require.GreaterOrEqual(t, *look(s.pid).Read-*second.Read, int64(fileSize))

	found, err := find([]int{os.Getpid()})
	require.NoError(t, err)
	require.Contains(t, found, s.pid)
	require.NotContains(t, found, 1, "which descends from nobody here")
	found, err = find(nil)
	require.NoError(t, err)
	require.Len(t, found, 1, "this process without others")
}
