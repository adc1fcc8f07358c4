package postgres

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/store/driver"
)

// kill ends a connection's server process and waits until it has gone.
func kill(t *testing.T, url string, pid int64) {
	t.Helper()
	pgtest.Exec(t, url, "SELECT pg_terminate_backend("+strconv.FormatInt(pid, 10)+", 10000)")
}

func TestWriterKilled(t *testing.T) {
	url := pgtest.NewURL(t)
	e := openTest(t, url, nil)
	execute(t, e, createAll)
	insert := func(ctx context.Context, tx driver.Tx) error { return tx.Insert(ctx, all, makeRows(1)) }

	t.Run("before a commit", func(t *testing.T) {
		tx, err := e.Begin(t.Context())
		require.NoError(t, err)
		require.NoError(t, insert(t.Context(), tx))
		kill(t, url, backend(t, tx))
		require.ErrorIs(t, tx.Commit(t.Context()), driver.ErrUnknownOutcome)
		require.NoError(t, tx.Rollback())
	})
	t.Run("before a statement", func(t *testing.T) {
		for _, rows := range []int{1, copyRows} {
			tx, err := e.Begin(t.Context())
			require.NoError(t, err)
			kill(t, url, backend(t, tx))
			require.Error(t, tx.Insert(t.Context(), all, makeRows(rows)))
			err = tx.Commit(t.Context())
			require.ErrorContains(t, err, "connection")
			require.NotErrorIs(t, err, driver.ErrUnknownOutcome, "nothing was asked of the server")
		}
	})
	t.Run("idle", func(t *testing.T) {
		tx, err := e.Begin(t.Context())
		require.NoError(t, err)
		pid := backend(t, tx)
		require.NoError(t, tx.Rollback())
		kill(t, url, pid)
		execute(t, e, "CREATE TABLE after_idle (n bigint)")
	})
	require.Zero(t, count(t, e, "t"))
	write(t, e, func(ctx context.Context, tx driver.Tx) { require.NoError(t, insert(ctx, tx)) })
	require.EqualValues(t, 1, count(t, e, "t"))
}

func TestReaderKilled(t *testing.T) {
	url := pgtest.NewURL(t)
	e := openTest(t, url, func(o *driver.Options) { o.Readers = 1 })
	r, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	kill(t, url, backend(t, r))
	_, err = r.Query(t.Context(), "SELECT 1")
	require.Error(t, err) // the server's words or the socket's, whichever comes first
	require.NoError(t, r.Close())

	r, err = e.Snapshot(t.Context())
	require.NoError(t, err)
	require.NotZero(t, backend(t, r))
	require.NoError(t, r.Close())
}

// TestAllKilled: connections that are idle when the server restarts are
// replaced unnoticed.
func TestAllKilled(t *testing.T) {
	url := pgtest.NewURL(t)
	e := openTest(t, url, nil)
	var readers []driver.Reader
	for range e.session.opts.Readers {
		r, err := e.Snapshot(t.Context())
		require.NoError(t, err)
		readers = append(readers, r)
	}
	for _, r := range readers {
		require.NoError(t, r.Close())
	}
	pgtest.Exec(t, url, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = 'varve'")
	r, err := e.View(t.Context())
	require.NoError(t, err)
	require.NotZero(t, backend(t, r))
	require.NoError(t, r.Close())
	execute(t, e, createAll)
	require.Zero(t, count(t, e, "t"))
	_, err = e.Stats(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, settings(t, e))
}

// TestStalePlan: a prepared statement of a table that was replaced fails once.
func TestStalePlan(t *testing.T) {
	e := openNew(t, func(o *driver.Options) { o.Readers = 1 })
	const text = "SELECT * FROM v"
	query := func() error {
		r, err := e.Snapshot(t.Context())
		require.NoError(t, err)
		rows, err := r.Query(t.Context(), text)
		if err == nil {
			require.NoError(t, rows.Close())
		}
		require.NoError(t, r.Close())
		return err
	}
	execute(t, e, "CREATE TABLE v (a bigint)")
	require.NoError(t, query())
	execute(t, e, "DROP TABLE v", "CREATE TABLE v (a text, b text)")
	err := query()
	require.ErrorIs(t, err, driver.ErrConflict)
	require.ErrorContains(t, err, "begin again")
	require.NoError(t, query())
}
