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

// Sizes for the tests of the write-ahead log.
const (
	logFrames = 8       // Options.WALFrames: checkpoints come soon
	logBound  = 2 << 20 // bytes; far above any limit, and far below the sum of the rows
)

// runLog tests checkpoint policies of engines with a write-ahead log.
func runLog(t *testing.T, h Harness) {
	if !linkedDriver(t, h.NewURL(t)).Capabilities.WALCheckpoint {
		t.Skip("without WALCheckpoint the log is the engine's own affair")
	}
	parts[Harness]{
		{"background", testBackground},
		{"inline", testInline},
		{"manual", testManual},
		{"waits for readers", testTruncateWaits},
		{"expires old readers", testExpiry},
		{"keeps young readers", testNoExpiry},
		{"closed database is whole", testLogAfterClose},
	}.run(t, h)
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

// commit writes a row of several pages in a transaction.
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

// testBackground: the checkpointer runs concurrently with commits and limits
// the log.
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
	requireCount(t, l.e, l.table, l.next)
}

// testInline: the engine itself limits the log.
func testInline(t *testing.T, h Harness) {
	l := newLogTest(t, h, store.Options{Checkpoint: driver.Inline})
	for range 500 {
		l.commit(t)
		require.Less(t, *l.stats(t).WALBytes, int64(logBound))
	}
	require.Contains(t, l.settings(t), driver.Setting{Name: "checkpoint", Value: string(driver.Inline)})
}

// testManual: only Checkpoint moves pages from the log to the database.
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
	requireCount(t, l.e, l.table, l.next)
}

// testTruncateWaits: Checkpoint with truncate waits for a reader until ctx is
// done.
func testTruncateWaits(t *testing.T, h Harness) {
	l := newLogTest(t, h, store.Options{Checkpoint: driver.Manual})
	l.commit(t)
	r := snapshot(t, l.e)
	l.commit(t)
	refuses(t, context.DeadlineExceeded)(driver.Checkpoint(briefly(t), l.e, true))

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

// testExpiry: a reader that is too old is ended if it keeps a full log from
// being emptied. Commits go on, and the log stays limited.
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
	refuses(t, driver.ErrReaderExpired)(idle.Query(context.Background(), "SELECT id FROM blobs"))
	require.False(t, rows.Next())
	require.ErrorIs(t, rows.Err(), driver.ErrReaderExpired)
	require.NoError(t, rows.Close())
	require.NoError(t, idle.Close(), "an expired reader is closed as any other")
	require.NoError(t, reading.Close())
	requireCount(t, l.e, l.table, l.next)
}

// testNoExpiry: a reader younger than MaxReaderAge is never ended. When the log
// is full, writers wait for the reader until their ctx ends.
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

// testLogAfterClose: with every policy, rows that were only in the log exist
// after the database is reopened.
func testLogAfterClose(t *testing.T, h Harness) {
	for _, policy := range []driver.CheckpointPolicy{driver.Background, driver.Inline, driver.Manual} {
		url := withParams(t, h.NewURL(t), "checkpoint", string(policy))
		db := openDB(t, url)
		table := newNumbers(t, db.Engine(), "numbers", 1, 1)
		closeDB(t, db)
		inView(t, h.open(t, url, nil).Engine(), func(q driver.Querier) { require.EqualValues(t, 1, countRows(t, q, table), policy) })
	}
}
