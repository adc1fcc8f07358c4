package duckdb_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// DuckDB answers COMMIT with success after a failed statement, and commits
// nothing.
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

func TestRollbackAfterFailure(t *testing.T) {
	e := openNew(t, driver.Options{})
	for range 3 {
		require.ErrorIs(t, insertCommit(e, append(row("a", 1, 1), row("a", 1, 2)...)), driver.ErrConflict)
	}
	require.NoError(t, insertCommit(e, row("a", 1, 1)))
	require.Equal(t, int64(1), count(t, e))
}

func TestSnapshotIsStable(t *testing.T) {
	e := openNew(t, driver.Options{})
	require.NoError(t, insertCommit(e, manyRows(0, 100)))
	r := snapshot(t, e) // nothing is read before the commits
	require.NoError(t, insertCommit(e, manyRows(100, 100)))
	require.NoError(t, update(e, int64(5), key(1), "name", int64(1)))
	for range 2 {
		require.Equal(t, int64(100), number(t, r, "SELECT count(*) FROM attributes"))
		require.Zero(t, number(t, r, "SELECT count(*) FROM attributes WHERE to_block = 5"))
		require.NoError(t, write(e, func(ctx context.Context, tx driver.Tx) error {
			_, err := tx.Exec(ctx, "DELETE FROM attributes WHERE value >= 50")
			return err
		}))
	}
	require.Equal(t, int64(50), count(t, e))
}

func TestReadersBesideWriter(t *testing.T) {
	const commits, rowsEach = 30, 50
	ctx := context.Background()
	e := openNew(t, driver.Options{})
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			last := int64(0)
			for {
				select {
				case <-done:
					return
				default:
				}
				r, err := e.Snapshot(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				n := number(t, r, "SELECT count(*) FROM attributes")
				if again := number(t, r, "SELECT count(*) FROM attributes"); n != again || n%rowsEach != 0 || n < last {
					t.Errorf("a snapshot had %d rows, then %d; the one before %d", n, again, last)
				}
				last = n
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range commits {
		require.NoError(t, insertCommit(e, manyRows(i*rowsEach, rowsEach)))
	}
	close(done)
	readers.Wait()
	require.Equal(t, int64(commits*rowsEach), count(t, e))
}

func TestOneWriter(t *testing.T) {
	ctx := context.Background()
	e := openNew(t, driver.Options{})
	tx, err := e.Begin(ctx)
	require.NoError(t, err)
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	_, err = e.Begin(short)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, tx.Rollback())
	require.NoError(t, insertCommit(e, row("a", 1, 1)))
}

func TestCancelled(t *testing.T) {
	e := openNew(t, driver.Options{})
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := e.Begin(cancelled)
	require.ErrorIs(t, err, context.Canceled)
	_, err = e.Snapshot(cancelled)
	require.ErrorIs(t, err, context.Canceled)

	tx, err := e.Begin(context.Background())
	require.NoError(t, err)
	for _, n := range []int{1, 100} {
		require.ErrorIs(t, tx.Insert(cancelled, attributes, manyRows(0, n)), context.Canceled)
	}
	require.ErrorIs(t, tx.Update(cancelled, closing, int64(1), []any{key(0), "name", int64(1)}), context.Canceled)
	require.ErrorIs(t, tx.Commit(cancelled), context.Canceled)
	require.NoError(t, insertCommit(e, row("a", 1, 1)))
	require.Equal(t, int64(1), count(t, e))
}

// A query under way is interrupted. Its snapshot is lost, the engine is not.
func TestCancelRunningQuery(t *testing.T) {
	e := openNew(t, driver.Options{Readers: 1})
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
