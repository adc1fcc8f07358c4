package duckdb_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/storetest"
)

// smallLog makes the log full after 1 MiB.
var smallLog = driver.Options{Params: map[string]string{"checkpoint_threshold": "1048576"}}

// fillLog commits a row that fills such a log, and not so far that the commit
// checkpoints by itself.
func fillLog(t *testing.T, e driver.Engine) {
	t.Helper()
	require.NoError(t, write(e, func(ctx context.Context, tx driver.Tx) error {
		_, err := tx.Exec(ctx, "CREATE TABLE blobs AS SELECT CAST(? AS BLOB) AS b", make([]byte, 2<<20))
		return err
	}))
}

// slowCheckpoints makes each checkpoint of an engine take at least so long.
func slowCheckpoints(t *testing.T, e driver.Engine, by time.Duration) {
	t.Helper()
	require.NoError(t, write(e, func(ctx context.Context, tx driver.Tx) error {
		_, err := tx.Exec(ctx, fmt.Sprintf("SET GLOBAL debug_checkpoint_sleep_ms = %d", by.Milliseconds()))
		return err
	}))
}

func stats(t *testing.T, e driver.Engine) driver.Stats {
	t.Helper()
	s, err := e.Stats(t.Context())
	require.NoError(t, err)
	return s
}

// TestCheckpointFollowsCommit: the commit that fills the log returns before the
// checkpoint has ended, and the checkpoint comes without another call.
func TestCheckpointFollowsCommit(t *testing.T) {
	e := openNew(t, smallLog)
	slowCheckpoints(t, e, 3*time.Second)
	fillLog(t, e)
	require.Greater(t, *stats(t, e).WALBytes, int64(1<<20), "the commit did not wait")
	require.Eventually(t, func() bool { return *stats(t, e).Checkpoints == 1 }, time.Minute, 10*time.Millisecond)
	require.Zero(t, *stats(t, e).WALBytes)
}

// TestCheckpointOutlivesContext: a checkpoint that has begun ends, whatever
// becomes of the caller's context.
func TestCheckpointOutlivesContext(t *testing.T) {
	e := openNew(t, driver.Options{})
	require.NoError(t, insertCommit(e, manyRows(0, 3000)))
	slowCheckpoints(t, e, 500*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := driver.Checkpoint(ctx, e, true)
	require.NoError(t, err)
	require.NoError(t, insertCommit(e, row("new", 1, 1)))
	require.Equal(t, int64(3001), count(t, e))
}

// TestCloseDuringCheckpoint: Close waits for the checkpoint that follows a
// commit.
func TestCloseDuringCheckpoint(t *testing.T) {
	path := newPath(t)
	e, err := open(path, smallLog)
	require.NoError(t, err)
	require.NoError(t, createTables(e))
	slowCheckpoints(t, e, 500*time.Millisecond)
	require.NoError(t, insertCommit(e, manyRows(0, 10)))
	fillLog(t, e)
	require.NoError(t, e.Close())
	require.NoFileExists(t, path+".wal")
	require.NoFileExists(t, path+".guard")
	require.Equal(t, int64(10), count(t, openAt(t, path, driver.Options{})))
}

// TestMergedBlocksLeaveNoRows: a checkpoint drops the rows of merged blocks
// from the log of compact, while later blocks wait in it. With an index the
// engine would append to their row group and write it again, with all rows, at
// each checkpoint.
func TestMergedBlocksLeaveNoRows(t *testing.T) {
	ctx := t.Context()
	db, err := store.Open(ctx, "duckdb://"+newPath(t), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	ents, err := db.Entities(ctx, &store.EntityOptions{Layout: "compact", Backlog: 1000})
	require.NoError(t, err)
	next := uint64(1)
	apply := func(blocks int) {
		for range blocks {
			_, err := ents.Apply(ctx, entity.Block{Number: next, Ops: []entity.Op{{Kind: entity.Create, Key: entity.Key{byte(next)}, BTL: 100}}})
			require.NoError(t, err)
			next++
		}
		_, err := driver.Checkpoint(ctx, db.Engine(), true)
		require.NoError(t, err)
	}
	apply(40)
	require.NoError(t, ents.Flush(ctx))
	inLog := func(text string) int64 {
		r, err := db.Engine().View(ctx)
		require.NoError(t, err)
		defer r.Close()
		return number(t, r, text)
	}
	const storedRows = "SELECT CAST(coalesce(sum(count), 0) AS BIGINT) FROM pragma_storage_info('block_log') WHERE column_name = 'block' AND segment_type = 'BIGINT'"
	// The last block is merged too after a rest, which a busy machine may give
	// before its row is counted. Then the next block is the last.
	for {
		apply(1)
		stored := inLog(storedRows)
		if waiting := inLog("SELECT count(*) FROM block_log"); waiting > 0 {
			require.Equal(t, int64(1), stored)
			return
		}
	}
}

// TestLogWithIndex: an older store, whose log of blocks has an index, goes on.
func TestLogWithIndex(t *testing.T) {
	ctx := t.Context()
	url := "duckdb://" + newPath(t)
	db, err := store.Open(ctx, url, nil)
	require.NoError(t, err)
	_, err = db.Entities(ctx, &store.EntityOptions{Layout: "compact"})
	require.NoError(t, err)
	require.NoError(t, write(db.Engine(), func(ctx context.Context, tx driver.Tx) error {
		_, err := tx.Exec(ctx, "ALTER TABLE block_log ADD PRIMARY KEY (block)")
		return err
	}))
	require.NoError(t, db.Close())
	db, err = store.Open(ctx, url, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	ents, err := db.Entities(ctx, nil)
	require.NoError(t, err)
	storetest.ApplyVersions(t, ents, 5, 40, 100)
	_, err = driver.Checkpoint(ctx, db.Engine(), true)
	require.NoError(t, err)
	report, err := db.Check(ctx, nil)
	require.NoError(t, err)
	require.NoError(t, report.Err())
}
