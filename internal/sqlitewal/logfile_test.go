package sqlitewal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLogFile: the file that has the log's name is synced, also when it is a new one, and
// at the end if anything was committed; what failed stays failed.
func TestLogFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db-wal")
	l := &logFile{path: path, durable: true}
	write := func() { require.NoError(t, os.WriteFile(path, []byte("x"), 0o600)) }
	write()
	require.NoError(t, l.sync())
	first := l.is
	require.NoError(t, os.Remove(path))
	write()
	require.NoError(t, l.sync())
	require.False(t, os.SameFile(first, l.is))
	require.Equal(t, int64(2), l.syncs.Load())
	l.used.Store(true)
	require.NoError(t, l.close())
	require.Equal(t, int64(3), l.syncs.Load())
	require.NoError(t, l.sync(), "all is durable")
	require.Equal(t, int64(3), l.syncs.Load())

	l = &logFile{path: path, durable: true}
	l.used.Store(true)
	require.NoError(t, l.close())
	require.Equal(t, int64(1), l.syncs.Load(), "though nobody has synced before")

	l = &logFile{path: path}
	require.NoError(t, l.sync())
	require.Zero(t, l.syncs.Load(), "of another level")

	require.NoError(t, os.Rename(path, path+"-aside"))
	l = &logFile{path: path, durable: true}
	require.ErrorIs(t, l.sync(), os.ErrNotExist)
	require.NoError(t, l.failure(), "a look that failed is not a sync that failed")
	require.NoError(t, os.Rename(path+"-aside", path))
	require.NoError(t, l.sync())
	require.NoError(t, l.close())

	require.NoError(t, os.Remove(path))
	l = &logFile{path: path, durable: true, readOnly: true}
	require.NoError(t, l.sync(), "there is no log")
	require.NoError(t, l.close())

	require.NoError(t, os.Symlink(os.DevNull, path)) // it cannot be synced
	l = &logFile{path: path, durable: true}
	require.Error(t, l.sync())
	require.NoError(t, os.Remove(path))
	write()
	require.Error(t, l.sync())
	require.Error(t, l.failure())
	require.Error(t, l.close())
}
