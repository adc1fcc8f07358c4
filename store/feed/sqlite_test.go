package feed

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	_ "github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// testEngine is as much of a driver.Engine as Arkiv needs, over database/sql.
// It counts what is open, so that tests see what is left.
type testEngine struct {
	driver.Engine
	db         *sql.DB
	dialect    driver.Dialect
	readers    int
	onSnapshot func(n int) error // before snapshot n, from 1
	snapshots  int
}

func (e *testEngine) Info() driver.Info { return driver.Info{Name: "test", Dialect: e.dialect} }

func (e *testEngine) Snapshot(ctx context.Context) (driver.Reader, error) {
	if e.snapshots++; e.onSnapshot != nil {
		if err := e.onSnapshot(e.snapshots); err != nil {
			return nil, err
		}
	}
	conn, err := e.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	e.readers++
	return &testReader{e: e, conn: conn}, nil
}

func (e *testEngine) View(ctx context.Context) (driver.Reader, error) { return e.Snapshot(ctx) }

type testReader struct {
	e    *testEngine
	conn *sql.Conn
	open int
}

func (r *testReader) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	if r.open > 0 {
		return nil, errors.New("test engine: a query while rows are open")
	}
	rows, err := r.conn.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	r.open++
	return &testRows{Rows: rows, r: r}, nil
}

func (r *testReader) Close() error {
	r.e.readers--
	_, err := r.conn.ExecContext(context.Background(), "ROLLBACK")
	return errors.Join(err, r.conn.Close())
}

type testRows struct {
	*sql.Rows
	r *testReader
}

func (r *testRows) Close() error {
	r.r.open--
	return r.Rows.Close()
}

// openTestEngine opens a database file; at the end of the test every reader
// must be closed.
func openTestEngine(t testing.TB, path string) *testEngine {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_synchronous=OFF")
	require.NoError(t, err)
	e := &testEngine{db: db, dialect: driver.SQLite}
	t.Cleanup(func() {
		require.Zero(t, e.readers, "readers left open")
		require.NoError(t, db.Close())
	})
	return e
}

// openArkivCopy opens a copy of Arkiv's database after changing it.
func openArkivCopy(t testing.TB, statements ...string) *testEngine {
	t.Helper()
	return openCopy(t, databasePath(), statements...)
}

func openCopy(t testing.TB, from string, statements ...string) *testEngine {
	t.Helper()
	path := filepath.Join(t.TempDir(), "copy.db")
	require.NoError(t, os.WriteFile(path, readFile(t, from), 0o600))
	e := openTestEngine(t, path)
	for _, s := range statements {
		_, err := e.db.Exec(s)
		require.NoError(t, err, s)
	}
	return e
}

// queryRow reads one value.
func queryRow(t testing.TB, e *testEngine, query string, dest any) {
	t.Helper()
	require.NoError(t, e.db.QueryRow(query).Scan(dest), query)
}
