package libsql

import (
	"database/sql"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLibrary shows the habits of the bare library that the guards of this package are for. A case
// that fails means that one of them is not needed any more.
func TestLibrary(t *testing.T) {
	path := newPath(t)
	db, err := sql.Open("libsql", "file:"+(&url.URL{Path: path}).EscapedPath())
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	_, err = db.Exec("CREATE TABLE t (n INTEGER PRIMARY KEY, x)")
	require.NoError(t, err)
	var x any
	get := func(n int) any {
		require.NoError(t, db.QueryRow("SELECT x FROM t WHERE n = ?", n).Scan(&x))
		return x
	}

	_, err = db.Exec("INSERT INTO t VALUES (1, ?), (2, ?), (3, ?)", "a\x00b", "2020-01-01", []byte(nil))
	require.NoError(t, err)
	require.Equal(t, "a", get(1), "text is cut at NUL")
	require.Equal(t, time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), get(2), "text becomes a time")
	require.Equal(t, []byte{}, get(3), "nil is no NULL")

	_, err = db.Exec("INSERT INTO t VALUES (4, CAST(x'610062' AS TEXT))")
	require.NoError(t, err)
	require.Equal(t, "a", get(4), "text is cut when read")
	require.NoError(t, db.QueryRow("SELECT CAST(x AS BLOB) FROM t WHERE n = 4").Scan(&x))
	require.Equal(t, []byte("a\x00b"), x)

	_, err = db.Exec("INSERT INTO t VALUES (5, 0); INSERT INTO t VALUES (6, 0)")
	require.NoError(t, err)
	require.NoError(t, db.QueryRow("SELECT max(n) FROM t").Scan(&x))
	require.EqualValues(t, 5, x, "the second statement is passed over")

	_, err = db.Exec("PRAGMA journal_mode")
	require.ErrorContains(t, err, "Execute returned rows")

	id, err := identify(path)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.Eventually(t, func() bool { return !isOpen(id, nil) }, time.Minute, time.Millisecond)
}
