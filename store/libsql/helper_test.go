package libsql

import (
	"context"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/varvedb/varve/store/driver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newPath returns the path of a database that does not exist yet.
func newPath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "x.db")
}

func openPath(path string, opts driver.Options) (driver.Engine, error) {
	return open(context.Background(), &url.URL{Scheme: "libsql", Path: path}, opts)
}

// mustOpen opens a database and closes it when the test ends.
func mustOpen(t testing.TB, path string, opts driver.Options) driver.Engine {
	t.Helper()
	e, err := openPath(path, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// write runs f in a transaction and commits it.
func write(t testing.TB, e driver.Engine, f func(tx driver.Tx)) {
	t.Helper()
	tx, err := e.Begin(context.Background())
	require.NoError(t, err)
	defer tx.Rollback()
	f(tx)
	require.NoError(t, tx.Commit(context.Background()))
}

func mustExec(t testing.TB, tx driver.Tx, text string, args ...any) int64 {
	t.Helper()
	n, err := tx.Exec(context.Background(), text, args...)
	require.NoError(t, err)
	return n
}

// column returns the first column of a result.
func column[T any](t testing.TB, q driver.Querier, text string, args ...any) []T {
	t.Helper()
	list, err := columnErr[T](q, text, args...)
	require.NoError(t, err)
	return list
}

func columnErr[T any](q driver.Querier, text string, args ...any) ([]T, error) {
	rows, err := q.Query(context.Background(), text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []T
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

func snapshot(t testing.TB, e driver.Engine) driver.Reader {
	t.Helper()
	r, err := e.Snapshot(context.Background())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}
