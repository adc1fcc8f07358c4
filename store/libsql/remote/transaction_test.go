package remote

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	_ "github.com/varvedb/varve/store/sqlite"
)

var numbers = &driver.Table{Name: "numbers", Columns: []driver.Column{{Name: "n", Type: driver.Int}}}

const createNumbers = "CREATE TABLE numbers (n INTEGER PRIMARY KEY)"

// quick is a database whose server gives the write lock away after a second.
var quick = configuration{"durability_mode": "strong", "txn_timeout_s": 1}

// takeOver has another client write, after it has waited until the server has ended the
// transaction of the one who does.
func takeOver(t testing.TB, raw string) {
	t.Helper()
	other := mustOpen(t, raw, driver.Options{})
	write(t, other, func(driver.Tx) {})
}

// TestTakenOver: after the server has ended a transaction nothing of it is left, none of
// its calls does anything, and each says so.
func TestTakenOver(t *testing.T) {
	ctx := t.Context()
	ends := map[string]func(tx driver.Tx) error{
		"exec":     func(tx driver.Tx) error { _, err := tx.Exec(ctx, "INSERT INTO numbers VALUES (2)"); return err },
		"query":    func(tx driver.Tx) error { _, err := tx.Query(ctx, "SELECT n FROM numbers"); return err },
		"insert":   func(tx driver.Tx) error { _ = tx.Insert(ctx, numbers, []any{int64(2)}); return tx.Commit(ctx) },
		"commit":   func(tx driver.Tx) error { return tx.Commit(ctx) },
		"rollback": func(tx driver.Tx) error { return tx.Rollback() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := server(t).newURL(t, quick)
			e := mustOpen(t, raw, driver.Options{})
			write(t, e, func(tx driver.Tx) { mustExec(t, tx, createNumbers) })
			tx, err := e.Begin(ctx)
			require.NoError(t, err)
			mustExec(t, tx, "INSERT INTO numbers VALUES (1)")
			takeOver(t, raw)
			for range 2 {
				err := end(tx)
				if err == nil && name == "rollback" {
					continue // the second one does nothing
				}
				require.ErrorContains(t, err, "another client has waited for the write lock")
				require.NotErrorIs(t, err, driver.ErrUnknownOutcome, "it is known")
				if name == "insert" || name == "commit" {
					break // that was the end
				}
			}
			_ = tx.Rollback()
			require.Empty(t, selectColumn[int64](t, snapshot(t, e), "SELECT n FROM numbers"))
			write(t, e, func(tx driver.Tx) { mustExec(t, tx, "INSERT INTO numbers VALUES (3)") })
		})
	}
}

// TestBlocksTakenOver: while another client takes the lock away, at whatever request of a
// commit, each block is there whole or not at all, and can be applied again.
func TestBlocksTakenOver(t *testing.T) {
	t.Parallel()
	blocks := uint64(6)
	if *everyLayout {
		blocks = 100
	}
	want := digests(t, blocks)
	for _, layout := range []string{"arkiv", "compact"} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			raw := server(t).newURL(t, quick)
			db, es := openStore(t, raw, layout)
			w := tap(db.Engine())
			failed := 0
			for n := range blocks {
				request, at := 0, int(n%6)+1 // the first one begins: then the other client is before it
				w.mu.Lock()
				w.delay = func() time.Duration {
					if request++; request == at {
						takeOver(t, raw)
					}
					return 0
				}
				w.mu.Unlock()
				_, err := es.Apply(context.Background(), block(n+1))
				if err != nil {
					require.ErrorContains(t, err, "another client has waited for the write lock")
					failed++
					head, err := es.Head(t.Context())
					require.NoError(t, err)
					require.Equal(t, n == 0, head.Empty)
					if n > 0 {
						require.Equal(t, want[n-1], head.Digest, "nothing of block %d is there", n+1)
					}
					_, err = es.Apply(context.Background(), block(n+1))
					require.NoError(t, err)
				}
				head, err := es.Head(t.Context())
				require.NoError(t, err)
				require.Equal(t, want[n], head.Digest, "all of block %d is there", n+1)
			}
			require.Positive(t, failed)
			t.Logf("%d blocks, %d times taken over", blocks, failed)
		})
	}
}

// digests returns those of the blocks in a store to which nothing happens.
func digests(t testing.TB, blocks uint64) (list []entity.Digest) {
	t.Helper()
	_, es := openStore(t, "sqlite://"+t.TempDir()+"/x.db?durability=unsafe", "arkiv")
	for n := range blocks {
		applied, err := es.Apply(t.Context(), block(n+1))
		require.NoError(t, err)
		list = append(list, applied.Head.Digest)
	}
	return list
}

