package libsql

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// fill commits transactions of some pages each.
func fill(t *testing.T, e driver.Engine, commits int) {
	t.Helper()
	for range commits {
		write(t, e, func(tx driver.Tx) {
			mustExec(t, tx, "CREATE TABLE IF NOT EXISTS t (x BLOB)")
			mustExec(t, tx, "INSERT INTO t VALUES (randomblob(40000))")
		})
	}
}

func stats(t *testing.T, e driver.Engine) driver.Stats {
	t.Helper()
	s, err := e.Stats(context.Background())
	require.NoError(t, err)
	require.NotNil(t, s.DatabaseBytes)
	require.NotNil(t, s.WALBytes)
	return s
}

func TestBackgroundCheckpoints(t *testing.T) {
	e := mustOpen(t, newPath(t), driver.Options{WALFrames: 50})
	fill(t, e, 100)
	require.Eventually(t, func() bool { return *stats(t, e).Checkpoints > 0 }, 10*time.Second, time.Millisecond)
	s := stats(t, e)
	require.Positive(t, *s.CheckpointTime)
	require.Less(t, *s.WALBytes, int64(16*50*4200), "the hard cap")
	require.Greater(t, *s.DatabaseBytes, int64(1<<20), "pages have moved")
	require.Equal(t, []int64{100}, column[int64](t, snapshot(t, e), "SELECT count(*) FROM t"))
}

func TestInlineCheckpoints(t *testing.T) {
	e := mustOpen(t, newPath(t), driver.Options{Checkpoint: driver.Inline, WALFrames: 50})
	fill(t, e, 100)
	s := stats(t, e)
	require.Nil(t, s.Checkpoints, "SQLite does not tell about its own")
	require.Less(t, *s.WALBytes, int64(4*50*4200))
	require.Greater(t, *s.DatabaseBytes, int64(1<<20))
}

func TestManualCheckpoints(t *testing.T) {
	ctx := context.Background()
	path := newPath(t)
	e := mustOpen(t, path, driver.Options{Checkpoint: driver.Manual, LockTimeout: 10 * time.Millisecond})
	fill(t, e, 100)
	before := stats(t, e)
	require.Greater(t, *before.WALBytes, int64(4<<20))
	require.Zero(t, *before.Checkpoints)

	res, err := e.Checkpoint(ctx, false)
	require.NoError(t, err)
	require.False(t, res.Busy)
	require.Equal(t, res.LogFrames, res.DoneFrames)
	require.EqualValues(t, 1, *stats(t, e).Checkpoints)
	require.Zero(t, *stats(t, e).WALBytes, "the next commit begins the log anew")
	file, err := os.Stat(path + "-wal")
	require.NoError(t, err)
	require.Greater(t, file.Size(), int64(4<<20), "in a file as long as before")

	reader := snapshot(t, e)
	fill(t, e, 10)
	res, err = e.Checkpoint(ctx, false)
	require.NoError(t, err)
	require.Less(t, res.DoneFrames, res.LogFrames, "the reader holds it back")
	short, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
	defer cancel()
	_, err = e.Checkpoint(short, true)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, reader.Close())
	_, err = e.Checkpoint(ctx, true)
	require.NoError(t, err)
	require.Zero(t, *stats(t, e).WALBytes)
	require.Equal(t, []int64{110}, column[int64](t, snapshot(t, e), "SELECT count(*) FROM t"))
}

func TestSnapshotIsStable(t *testing.T) {
	path := newPath(t)
	e := mustOpen(t, path, driver.Options{WALFrames: 100})
	fill(t, e, 3)
	r := snapshot(t, e)
	count := func(r driver.Querier) []int64 { return column[int64](t, r, "SELECT count(*) FROM t") }
	fill(t, e, 100)
	require.Equal(t, []int64{3}, count(r))
	require.Equal(t, []int64{103}, count(snapshot(t, e)))
	require.NoError(t, e.Close())

	again := mustOpen(t, path, driver.Options{})
	require.Equal(t, []int64{103}, count(snapshot(t, again)))
}
