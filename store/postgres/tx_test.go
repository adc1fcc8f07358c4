package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/store/driver"
)

// TestCommitAfterFailure: Postgres answers COMMIT by rolling back, without an error.
func TestCommitAfterFailure(t *testing.T) {
	e := openNew(t, nil)
	execute(t, e, createAll)
	tx, err := e.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, tx.Insert(t.Context(), all, makeRows(1)))
	_, err = tx.Exec(t.Context(), "SELECT 1/0")
	require.ErrorContains(t, err, "division by zero")
	_, err = tx.Exec(t.Context(), "SELECT 1")
	require.ErrorContains(t, err, "an earlier statement failed; roll back")
	err = tx.Commit(t.Context())
	require.ErrorContains(t, err, "an earlier statement failed")
	require.NotErrorIs(t, err, driver.ErrUnknownOutcome)
	require.ErrorIs(t, tx.Commit(t.Context()), driver.ErrClosed)
	require.NoError(t, tx.Rollback())
	require.Zero(t, count(t, e, "t"))
	write(t, e, func(ctx context.Context, tx driver.Tx) {
		require.NoError(t, tx.Insert(ctx, all, makeRows(1)))
	})
}

// TestWriters: writers of two engines, as of two processes, follow one another,
// and writers of different schemas do not wait. A writer that has waited sees
// the other one's rows.
func TestWriters(t *testing.T) {
	url := pgtest.NewURL(t)
	a, b, other := openTest(t, url, nil), openTest(t, url, func(o *driver.Options) { o.LockTimeout = time.Hour }), openNew(t, nil)
	tx, err := a.Begin(t.Context())
	require.NoError(t, err)
	execute(t, other, createAll)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = b.Begin(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, driver.ErrLocked)

	_, err = tx.Exec(t.Context(), createAll)
	require.NoError(t, err)
	waiting := make(chan error)
	go func() {
		tx, err := b.Begin(context.Background())
		if err == nil {
			err = errors.Join(tx.Insert(context.Background(), all, makeRows(1)), tx.Commit(context.Background()))
		}
		waiting <- err
	}()
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, <-waiting)
	require.EqualValues(t, 1, count(t, b, "t"))
}

// backend returns the server process of a querier's connection.
func backend(t *testing.T, q driver.Querier) int64 {
	t.Helper()
	pid, err := driver.QueryInt(t.Context(), q, "SELECT pg_backend_pid()::bigint")
	require.NoError(t, err)
	return pid
}

// TestCancelledStatement: the statement ends, with the context's error, and the connection is kept.
func TestCancelledStatement(t *testing.T) {
	e := openNew(t, func(o *driver.Options) { o.Readers = 1 })
	const slow = "SELECT 1 FROM pg_sleep(600)"
	cancelled := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()

	tx, err := e.Begin(t.Context())
	require.NoError(t, err)
	writer := backend(t, tx)
	_, err = tx.Exec(done, slow)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, writer, backend(t, tx), "the transaction goes on when nothing was begun")
	_, err = tx.Exec(cancelled(), slow)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, tx.Rollback())
	tx, err = e.Begin(t.Context())
	require.NoError(t, err)
	require.Equal(t, writer, backend(t, tx))
	require.NoError(t, tx.Rollback())

	r, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	reader := backend(t, r)
	_, err = r.Query(done, slow)
	require.ErrorIs(t, err, context.Canceled)
	_, err = r.Query(cancelled(), slow)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, r.Close())
	r, err = e.Snapshot(t.Context())
	require.NoError(t, err)
	require.Equal(t, reader, backend(t, r))
	require.NoError(t, r.Close())

	_, err = e.Begin(done)
	require.ErrorIs(t, err, context.Canceled)
	_, err = e.Snapshot(done)
	require.ErrorIs(t, err, context.Canceled)
}

// TestCancelledInsert: rows that wait for a lock on their table, held by a
// writer of another schema.
func TestCancelledInsert(t *testing.T) {
	e, other := openNew(t, nil), openNew(t, nil)
	execute(t, e, createAll)
	holder, err := other.Begin(t.Context())
	require.NoError(t, err)
	_, err = holder.Exec(t.Context(), "LOCK TABLE "+pgx.Identifier{schemaOf(t, e), "t"}.Sanitize()+" IN SHARE MODE")
	require.NoError(t, err)
	for _, rows := range []int{1, copyRows} {
		tx, err := e.Begin(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		require.ErrorIs(t, tx.Insert(ctx, all, makeRows(rows)), context.DeadlineExceeded)
		cancel()
		require.NoError(t, tx.Rollback())
	}
	require.NoError(t, holder.Rollback())
	write(t, e, func(ctx context.Context, tx driver.Tx) {
		require.NoError(t, tx.Insert(ctx, all, makeRows(copyRows)))
	})
}
