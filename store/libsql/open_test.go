package libsql

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
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
	file := "libsql://" + t.TempDir() + "/x.db"
	tests := []struct {
		name string
		url  string
		opts driver.Options
		is   error
		says string
	}{
		{name: "parameter", url: file, opts: driver.Options{Params: map[string]string{"authToken": "x"}}, says: "parameter authToken: unknown"},
		{name: "page size", url: file, opts: driver.Options{Params: map[string]string{"page_size": "1000"}}, says: "power of two"},
		{name: "memory", url: "libsql::memory:", is: driver.ErrUnsupported},
		{name: "no path", url: "libsql:", says: "no path"},
		{name: "server", url: "libsql:https://db.example.org", is: driver.ErrUnsupported, says: "store/libsql/remote"},
		{name: "host", url: "libsql://x.db", is: driver.ErrUnsupported, says: "write libsql:x.db"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			u, err := url.Parse(tc.url)
			require.NoError(t, err)
			_, err = open(context.Background(), u, tc.opts)
			require.ErrorContains(t, err, tc.says)
			if tc.is != nil {
				require.ErrorIs(t, err, tc.is)
			}
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

// TestWaitForTheLock ends with its context, which the library does not heed, and at the lock
// timeout.
func TestWaitForTheLock(t *testing.T) {
	path := newPath(t)
	holder := mustOpen(t, path, driver.Options{})
	tx, err := holder.Begin(context.Background())
	require.NoError(t, err)

	hasty := mustOpen(t, path, driver.Options{LockTimeout: 20 * time.Millisecond})
	_, err = hasty.Begin(context.Background())
	require.ErrorIs(t, err, driver.ErrLocked)

	patient := mustOpen(t, path, driver.Options{LockTimeout: 30 * time.Second})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = patient.Begin(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded, "long before the lock timeout")

	require.NoError(t, tx.Rollback())
	for _, e := range []driver.Engine{hasty, patient} {
		write(t, e, func(tx driver.Tx) { mustExec(t, tx, "CREATE TABLE IF NOT EXISTS t (a INTEGER)") })
	}
}

// TestCloseLeavesNothing of a database, though the library closes it in threads of its own.
func TestCloseLeavesNothing(t *testing.T) {
	for range 3 {
		path := newPath(t)
		e, err := openPath(path, driver.Options{})
		require.NoError(t, err)
		write(t, e, func(tx driver.Tx) { mustExec(t, tx, "CREATE TABLE t (a INTEGER)") })
		snapshot(t, e)
		_, err = e.Settings(context.Background())
		require.NoError(t, err)
		id, err := identify(path)
		require.NoError(t, err)
		require.True(t, isOpen(id, nil))
		require.NoError(t, e.Close())
		require.False(t, isOpen(id, nil))
		require.NoFileExists(t, path+"-wal")
	}
}
