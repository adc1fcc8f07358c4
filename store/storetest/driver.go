package storetest

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// runDriver holds an engine to the contract of package driver, sentence by
// sentence.
func runDriver(t *testing.T, h Harness) {
	t.Run("identity", func(t *testing.T) { runIdentity(t, h) })
	t.Run("values", func(t *testing.T) { runDriverValues(t, h) })
	t.Run("bulk", func(t *testing.T) { runBulk(t, h) })
	t.Run("transaction", func(t *testing.T) { runTransaction(t, h) })
	t.Run("reader", func(t *testing.T) { runReader(t, h) })
	t.Run("options", func(t *testing.T) { runOptions(t, h) })
	t.Run("read only", func(t *testing.T) { runReadOnly(t, h) })
	t.Run("close", func(t *testing.T) { runClose(t, h) })
	t.Run("files", func(t *testing.T) { runFiles(t, h) })
	t.Run("moved", func(t *testing.T) { runMoved(t, h) })
	t.Run("lost", func(t *testing.T) { runLost(t, h) })
	t.Run("lost other", func(t *testing.T) { runLostOther(t, h) })
	t.Run("lease", func(t *testing.T) { runLease(t, h) })
	t.Run("overlap", func(t *testing.T) { runOverlap(t, h) })
	t.Run("log", func(t *testing.T) { runLog(t, h) })
	t.Run("leftovers", func(t *testing.T) { runLeftovers(t, h) })
}

// runIdentity: an engine says what it is and can do, and stays with it.
func runIdentity(t *testing.T, h Harness) {
	url := h.NewURL(t)
	e := h.open(t, url, nil).Engine()
	info, linked := e.Info(), linkedDriver(t, url)
	require.Equal(t, linked.Name, info.Name)
	require.Contains(t, sqlTypes, info.Dialect)
	require.NotEmpty(t, info.Library)
	require.NotEmpty(t, info.Version)

	caps := e.Capabilities()
	require.Equal(t, caps, e.Capabilities())
	require.Contains(t, caps.Durabilities, driver.Durable)
	lease, err := driver.TakeLease(t.Context(), e)
	require.Equal(t, errors.Is(err, driver.ErrUnsupported), hasGap(e, "lease"), "an engine without a lease declares the gap")
	if err == nil {
		require.NoError(t, lease.Release())
	}
	for _, gap := range caps.Gaps {
		require.NotEmpty(t, gap.Name)
		require.NotEmpty(t, gap.Reason, gap.Name)
	}
	require.Equal(t, !caps.TextNUL, hasGap(e, "text-nul"), "an engine without TextNUL declares the gap")
}

func hasGap(e driver.Engine, name string) bool {
	return slices.ContainsFunc(e.Capabilities().Gaps, func(g driver.Gap) bool { return g.Name == name })
}

// sqlTypes are the names of the column types, for the tables of the tests.
var sqlTypes = map[driver.Dialect]map[driver.Type]string{
	driver.SQLite:   {driver.Int: "INTEGER", driver.Uint: "INTEGER", driver.Text: "TEXT", driver.Blob: "BLOB"},
	driver.DuckDB:   {driver.Int: "BIGINT", driver.Uint: "UBIGINT", driver.Text: "VARCHAR", driver.Blob: "BLOB"},
	driver.Postgres: {driver.Int: "BIGINT", driver.Uint: "BIGINT", driver.Text: `TEXT COLLATE "C"`, driver.Blob: "BYTEA"},
}

// newTable makes a table whose first column, if unique, is its key.
func newTable(t testing.TB, e driver.Engine, unique bool, table *driver.Table) *driver.Table {
	t.Helper()
	columns := make([]string, len(table.Columns))
	for i, c := range table.Columns {
		columns[i] = c.Name + " " + sqlTypes[e.Info().Dialect][c.Type] + " NOT NULL"
	}
	inTx(t, e, func(tx driver.Tx) {
		exec(t, tx, "CREATE TABLE "+table.Name+" ("+strings.Join(columns, ", ")+")")
		if unique {
			exec(t, tx, "CREATE UNIQUE INDEX "+table.Name+"_pk ON "+table.Name+" ("+table.Columns[0].Name+")")
		}
	})
	return table
}

// numbersTable describes a table of pairs of integers.
func numbersTable(name string) *driver.Table {
	return &driver.Table{Name: name, Columns: []driver.Column{{Name: "id", Type: driver.Int}, {Name: "n", Type: driver.Int}}}
}

