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
	var tr tracker
	look := func(pids ...int) Sample {
		t.Helper()
		var s Sample
		tr.next = time.Time{} // memory each time
		require.NoError(t, tr.look(pids, &s))
		return s
	}
	s := start(t)
	s.do("burn")
	first := look(s.pid)
	require.Zero(t, *first.CPU, "what was before does not count")
	require.Positive(t, *first.RSS)

	s.do("burn")
	s.do("hold")
	second := look(s.pid)
	require.GreaterOrEqual(t, *second.CPU, 80*time.Millisecond, "counted in ticks of 10 ms")
	require.GreaterOrEqual(t, *second.RSS-*first.RSS, int64(32<<20))

	other := start(t)
	other.do("burn")
	s.do("child burn")
	third := look(s.pid)
	require.GreaterOrEqual(t, *third.CPU-*second.CPU, 80*time.Millisecond)

	fourth := look(other.pid)
	require.Equal(t, *third.CPU, *fourth.CPU, "another engine counts from now on")
	require.Positive(t, *fourth.RSS)
	other.do("burn")
	fifth := look(other.pid)
	require.GreaterOrEqual(t, *fifth.CPU-*fourth.CPU, 80*time.Millisecond)

	// Both descend from this process.
	found, err := find([]int{os.Getpid()})
	require.NoError(t, err)
	require.Contains(t, found, s.pid)
	require.Contains(t, found, other.pid)
	require.NotContains(t, found, 1, "which descends from nobody here")
	found, err = find(nil)
	require.NoError(t, err)
	require.Len(t, found, 1, "this process without others")
}

func TestTrackerDisk(t *testing.T) {
	dir := t.TempDir()
	onDisk(t, dir)
	var tr tracker
	var before, after Sample
	s := start(t)
	require.NoError(t, tr.look([]int{s.pid}, &before))
	require.NotNil(t, before.Written, "a process may read its own children's")
	s.do("write " + filepath.Join(dir, "a"))
	s.do("child write " + filepath.Join(dir, "b"))
	require.NoError(t, tr.look([]int{s.pid}, &after))
	require.GreaterOrEqual(t, *after.Written-*before.Written, int64(8<<20), "with that of the child")
}
