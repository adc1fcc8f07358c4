package probe

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/procfs"
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

	fourth := look(s.pid, other.pid)
	require.Less(t, *fourth.CPU-*third.CPU, 80*time.Millisecond, "it is older than the last look")
	require.Positive(t, *fourth.RSS)
	other.do("burn")
	fifth := look(s.pid, other.pid)
	require.GreaterOrEqual(t, *fifth.CPU-*fourth.CPU, 80*time.Millisecond)

	sixth := look(s.pid)
	require.Equal(t, *fifth.CPU, *sixth.CPU, "one that left takes nothing away")

	// Both descend from this process.
	found, all, err := tr.find([]int{os.Getpid()})
	require.NoError(t, err)
	require.Contains(t, found, s.pid)
	require.Contains(t, found, other.pid)
	require.Contains(t, all, 1, "which descends from nobody here")
	found, _, err = tr.find(nil)
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

// What an ended process had used is in the counters of an ancestor that waited
// for it, or lost.
func TestTrackerCount(t *testing.T) {
	cpu := func(parent int, started uint64, used time.Duration) process {
		return process{procfs.ProcStat{PPID: parent, Starttime: started}, usage{cpu: used}}
	}
	tr := tracker{last: map[int]process{
		1: cpu(0, 1, 10), 2: cpu(1, 2, 20), 3: cpu(2, 3, 30), 9: cpu(0, 1, 500),
	}, all: map[int]uint64{1: 1, 2: 2, 3: 3, 5: 2, 9: 1}}
	tr.count(map[int]process{
		1: cpu(0, 1, 10+20+30+7), // has waited for 2, which had waited for 3; 7 are new
		4: cpu(1, 6, 4),          // was born since
		5: cpu(0, 2, 900),        // is older than the last look
		// 9 has ended, and nobody that is looked at knows of it.
	})
	require.Equal(t, time.Duration(7+4), tr.total.cpu)
}
