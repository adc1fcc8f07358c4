package storetest

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/varvedb/varve/store/driver"
)

// runTransaction tests write transactions, one at a time.
func runTransaction(t *testing.T, h Harness) {
	url := h.NewURL(t)
	e := h.open(t, url, nil).Engine()
	parts[driver.Engine]{
		{"one at a time", testOneWriter},
		{"no lost update", testNoLostUpdate},
		{"rollback", testRollback},
		{"after the end", testAfterEnd},
		{"cancelled commit", testCancelledCommit},
	}.run(t, e)
	t.Run("cancelled begin", func(t *testing.T) { testCancelledBegin(t, h, e) })
	parts[driver.Engine]{
		{"failed statement", testFailedStatement},
		{"rows open at the end", testOpenRows},
	}.run(t, e)
	t.Run("another connection", func(t *testing.T) { testOtherWriter(t, h, url) })
}

// testOneWriter: Begin waits for the transaction before it, until ctx is done.
func testOneWriter(t *testing.T, e driver.Engine) {
	first := begin(t, e)
	requireNoBegin(briefly(t), t, e, context.DeadlineExceeded)
	requireNoBegin(cancelled(), t, e, context.Canceled)

	second := async(func() error {
		tx, err := e.Begin(context.Background())
		if err != nil {
			return err
		}
		return tx.Commit(context.Background())
	})
	requireWaits(t, second)
	require.NoError(t, first.Rollback())
	require.NoError(t, <-second)
	requireNoBegin(cancelled(), t, e, context.Canceled) // also without a writer
}

// requireNoBegin checks that Begin fails. If it does not, the transaction is
// rolled back.
func requireNoBegin(ctx context.Context, t testing.TB, e driver.Engine, want error) {
	t.Helper()
	tx, err := e.Begin(ctx)
	if err == nil {
		err = tx.Rollback()
	}
	require.ErrorIs(t, err, want)
}

