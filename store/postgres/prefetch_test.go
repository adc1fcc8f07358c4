package postgres

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/store/driver"
)

// TestPrefetch: an expected query sees what was committed before the lock was got,
// its answer serves the same query with the same arguments, and none after a write.
func TestPrefetch(t *testing.T) {
	ctx := t.Context()
	w, url := newWire(t, pgtest.NewURL(t))
	e := openTest(t, url, func(o *driver.Options) { o.Readers = 1 })
	other := openTest(t, url, nil)
	const above = "SELECT count(*) FROM t WHERE a > ?"
	first, err := other.Begin(ctx)
	require.NoError(t, err)
	_, err = first.Exec(ctx, "CREATE TABLE t (a BIGINT)")
	require.NoError(t, err)
	require.NoError(t, first.Commit(ctx))

	// While another process has the lock, a transaction with an expected query waits.
	first, err = other.Begin(ctx)
	require.NoError(t, err)
	_, err = first.Exec(ctx, "INSERT INTO t VALUES (1), (2)")
	require.NoError(t, err)
	begun := make(chan driver.Tx)
	go func() {
		tx, err := driver.Begin(context.WithoutCancel(ctx), e, func() []driver.Prefetch {
			return []driver.Prefetch{{Text: above, Args: []any{int64(0)}}, {Text: above, Args: []any{int64(1)}}}
		})
		if err != nil {
			t.Error(err)
		}
		begun <- tx
	}()
	require.NoError(t, first.Commit(ctx))
	tx := <-begun
	require.NotNil(t, tx)
	defer func() { _ = tx.Rollback() }() // Close waits for it
	read := func(a int64) (n int64) {
		n, err := driver.QueryInt(ctx, tx, above, a)
		require.NoError(t, err)
		return n
	}
	require.Zero(t, w.during(func() {
		require.EqualValues(t, 1, read(1))
	}), "the answer is there")
	require.Equal(t, 1, w.during(func() { require.EqualValues(t, 1, read(1)) }), "it serves once")
	require.Equal(t, 1, w.during(func() { require.Zero(t, read(5)) }), "other arguments")
	require.NoError(t, driver.Run(ctx, tx, "INSERT INTO t VALUES (3)"))
	require.EqualValues(t, 3, read(0), "what was written counts")
	require.NoError(t, tx.Rollback())
	require.EqualValues(t, 2, count(t, e, "t"), "nothing of it is left")
}

// TestPrefetchRefused: a transaction whose expected query cannot run does not begin,
// and the next one does.
func TestPrefetchRefused(t *testing.T) {
	e := openTest(t, pgtest.NewURL(t), nil)
	for _, text := range []string{"SELECT a FROM missing", "SELECT 1 / (1 - pg_backend_pid() / pg_backend_pid())"} {
		expected := func() []driver.Prefetch { return []driver.Prefetch{{Text: text}} }
		_, err := driver.Begin(t.Context(), e, expected)
		require.Error(t, err, text)
		tx, err := e.Begin(t.Context())
		require.NoError(t, err)
		require.NoError(t, tx.Commit(t.Context()))
	}
}
