package storetest

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Sizes for tests of the write-ahead log.
const (
	logFrames = 8       // Options.WALFrames: checkpoints come soon
	logBound  = 2 << 20 // bytes; far above any cap, far below what is written
)

// runLog: checkpoint policies of engines with a write-ahead log.
func runLog(t *testing.T, h Harness) {
	if !linkedDriver(t, h.NewURL(t)).Capabilities.WALCheckpoint {
		t.Skip("without WALCheckpoint the log is the engine's own affair")
	}
	t.Run("background", func(t *testing.T) { testBackground(t, h) })
	t.Run("inline", func(t *testing.T) { testInline(t, h) })
	t.Run("manual", func(t *testing.T) { testManual(t, h) })
	t.Run("waits for readers", func(t *testing.T) { testTruncateWaits(t, h) })
	t.Run("expires old readers", func(t *testing.T) { testExpiry(t, h) })
	t.Run("keeps young readers", func(t *testing.T) { testNoExpiry(t, h) })
	t.Run("closed database is whole", func(t *testing.T) { testLogAfterClose(t, h) })
}

// logTest is a database whose log grows with each commit.
type logTest struct {
	e     driver.Engine
	table *driver.Table
	next  int64
}

func newLogTest(t *testing.T, h Harness, opts store.Options) *logTest {
	opts.WALFrames = logFrames
	opts.Durability = driver.Relaxed
	e := h.open(t, h.NewURL(t), &opts).Engine()
	table := &driver.Table{Name: "blobs", Columns: []driver.Column{{Name: "id", Type: driver.Int}, {Name: "b", Type: driver.Blob}}}
	return &logTest{e: e, table: newTable(t, e, true, table)}
}

// commit writes a row of some pages in a transaction.
func (l *logTest) commit(t testing.TB) {
	t.Helper()
	tx := begin(t, l.e)
	insert(t, tx, l.table, l.next, bytes.Repeat([]byte{byte(l.next)}, 10_000))
	require.NoError(t, tx.Commit(context.Background()))
	l.next++
}

func (l *logTest) stats(t testing.TB) driver.Stats {
	t.Helper()
	stats := must(l.e.Stats(context.Background()))(t)
	require.NotNil(t, stats.WALBytes)
	return stats
}

func (l *logTest) checkpoint(t testing.TB, truncate bool) driver.CheckpointResult {
	t.Helper()
	return must(driver.Checkpoint(context.Background(), l.e, truncate))(t)
}

func (l *logTest) settings(t testing.TB) []driver.Setting {
	t.Helper()
	return must(l.e.Settings(context.Background()))(t)
}

// testBackground: the checkpointer works beside the commits and keeps the log bounded.
func testBackground(t *testing.T, h Harness) {
	l := newLogTest(t, h, store.Options{Checkpoint: driver.Background})
	settings := l.settings(t)
	for range 1000 { // 10 MB
		l.commit(t)
		require.Less(t, *l.stats(t).WALBytes, int64(logBound))
	}
	eventually(t, "checkpoints are counted", func() bool {
		l.commit(t)
		stats := l.stats(t)
		require.NotNil(t, stats.Checkpoints)
		require.NotNil(t, stats.CheckpointTime)
		require.NotNil(t, stats.CheckpointStall)
		return *stats.Checkpoints > 1 && *stats.CheckpointTime > 0
	})
	require.Equal(t, settings, l.settings(t), "a checkpoint that does not wait leaves the lock timeout as it was")
	inView(t, l.e, func(q driver.Querier) { require.Equal(t, l.next, countRows(t, q, l.table)) })
}

// testInline: the engine itself keeps the log bounded.
func testInline(t *testing.T, h Harness) {
	l := newLogTest(t, h, store.Options{Checkpoint: driver.Inline})
	for range 500 {
		l.commit(t)
		require.Less(t, *l.stats(t).WALBytes, int64(logBound))
	}
	require.Contains(t, l.settings(t), driver.Setting{Name: "checkpoint", Value: string(driver.Inline)})
}