// begin starts a write transaction that the test ends.
func begin(t testing.TB, e driver.Engine) driver.Tx {
	t.Helper()
	return must(e.Begin(context.Background()))(t)
}

// inTx runs f in a write transaction and commits it.
func inTx(t testing.TB, e driver.Engine, f func(tx driver.Tx)) {
	t.Helper()
	tx := begin(t, e)
	defer func() { require.NoError(t, tx.Rollback()) }()
	f(tx)
	require.NoError(t, tx.Commit(context.Background()))
}

// snapshot opens a reader that the test closes, or the end of the test.
func snapshot(t testing.TB, e driver.Engine) driver.Reader {
	t.Helper()
	r := must(e.Snapshot(context.Background()))(t)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// inView runs f in a reader.
func inView(t testing.TB, e driver.Engine, f func(q driver.Querier)) {
	t.Helper()
	r := must(e.Snapshot(context.Background()))(t)
	defer func() { require.NoError(t, r.Close()) }()
	f(r)
}

func exec(t testing.TB, tx driver.Tx, sql string, args ...any) int64 {
	t.Helper()
	n, err := tx.Exec(context.Background(), sql, args...)
	require.NoError(t, err, sql)
	return n
}

func insert(t testing.TB, tx driver.Tx, table *driver.Table, rows ...any) {
	t.Helper()
	require.NoError(t, tx.Insert(context.Background(), table, rows))
}

// selectColumn returns the first column of a result.
func selectColumn[T any](t testing.TB, q driver.Querier, sql string, args ...any) []T {
	t.Helper()
	list, err := tryColumn[T](q, sql, args...)
	require.NoError(t, err, sql)
	return list
}

func tryColumn[T any](q driver.Querier, sql string, args ...any) (list []T, err error) {
	rows, err := q.Query(context.Background(), sql, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var value T
		if err := rows.Scan(&value); err != nil {
			return list, err
		}
		list = append(list, value)
	}
	return list, rows.Err()
}

// countRows returns the number of rows of a table.
func countRows(t testing.TB, q driver.Querier, table *driver.Table) int64 {
	t.Helper()
	return selectColumn[int64](t, q, "SELECT count(*) FROM "+table.Name)[0]
}

// briefly is a context that ends soon: for waits that must end with it.
func briefly(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// async runs f beside the test and returns the channel that gets its error.
func async(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

// requireWaits checks that something started by async has not ended yet. A
// little time passes in which it wrongly could; none is asserted.
func requireWaits(t testing.TB, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		require.Fail(t, "did not wait", "ended with error: %v", err)
	case <-time.After(30 * time.Millisecond):
	}
}

// eventually repeats f until it is true. It fails after a time in which every
// engine gets there, however slow the machine.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !f(); time.Sleep(5 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "still not so: %s", what)
	}
}

// runReadOnly: what read-only open refuses and what it shows.
func runReadOnly(t *testing.T, h Harness) {
	if h.Server {
		t.Skip("databases belong to a server: read-only open and missing databases are its own affair")
	}
	ctx := context.Background()
	url := h.NewURL(t)
	readOnly := &store.Options{ReadOnly: true}

	_, err := store.Open(ctx, url, readOnly)
	require.ErrorIs(t, err, driver.ErrNotExist)
	_, err = store.Open(ctx, url, readOnly)
	require.ErrorIs(t, err, driver.ErrNotExist, "the first attempt made the database")
	left := must(filepath.Glob(filePath(t, url) + "*"))(t)
	require.Empty(t, left)

	table := numbersTable("numbers")
	db := must(store.Open(t.Context(), url, nil))(t)
	newTable(t, db.Engine(), true, table)
	inTx(t, db.Engine(), func(tx driver.Tx) { insert(t, tx, table, int64(1), int64(10)) })
	require.NoError(t, db.Close())

	e := h.open(t, withParams(t, url, "read_only", "true"), nil).Engine()
	_, err = e.Begin(ctx)
	require.ErrorIs(t, err, driver.ErrReadOnly)
	inView(t, e, func(q driver.Querier) { require.EqualValues(t, 1, countRows(t, q, table)) })
	settings := must(e.Settings(ctx))(t)
	require.NotEmpty(t, settings)
	must(e.Stats(ctx))(t)
	if _, err := driver.Checkpoint(ctx, e, true); !errors.Is(err, driver.ErrUnsupported) {
		require.ErrorIs(t, err, driver.ErrReadOnly)
	}
}
