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

	fourth := look(s.pid, other.pid)
	require.Less(t, *fourth.CPU-*third.CPU, 80*time.Millisecond, "it is older than the last look")
	require.Positive(t, *fourth.RSS)
	other.do("burn")
	fifth := look(s.pid, other.pid)
	require.GreaterOrEqual(t, *fifth.CPU-*fourth.CPU, 80*time.Millisecond)

	sixth := look(s.pid)
	require.Equal(t, *fifth.CPU, *sixth.CPU, "one that left takes nothing away")

	// Both descend from this process.
	found, err := processes([]int{os.Getpid()})
	require.NoError(t, err)
	require.Contains(t, found, s.pid)
	require.Contains(t, found, other.pid)
	found, err = processes(nil)
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
	cpu := func(parent int, started, used time.Duration) process {
		return process{parent: parent, started: started, used: usage{cpu: used}}
	}
	tr := tracker{last: map[int]process{
		1: cpu(0, 1, 10), 2: cpu(1, 2, 20), 3: cpu(2, 3, 30), 9: cpu(0, 1, 500),
	}, when: 5}
	tr.count(map[int]process{
		1: cpu(0, 1, 10+20+30+7), // has waited for 2, which had waited for 3; 7 are new
		4: cpu(1, 6, 4),          // was born since
		5: cpu(0, 2, 900),        // is older than the last look
		// 9 has ended, and nobody that is looked at knows of it.
	})
	require.Equal(t, time.Duration(7+4), tr.total.cpu)
}

func TestParseStat(t *testing.T) {
	p, ok := parseStat([]byte("42 (a) R (b) S 7 1 1 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 600 1 1\n"), true)
	require.True(t, ok)
	require.Equal(t, process{parent: 7, started: 6 * time.Second, used: usage{cpu: time.Second}}, p)
	p, ok = parseStat([]byte("42 (a) R (b) S 7 1 1 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 600 1 1\n"), false)
	require.True(t, ok)
	require.Equal(t, 300*time.Millisecond, p.used.cpu)
	for _, bad := range []string{"", "42 (a) S 7", "42 (a) S x 1 1 0 -1 1 1 2 3 4 10 20 30 40 20 0 1 0 600 1 1"} {
		_, ok := parseStat([]byte(bad), true)
		require.False(t, ok, "%q", bad)
	}
}
