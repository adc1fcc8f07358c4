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

// runDriver tests an engine against the contract of package driver, sentence by
// sentence.
var runDriver = parts[Harness]{
	{"identity", runIdentity},
	{"values", runDriverValues},
	{"bulk", runBulk},
	{"transaction", runTransaction},
	{"reader", runReader},
	{"options", runOptions},
	{"read only", runReadOnly},
	{"close", runClose},
	{"files", runFiles},
	{"moved", runMoved},
	{"lost", runLost},
	{"lost other", runLostOther},
	{"lease", runLease},
	{"overlap", runOverlap},
	{"log", runLog},
	{"leftovers", runLeftovers},
}.run

// runIdentity: an engine reports its name and capabilities, always the same.
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

// newTable creates a table, whose first column is its key if unique is set, and
// inserts rows.
func newTable(t testing.TB, e driver.Engine, unique bool, table *driver.Table, rows ...any) *driver.Table {
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
	if len(rows) > 0 {
		commitRows(t, e, table, rows...)
	}
	return table
}

// numbersTable describes a table of pairs of integers.
func numbersTable(name string) *driver.Table {
	return &driver.Table{Name: name, Columns: []driver.Column{{Name: "id", Type: driver.Int}, {Name: "n", Type: driver.Int}}}
}

// newNumbers makes a table of pairs of integers. The first one is the key.
func newNumbers(t testing.TB, e driver.Engine, name string, rows ...any) *driver.Table {
	t.Helper()
	return newTable(t, e, true, numbersTable(name), rows...)
}

// values returns arguments of a statement, with int converted to int64.
func values(args []any) []any {
	list := slices.Clone(args)
	for i, v := range args {
		if n, is := v.(int); is {
			list[i] = int64(n)
		}
	}
	return list
}

// begin starts a write transaction that the test ends. If the test fails first,
// it is rolled back, because the next test would wait for its lock forever.
func begin(t testing.TB, e driver.Engine) driver.Tx {
	t.Helper()
	tx := must(e.Begin(context.Background()))(t)
	t.Cleanup(func() {
		if t.Failed() {
			_ = tx.Rollback() // the failure was reported
		}
	})
	return tx
}

// inTx runs f in a write transaction and commits it.
func inTx(t testing.TB, e driver.Engine, f func(tx driver.Tx)) {
	t.Helper()
	tx := begin(t, e)
	defer func() { require.NoError(t, tx.Rollback()) }()
	f(tx)
	require.NoError(t, tx.Commit(context.Background()))
}

// commitRows inserts rows in a transaction.
func commitRows(t testing.TB, e driver.Engine, table *driver.Table, rows ...any) {
	t.Helper()
	inTx(t, e, func(tx driver.Tx) { insert(t, tx, table, rows...) })
}

// snapshot opens a reader that is closed at the end of the test.
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
	n, err := tx.Exec(context.Background(), sql, values(args)...)
	require.NoError(t, err, sql)
	return n
}

func insert(t testing.TB, tx driver.Tx, table *driver.Table, rows ...any) {
	t.Helper()
	require.NoError(t, tx.Insert(context.Background(), table, values(rows)))
}

// selectColumn returns the first column of a result.
func selectColumn[T any](t testing.TB, q driver.Querier, sql string, args ...any) []T {
	t.Helper()
	list, err := tryColumn[T](q, sql, args...)
	require.NoError(t, err, sql)
	return list
}

func tryColumn[T any](q driver.Querier, sql string, args ...any) (list []T, err error) {
	rows, err := q.Query(context.Background(), sql, values(args)...)
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

// requireCount checks the number of rows of a table.
func requireCount(t testing.TB, e driver.Engine, table *driver.Table, n int64) {
	t.Helper()
	inView(t, e, func(q driver.Querier) { require.Equal(t, n, countRows(t, q, table)) })
}

// briefly returns a context that ends soon, for waits that must end with it.
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

// async runs f in a goroutine and returns a channel with its error.
func async(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

// requireWaits checks that a call of async is still running after a moment.
func requireWaits(t testing.TB, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		require.Fail(t, "did not wait", "ended with error: %v", err)
	case <-time.After(30 * time.Millisecond):
	}
}

// eventually repeats f until it returns true. It fails after a time that is
// long enough for every engine on a slow machine.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !f(); time.Sleep(5 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "still not so: %s", what)
	}
}

// runReadOnly: an engine that is opened for reading only shows the database and
// refuses writes.
func runReadOnly(t *testing.T, h Harness) {
	if h.Server {
		t.Skip("databases belong to a server: read-only open and missing databases are its own affair")
	}
	ctx := context.Background()
	url := h.NewURL(t)
	readOnly := &store.Options{ReadOnly: true}

	for range 2 { // the first attempt makes no database
		refuseOpen(t, url, readOnly, driver.ErrNotExist, "")
	}
	left := must(filepath.Glob(filePath(t, url) + "*"))(t)
	require.Empty(t, left)

	table := numbersTable("numbers")
	db := openDB(t, url)
	newTable(t, db.Engine(), true, table)
	commitRows(t, db.Engine(), table, 1, 10)
	closeDB(t, db)

	e := h.open(t, withParams(t, url, "read_only", "true"), nil).Engine()
	refuses(t, driver.ErrReadOnly)(e.Begin(ctx))
	requireCount(t, e, table, 1)
	settings := must(e.Settings(ctx))(t)
	require.NotEmpty(t, settings)
	must(e.Stats(ctx))(t)
	if _, err := driver.Checkpoint(ctx, e, true); !errors.Is(err, driver.ErrUnsupported) {
		require.ErrorIs(t, err, driver.ErrReadOnly)
	}
}
