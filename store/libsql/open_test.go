package libsql

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

func TestRegistered(t *testing.T) {
	d, ok := driver.Lookup("libsql")
	require.True(t, ok)
	require.Equal(t, driver.SQLite, d.Info.Dialect)
	e := mustOpen(t, newPath(t), driver.Options{})
	require.Equal(t, d.Capabilities, e.Capabilities())
	require.Equal(t, "3.45.1", e.Info().Version, "look again at the gap wal-reset: 3.51.3 has it mended")
}

func TestOpenRefuses(t *testing.T) {
	file := func(content string) func(dir string) string {
		return func(dir string) string {
			path := filepath.Join(dir, "file")
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
			return "libsql:" + path
		}
	}
	at := func(rest string) func(dir string) string {
		return func(dir string) string { return "libsql://" + dir + rest }
	}
	fixed := func(raw string) func(string) string { return func(string) string { return raw } }
	tests := []struct {
		name string
		url  func(dir string) string
		opts driver.Options
		is   error
		says string
	}{
		{name: "no directory", url: at("/missing/x.db"), says: "does not exist; make it first"},
		{name: "a directory", url: at(""), is: driver.ErrCorrupt, says: "not a regular file"},
		{name: "missing, read-only", url: at("/x.db"), opts: driver.Options{ReadOnly: true}, is: driver.ErrNotExist},
		{name: "short file", url: file("hello"), is: driver.ErrCorrupt, says: "file is not a database"},
		{name: "long file", url: file(strings.Repeat("hello ", 2000)), is: driver.ErrCorrupt},
		{name: "long file, read-only", url: file(strings.Repeat("hello ", 2000)), opts: driver.Options{ReadOnly: true}, is: driver.ErrCorrupt},
		{name: "parameter", url: at("/x.db"), opts: driver.Options{Params: map[string]string{"authToken": "x"}}, says: "parameter authToken: unknown"},
		{name: "page size", url: at("/x.db"), opts: driver.Options{Params: map[string]string{"page_size": "1000"}}, says: "power of two"},
		{name: "memory", url: fixed("libsql::memory:"), is: driver.ErrUnsupported},
		{name: "no path", url: fixed("libsql:"), says: "no path"},
		{name: "server", url: fixed("libsql:https://db.example.org"), is: driver.ErrUnsupported, says: "store/libsql/remote"},
		{name: "host", url: fixed("libsql://x.db"), is: driver.ErrUnsupported, says: "write libsql:x.db"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			u, err := url.Parse(tc.url(dir))
			require.NoError(t, err)
			before := descriptors(t)
			_, err = open(context.Background(), u, tc.opts)
			require.Error(t, err)
			if tc.is != nil {
				require.ErrorIs(t, err, tc.is)
			}
			require.ErrorContains(t, err, tc.says)
			require.Equal(t, before, descriptors(t))
			_, err = os.Stat(filepath.Join(dir, "x.db"))
			require.ErrorIs(t, err, os.ErrNotExist, "a refused Open makes no file")
		})
	}
}

func TestOpenWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("needs a user other than root, who may write everywhere")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "x.db")
	require.NoError(t, mustOpen(t, path, driver.Options{}).Close())
	require.NoError(t, os.Chmod(path, 0o400))
	_, err := openPath(path, driver.Options{})
	require.ErrorIs(t, err, driver.ErrReadOnly)
	require.NoError(t, os.Chmod(dir, 0o500))
	defer func() { require.NoError(t, os.Chmod(dir, 0o700)) }() // for the clean-up
	_, err = openPath(filepath.Join(dir, "y.db"), driver.Options{})
	require.ErrorIs(t, err, driver.ErrReadOnly)
}

