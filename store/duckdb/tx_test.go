package duckdb_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// DuckDB answers COMMIT with success after a failed statement, and commits nothing.
func TestCommitAfterFailure(t *testing.T) {
	ctx := context.Background()
	e := openNew(t, driver.Options{})
	tx, err := e.Begin(ctx)
	require.NoError(t, err)
	require.NoError(t, tx.Insert(ctx, attributes, row("a", 1, 1)))
	require.ErrorIs(t, tx.Insert(ctx, attributes, row("a", 1, 1)), driver.ErrConflict)
	_, err = tx.Query(ctx, "SELECT 1")
	require.ErrorContains(t, err, "roll back")
	err = tx.Commit(ctx)
	require.ErrorIs(t, err, driver.ErrConflict)
	require.ErrorContains(t, err, "rolled back")
	require.ErrorIs(t, tx.Insert(ctx, attributes, row("b", 1, 1)), driver.ErrClosed)
	require.NoError(t, tx.Rollback())
	require.Zero(t, count(t, e))
	require.NoError(t, insertCommit(e, row("a", 1, 1)))

	// A mistake that the parser finds does not end the transaction.
	require.NoError(t, write(e, func(ctx context.Context, tx driver.Tx) error {
		require.NoError(t, tx.Insert(ctx, attributes, row("b", 1, 1)))
		_, err := tx.Exec(ctx, "SELEKT")
		require.Error(t, err)
		return nil
	}))
	require.Equal(t, int64(2), count(t, e))
}

// A query under way is interrupted. Its snapshot is lost, the engine is not. A
// call that has not begun leaves the transaction as it was.
func TestCancelled(t *testing.T) {
	e := openNew(t, driver.Options{Readers: 1})
	require.NoError(t, write(e, func(ctx context.Context, tx driver.Tx) error {
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		for _, n := range []int{1, 100} {
			require.ErrorIs(t, tx.Insert(cancelled, attributes, manyRows(0, n)), context.Canceled)
		}
		require.ErrorIs(t, tx.Update(cancelled, closing, int64(1), []any{key(0), "name", int64(1)}), context.Canceled)
		return nil
	}))
	r := snapshot(t, e)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := r.Query(ctx, "SELECT count(*) FROM range(1000000000000)")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = r.Query(context.Background(), "SELECT 1")
	require.ErrorContains(t, err, "cancelled")
	require.NoError(t, r.Close())
	require.Zero(t, count(t, e))
}

// A snapshot that keeps the log from being emptied is ended when it is old and
// the log has outgrown its cap.
func TestLogCap(t *testing.T) {
	e := openNew(t, driver.Options{MaxReaderAge: time.Nanosecond, Params: map[string]string{"checkpoint_threshold": "65536"}})
	require.NoError(t, insertCommit(e, manyRows(0, 1000)))
	r := snapshot(t, e)
	var keys []any
	for i := range 1000 {
		keys = append(keys, key(i), "name", int64(1))
	}
	var err error
	for i := 0; i < 200 && err == nil; i++ {
		require.NoError(t, update(e, int64(i), keys...))
		var rows driver.Rows
		if rows, err = r.Query(context.Background(), "SELECT 1"); err == nil {
			require.NoError(t, rows.Close())
		}
	}
	require.ErrorIs(t, err, driver.ErrReaderExpired)
	require.NoError(t, update(e, int64(0), keys...))
	s, err := e.Stats(context.Background())
	require.NoError(t, err)
	require.Less(t, *s.WALBytes, int64(8*65536))
}

func TestOutOfMemoryIsNotTheEnd(t *testing.T) {
	e := openNew(t, driver.Options{Memory: 64 << 20, Params: map[string]string{"threads": "1"}})
	err := write(e, func(ctx context.Context, tx driver.Tx) error {
		_, err := tx.Query(ctx, "SELECT list(i) FROM range(100000000) AS t(i)")
		return err
	})
	require.ErrorContains(t, err, "memory budget")
	require.False(t, errors.Is(err, driver.ErrConflict))
	require.NoError(t, insertCommit(e, row("a", 1, 1)))
}