// testManual: nothing moves the log but Checkpoint.
func testManual(t *testing.T, h Harness) {
	l := newLogTest(t, h, store.Options{Checkpoint: driver.Manual})
	for range 300 {
		l.commit(t)
	}
	stats := l.stats(t)
	require.Greater(t, *stats.WALBytes, int64(logBound))
	require.NotNil(t, stats.Checkpoints)
	require.Zero(t, *stats.Checkpoints)

	res := l.checkpoint(t, false)
	require.False(t, res.Busy)
	require.Positive(t, res.LogFrames)
	require.Equal(t, res.LogFrames, res.DoneFrames)
	require.Positive(t, res.Took)
	require.EqualValues(t, 1, *l.stats(t).Checkpoints)
	require.Zero(t, *l.stats(t).WALBytes, "nothing is left that recovery would need")
	require.Greater(t, *l.stats(t).DatabaseBytes, int64(logBound))

	settings := l.settings(t)
	l.checkpoint(t, true)
	require.Zero(t, *l.stats(t).WALBytes, "truncate empties the log")
	require.Equal(t, settings, l.settings(t))
	l.commit(t)
	inView(t, l.e, func(q driver.Querier) { require.Equal(t, l.next, countRows(t, q, l.table)) })
}

// testTruncateWaits: with truncate, Checkpoint waits for a reader until ctx is done.
func testTruncateWaits(t *testing.T, h Harness) {
	l := newLogTest(t, h, store.Options{Checkpoint: driver.Manual})
	l.commit(t)
	r := snapshot(t, l.e)
	l.commit(t)
	_, err := driver.Checkpoint(briefly(t), l.e, true)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	done := async(func() error {
		_, err := driver.Checkpoint(context.Background(), l.e, true)
		return err
	})
	requireWaits(t, done)
	require.EqualValues(t, 1, countRows(t, r, l.table))
	require.NoError(t, r.Close())
	require.NoError(t, <-done)
	require.Zero(t, *l.stats(t).WALBytes)
}

// testExpiry: a snapshot that is too old is ended when it keeps a full log from
// being emptied. Commits go on, and the log stays bounded.
func testExpiry(t *testing.T, h Harness) {
	l := newLogTest(t, h, store.Options{Checkpoint: driver.Background, MaxReaderAge: 20 * time.Millisecond})
	l.commit(t)
	idle, reading := snapshot(t, l.e), snapshot(t, l.e)
	rows := must(reading.Query(context.Background(), "SELECT id FROM blobs UNION ALL SELECT id FROM blobs"))(t)
	require.True(t, rows.Next())
	for range 1000 {
		l.commit(t)
		require.Less(t, *l.stats(t).WALBytes, int64(logBound))
	}
	_, err := idle.Query(context.Background(), "SELECT id FROM blobs")
	require.ErrorIs(t, err, driver.ErrReaderExpired)
	require.False(t, rows.Next())
	require.ErrorIs(t, rows.Err(), driver.ErrReaderExpired)
	require.NoError(t, rows.Close())
	require.NoError(t, idle.Close(), "an expired reader is closed as any other")
	require.NoError(t, reading.Close())
	inView(t, l.e, func(q driver.Querier) { require.Equal(t, l.next, countRows(t, q, l.table)) })
}

// testNoExpiry: a snapshot below MaxReaderAge is never ended. Writers wait for
// it when the log is full, until their ctx is done.
func testNoExpiry(t *testing.T, h Harness) {
	l := newLogTest(t, h, store.Options{Checkpoint: driver.Background, MaxReaderAge: time.Hour})
	l.commit(t)
	r := snapshot(t, l.e)
	var err error
	for err == nil {
		require.Less(t, *l.stats(t).WALBytes, int64(logBound), "the log grows past its cap")
		var tx driver.Tx
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		tx, err = l.e.Begin(ctx)
		cancel()
		if err == nil {
			require.NoError(t, tx.Rollback())
			l.commit(t)
		}
	}
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.EqualValues(t, 1, countRows(t, r, l.table), "the reader is as it was")
	require.NoError(t, r.Close())
	for range 50 {
		l.commit(t)
		require.Less(t, *l.stats(t).WALBytes, int64(logBound))
	}
}

// testLogAfterClose: what was still in the log is there after a reopen, with every policy.
func testLogAfterClose(t *testing.T, h Harness) {
	for _, policy := range []driver.CheckpointPolicy{driver.Background, driver.Inline, driver.Manual} {
		url := withParams(t, h.NewURL(t), "checkpoint", string(policy))
		db := must(store.Open(t.Context(), url, nil))(t)
		table := newTable(t, db.Engine(), true, numbersTable("numbers"))
		inTx(t, db.Engine(), func(tx driver.Tx) { insert(t, tx, table, int64(1), int64(1)) })
		require.NoError(t, db.Close())
		inView(t, h.open(t, url, nil).Engine(), func(q driver.Querier) { require.EqualValues(t, 1, countRows(t, q, table), policy) })
	}
}
