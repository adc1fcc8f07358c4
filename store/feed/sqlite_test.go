package feed

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
	_ "github.com/varvedb/varve/store/sqlite"
)

// testEngine is SQLite. It counts open readers, and lets tests write before a
// snapshot and while it is open.
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
	r, err := e.Engine.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	e.readers++
	return &testReader{r, e}, nil
}

type testReader struct {
	driver.Reader
	e *testEngine
}

func (r *testReader) Close() error {
	r.e.readers--
	return r.Reader.Close()
}

// openTestEngine opens a database file. At the end of the test every reader must be closed.
func openTestEngine(t testing.TB, path string) *testEngine {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_synchronous=OFF")
	require.NoError(t, err)
	d, _ := driver.Lookup("sqlite")
	engine, err := d.Open(t.Context(), &url.URL{Scheme: d.Name, Path: path}, driver.Options{ReadOnly: true}.WithDefaults())
	require.NoError(t, err)
	e := &testEngine{Engine: engine, db: db, dialect: driver.SQLite}
	t.Cleanup(func() {
		require.Zero(t, e.readers, "readers left open")
		require.NoError(t, errors.Join(engine.Close(), db.Close()))
	})
	return e
}

// openCopy opens a copy of a database after changing it.
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

// openArkivCopy opens a copy of the database of sqlite-store after changing it.
func openArkivCopy(t testing.TB, statements ...string) *testEngine {
	t.Helper()
	return openCopy(t, databasePath(), statements...)
}

// queryRow reads one value.
func queryRow(t testing.TB, e *testEngine, query string, dest any) {
	t.Helper()
	require.NoError(t, e.db.QueryRow(query).Scan(dest), query)
}