// testNoLostUpdate: transactions that read and then write run one after the
// other.
func testNoLostUpdate(t *testing.T, e driver.Engine) {
	const writers, rounds = 4, 10
	newNumbers(t, e, "counter", 1, 0)
	count := func() (err error) {
		tx, err := e.Begin(context.Background())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, tx.Rollback()) }()
		n, err := tryColumn[int64](tx, "SELECT n FROM counter WHERE id = ?", 1)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(context.Background(), "UPDATE counter SET n = ? WHERE id = ?", n[0]+1, int64(1)); err != nil {
			return err
		}
		return tx.Commit(context.Background())
	}
	var group errgroup.Group
	for range writers {
		group.Go(func() error {
			for range rounds {
				if err := count(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	inView(t, e, func(q driver.Querier) {
		require.Equal(t, []int64{writers * rounds}, selectColumn[int64](t, q, "SELECT n FROM counter"))
	})
}

func testRollback(t *testing.T, e driver.Engine) {
	table := newNumbers(t, e, "rollbacks", 1, 1)
	tx := begin(t, e)
	insert(t, tx, table, 2, 2)
	require.EqualValues(t, 2, exec(t, tx, "UPDATE rollbacks SET n = ?", 5))
	require.EqualValues(t, 1, exec(t, tx, "DELETE FROM rollbacks WHERE id = ?", 1))
	require.EqualValues(t, 0, exec(t, tx, "DELETE FROM rollbacks WHERE id = ?", 1))
	require.NoError(t, tx.Rollback())
	require.NoError(t, tx.Rollback(), "a second one does nothing")
	inView(t, e, func(q driver.Querier) {
		require.Equal(t, []int64{1}, selectColumn[int64](t, q, "SELECT n FROM rollbacks"))
	})
}

// testAfterEnd: a transaction that has ended refuses every call and does not
// disturb the next transaction.
func testAfterEnd(t *testing.T, e driver.Engine) {
	ctx := context.Background()
	table := newNumbers(t, e, "ends")
	update := &driver.Update{Table: "ends", Set: table.Columns[1], Key: table.Columns[:1]}
	for name, end := range map[string]func(tx driver.Tx) error{
		"commit":   func(tx driver.Tx) error { return tx.Commit(ctx) },
		"rollback": func(tx driver.Tx) error { return tx.Rollback() },
	} {
		t.Run(name, func(t *testing.T) {
			old := begin(t, e)
			require.NoError(t, end(old))
			next := begin(t, e)
			defer next.Rollback()
			refuses(t, driver.ErrClosed)(old.Exec(ctx, "DELETE FROM ends"))
			refuses(t, driver.ErrClosed)(old.Query(ctx, "SELECT n FROM ends"))
			require.ErrorIs(t, old.Insert(ctx, table, []any{int64(1), int64(1)}), driver.ErrClosed)
			require.ErrorIs(t, old.Update(ctx, update, int64(1), []any{int64(1)}), driver.ErrClosed)
			require.ErrorIs(t, old.Commit(ctx), driver.ErrClosed)
			require.NoError(t, old.Rollback(), "rollback after the end does nothing")
			exec(t, next, "DELETE FROM ends")
			insert(t, next, table, 1, 1)
			require.NoError(t, next.Commit(ctx))
			requireCount(t, e, table, 1)
		})
	}
}

func testCancelledCommit(t *testing.T, e driver.Engine) {
	table := newNumbers(t, e, "cancels")
	tx := begin(t, e)
	insert(t, tx, table, 1, 1)
	require.ErrorIs(t, tx.Commit(cancelled()), context.Canceled)
	require.ErrorIs(t, tx.Commit(context.Background()), driver.ErrClosed, "it was rolled back")
	require.NoError(t, tx.Rollback())
	requireCount(t, e, table, 0)
	commitRows(t, e, table, 1, 1)
}

// testFailedStatement: after a wrong statement the transaction can be rolled
// back, and the engine works on.
func testFailedStatement(t *testing.T, e driver.Engine) {
	tx := begin(t, e)
	_, err := tx.Exec(context.Background(), "DELETE FROM no_such_table")
	require.Error(t, err)
	require.NoError(t, tx.Rollback())
	tx = begin(t, e)
	_, err = tx.Query(context.Background(), "SELECT nonsense FROM")
	require.Error(t, err)
	require.NoError(t, tx.Rollback())
	inTx(t, e, func(driver.Tx) {})
}

// testOpenRows: a result that was not read to its end does not disturb a later
// transaction.
func testOpenRows(t *testing.T, e driver.Engine) {
	table := newNumbers(t, e, "open_rows", 1, 1, 2, 2)
	tx := begin(t, e)
	rows := must(tx.Query(context.Background(), "SELECT n FROM open_rows"))(t)
	require.True(t, rows.Next())
	require.NoError(t, rows.Close())
	require.NoError(t, tx.Rollback())
	inTx(t, e, func(tx driver.Tx) { require.EqualValues(t, 2, countRows(t, tx, table)) })
}

// testOtherWriter: another connection to the database waits for the lock as
// long as its lock timeout, and gets the lock once it is free.
func testOtherWriter(t *testing.T, h Harness, url string) {
	if !linkedDriver(t, url).Capabilities.MultiProcess {
		t.Skip("without MultiProcess there is no other connection")
	}
	here := h.open(t, url, nil).Engine()
	there := h.open(t, withParams(t, url, "lock_timeout", "50ms"), nil).Engine()
	tx := begin(t, here)
	requireNoBegin(context.Background(), t, there, driver.ErrLocked)
	require.NoError(t, tx.Rollback())
	eventually(t, "a lock that is free is given", func() bool {
		tx, err := there.Begin(context.Background())
		if errors.Is(err, driver.ErrLocked) {
			return false // on a busy machine a request may take longer than the lock timeout
		}
		require.NoError(t, err)
		require.NoError(t, tx.Rollback())
		return true
	})
}

// testCancelledBegin: the context of Begin ends at any moment. The next
// transaction is a new one. With Harness.Checks fewer moments are tried,
// because DuckDB's client sleeps after it has interrupted a statement, and
// Postgres is asked to cancel over a new connection.
func testCancelledBegin(t *testing.T, h Harness, e driver.Engine) {
	moments := 512
	if h.slow() {
		moments = 64
	}
	for i := range moments {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range i % 128 {
				runtime.Gosched()
			}
			cancel()
		}()
		if tx, err := e.Begin(ctx); err == nil {
			require.NoError(t, tx.Rollback())
		}
		if r, err := e.Snapshot(ctx); err == nil {
			require.NoError(t, r.Close())
		}
		<-done
		require.NoError(t, begin(t, e).Rollback())
		r := must(e.Snapshot(context.Background()))(t)
		require.NoError(t, r.Close())
	}
}