func TestPathsOfAnyName(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"a b", "a?b", "a%41b", "a#b", "a&mode=ro", "ä", "a'b"} {
		t.Run(name, func(t *testing.T) {
			mustOpen(t, filepath.Join(dir, name), driver.Options{})
			require.FileExists(t, filepath.Join(dir, name))
			e, err := open(context.Background(), &url.URL{Scheme: "libsql", Opaque: url.PathEscape("r" + name)}, driver.Options{})
			require.NoError(t, err)
			require.NoError(t, e.Close())
			require.FileExists(t, "r"+name)
		})
	}
}

func TestReadOnly(t *testing.T) {
	ctx := context.Background()
	path := newPath(t)
	writer := mustOpen(t, path, driver.Options{})
	write(t, writer, func(tx driver.Tx) {
		mustExec(t, tx, "CREATE TABLE t (a INTEGER)")
		mustExec(t, tx, "INSERT INTO t VALUES (1)")
	})
	e := mustOpen(t, path, driver.Options{ReadOnly: true})
	_, err := e.Begin(ctx)
	require.ErrorIs(t, err, driver.ErrReadOnly)
	_, err = e.Checkpoint(ctx, false)
	require.ErrorIs(t, err, driver.ErrReadOnly)
	for _, engine := range []driver.Engine{e, writer} {
		r := snapshot(t, engine)
		require.Equal(t, []int64{1}, column[int64](t, r, "SELECT a FROM t"))
		_, err = columnErr[int64](r, "INSERT INTO t VALUES (2) RETURNING a")
		require.ErrorIs(t, err, driver.ErrReadOnly)
	}
	require.NoError(t, e.Close())
	write(t, writer, func(tx driver.Tx) { mustExec(t, tx, "INSERT INTO t VALUES (2)") })
}

func TestLockedByAnotherProcess(t *testing.T) {
	path := newPath(t)
	write(t, mustOpen(t, path, driver.Options{}), func(tx driver.Tx) { mustExec(t, tx, "CREATE TABLE t (a INTEGER)") })
	unlock := lockElsewhere(t, path)

	hasty := mustOpen(t, path, driver.Options{LockTimeout: 20 * time.Millisecond})
	_, err := hasty.Begin(context.Background())
	require.ErrorIs(t, err, driver.ErrLocked)

	patient := mustOpen(t, path, driver.Options{LockTimeout: 30 * time.Second})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = patient.Begin(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded, "long before the lock timeout")

	require.Empty(t, column[int64](t, snapshot(t, hasty), "SELECT a FROM t"), "readers go on")
	unlock()
	for _, e := range []driver.Engine{hasty, patient} {
		write(t, e, func(tx driver.Tx) { mustExec(t, tx, "INSERT INTO t VALUES (1)") })
	}
}

// descriptors counts those of this process, once the library's threads run.
func descriptors(t *testing.T) int {
	t.Helper()
	e, err := openPath(newPath(t), driver.Options{})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	list, err := os.ReadDir("/dev/fd")
	require.NoError(t, err)
	return len(list)
}

func TestCloseLeavesNothing(t *testing.T) {
	ctx := context.Background()
	before := descriptors(t)
	for range 3 {
		path := newPath(t)
		e, err := openPath(path, driver.Options{})
		require.NoError(t, err)
		write(t, e, func(tx driver.Tx) { mustExec(t, tx, "CREATE TABLE t (a INTEGER)") })
		open := snapshot(t, e)
		_, err = e.Settings(ctx)
		require.NoError(t, err)
		id, err := identify(path)
		require.NoError(t, err)
		require.True(t, isOpen(id))
		require.NoError(t, e.Close())
		require.False(t, isOpen(id))
		require.NoFileExists(t, path+"-wal")
		require.NoError(t, e.Close(), "a second Close")
		_, err = columnErr[int64](open, "SELECT a FROM t")
		require.ErrorIs(t, err, driver.ErrClosed)
		_, err = e.Begin(ctx)
		require.ErrorIs(t, err, driver.ErrClosed)
	}
	require.Equal(t, before, descriptors(t))
}
