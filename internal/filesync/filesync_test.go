package filesync_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/filesync"
)

// TestWrite: a file is whole or as it was, and nothing is left beside it.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	fails := errors.New("full")
	half := func(f *os.File) error {
		_, err := f.WriteString("half")
		return errors.Join(err, fails)
	}
	requireFiles := func(names ...string) {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		var has []string
		for _, e := range entries {
			has = append(has, e.Name())
		}
		require.Equal(t, names, has)
	}
	require.ErrorIs(t, filesync.Write(path, 0o600, half), fails)
	requireFiles()
	require.NoError(t, os.WriteFile(path+".partial", []byte("of a process that was killed"), 0o600))
	require.NoError(t, filesync.Replace(path, []byte("one"), 0o600))
	require.NoError(t, os.Chmod(path, 0o640))
	require.ErrorIs(t, filesync.Write(path, 0o600, half), fails)
	require.NoError(t, os.Symlink("x", filepath.Join(dir, "y")))
	require.NoError(t, filesync.Replace(filepath.Join(dir, "y"), []byte("two"), 0o600))
	requireFiles("x", "y")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "two", string(text))
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), st.Mode().Perm())
	require.NoError(t, filesync.Replace(os.DevNull, []byte("nobody"), 0o600))
}