// TestLateErrors: a write that waits for the next request fails with it, and nothing after it runs.
func TestLateErrors(t *testing.T) {
	ctx := t.Context()
	e := mustOpen(t, newURL(t), driver.Options{})
	write(t, e, func(tx driver.Tx) {
		mustExec(t, tx, createNumbers)
		require.NoError(t, tx.Insert(ctx, numbers, []any{int64(1)}))
	})
	tx, err := e.Begin(ctx)
	require.NoError(t, err)
	defer tx.Rollback() // closing waits for it
	require.NoError(t, tx.Insert(ctx, numbers, []any{int64(2)}))
	require.NoError(t, tx.Insert(ctx, numbers, []any{int64(1)}))
	_, err = tx.Exec(ctx, "INSERT INTO numbers VALUES (3)")
	require.ErrorIs(t, err, driver.ErrConflict)
	require.ErrorContains(t, err, "UNIQUE constraint failed: numbers.n")
	_, err = tx.Exec(ctx, "INSERT INTO numbers VALUES (4)")
	require.ErrorIs(t, err, driver.ErrConflict)
	require.ErrorIs(t, tx.Commit(ctx), driver.ErrConflict)
	require.Equal(t, []int64{1}, selectColumn[int64](t, snapshot(t, e), "SELECT n FROM numbers"))
	write(t, e, func(tx driver.Tx) { mustExec(t, tx, "INSERT INTO numbers VALUES (5)") })
}

// TestIdle: a server ends a stream of which it has not heard for 10 s. Snapshots and transactions
// outlast that, also one whose rows are being read, and what rests gets a new stream.
func TestIdle(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for 12 s")
	}
	t.Parallel()
	raw := newURL(t)
	e := mustOpen(t, raw, driver.Options{})
	write(t, e, func(tx driver.Tx) {
		mustExec(t, tx, createNumbers)
		require.NoError(t, tx.Insert(t.Context(), numbers, []any{int64(1)}))
	})
	held, reading := snapshot(t, e), snapshot(t, e)
	rows, err := reading.Query(t.Context(), "WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 30000) SELECT n, zeroblob(100) FROM t")
	require.NoError(t, err)
	require.True(t, rows.Next())
	tx, err := e.Begin(t.Context())
	require.NoError(t, err)
	mustExec(t, tx, "INSERT INTO numbers VALUES (2)")
	idle := mustOpen(t, raw, driver.Options{})
	require.NotEmpty(t, selectColumn[int64](t, snapshot(t, idle), "SELECT n FROM numbers"))

	time.Sleep(12 * time.Second)
	n := 1
	for rows.Next() {
		n++
	}
	require.NoError(t, rows.Err())
	require.NoError(t, rows.Close())
	require.Equal(t, 30000, n)
	require.Equal(t, []int64{1}, selectColumn[int64](t, reading, "SELECT n FROM numbers"))
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, []int64{1}, selectColumn[int64](t, held, "SELECT n FROM numbers"), "it is the same view")
	_, err = idle.Settings(t.Context())
	require.NoError(t, err)
	write(t, idle, func(tx driver.Tx) { mustExec(t, tx, "INSERT INTO numbers VALUES (3)") })
	require.Equal(t, []int64{1, 2, 3}, selectColumn[int64](t, snapshot(t, idle), "SELECT n FROM numbers"))
}

// TestRestart: a server that is started anew knows no stream. Transactions are lost, and new ones begin.
func TestRestart(t *testing.T) {
	server(t) // or skip
	binary, err := fetchSqld()
	require.NoError(t, err)
	s, err := startSqld(binary)
	require.NoError(t, err)
	t.Cleanup(s.stop)
	s.manage(t, http.MethodPost, "kept/create", configuration{"durability_mode": "strong"})
	e := mustOpen(t, "libsql:http://"+s.http+"?namespace=kept", driver.Options{})
	write(t, e, func(tx driver.Tx) { mustExec(t, tx, createNumbers) })
	view := snapshot(t, e)
	require.NoError(t, snapshot(t, e).Close())
	write(t, e, func(tx driver.Tx) { mustExec(t, tx, "INSERT INTO numbers VALUES (1)") })
	tx, err := e.Begin(t.Context())
	require.NoError(t, err)
	mustExec(t, tx, "INSERT INTO numbers VALUES (2)")

	require.NoError(t, s.restart())
	_, err = view.Query(t.Context(), "SELECT n FROM numbers")
	require.Error(t, err)
	require.ErrorIs(t, tx.Commit(t.Context()), driver.ErrUnknownOutcome)
	require.Equal(t, []int64{1}, selectColumn[int64](t, snapshot(t, e), "SELECT n FROM numbers"))
	write(t, e, func(tx driver.Tx) { mustExec(t, tx, "INSERT INTO numbers VALUES (3)") })
	require.NoError(t, s.restart())
	write(t, e, func(tx driver.Tx) { mustExec(t, tx, "INSERT INTO numbers VALUES (4)") })
	require.Equal(t, []int64{1, 3, 4}, selectColumn[int64](t, snapshot(t, e), "SELECT n FROM numbers"))
}
