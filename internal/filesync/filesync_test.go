package filesync_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/filelease"
	"github.com/varvedb/varve/internal/filesync"
)

// TestWrite: a file is whole or as it was, and no other file is left.
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
	left := path + ".partial-0123456789abcdef"
	require.NoError(t, os.WriteFile(left, []byte("of a process that was killed"), 0o600))
	held, err := filelease.Open(path+".partial-0123456789abcde0", 0o600) // of one that runs
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path+".partial", []byte("a user's own"), 0o600))
	require.NoError(t, filesync.Replace(path, []byte("one"), 0o600))
	require.NoError(t, os.Chmod(path, 0o640))
	require.ErrorIs(t, filesync.Write(path, 0o600, half), fails)
	require.NoError(t, os.Symlink("x", filepath.Join(dir, "y")))
	require.NoError(t, filesync.Replace(filepath.Join(dir, "y"), []byte("two"), 0o600))
	requireFiles("x", "x.partial", "x.partial-0123456789abcde0", "y")
	require.NoError(t, held.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "two", string(text))
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), st.Mode().Perm())
	require.NoError(t, filesync.Replace(os.DevNull, []byte("nobody"), 0o600))
}

// TestWriteTwice: of two that write a file at once each writes it whole, and of two that
// create it one does.
func TestWriteTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	during := func(write func(string, os.FileMode, func(*os.File) error) error) error {
		return write(path, 0o600, func(f *os.File) error {
			_, err := f.WriteString("first half, ")
			require.NoError(t, err)
			require.NoError(t, write(path, 0o600, func(f *os.File) error {
				_, err := f.WriteString("another")
				return err
			}))
			_, err = f.WriteString("second half")
			return err
		})
	}
	has := func() string {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(text)
	}
	require.ErrorIs(t, during(filesync.Create), fs.ErrExist)
	require.Equal(t, "another", has())
	require.NoError(t, during(filesync.Write))
	require.Equal(t, "first half, second half", has())
	left, err := filepath.Glob(path + "?*")
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestTempDir: a run removes its directory, or the next run does when it was
// killed; a later file of the same name is another's.
func TestTempDir(t *testing.T) {
	stem := filepath.Join(t.TempDir(), "x")
	left := stem + "-0123456789abcdef"
	require.NoError(t, os.Mkdir(left, 0o700))
	theirs := []string{stem + "-mine", stem + "-0123", stem + "-0123456789abcdef01"} // no names of ours
	for _, path := range theirs {
		require.NoError(t, os.Mkdir(path, 0o700))
	}
	var forgotten []string
	forget := func(path string) error { forgotten = append(forgotten, path); return nil }
	one, err := filesync.TempDir(stem, forget)
	require.NoError(t, err)
	require.Equal(t, []string{left}, forgotten)
	require.NoDirExists(t, left)
	for _, path := range theirs {
		require.DirExists(t, path)
	}
	two, err := filesync.TempDir(stem, forget)
	require.NoError(t, err)
	require.DirExists(t, one.Path(), "its run lives")
	require.NoError(t, two.Remove())
	require.NoDirExists(t, two.Path())

	require.NoError(t, os.Rename(one.Path(), stem+"-moved"))
	require.NoError(t, os.WriteFile(one.Path(), []byte("a user's own"), 0o600))
	require.NoError(t, one.Remove())
	require.FileExists(t, one.Path())
}

// TestDir: a file system on which a directory cannot be synced does not offer that.
func TestDir(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no such file system is known here")
	}
	d, err := os.Open("/proc")
	require.NoError(t, err)
	defer d.Close()
	require.ErrorIs(t, d.Sync(), syscall.EINVAL)
	require.NoError(t, filesync.Dir("/proc"))
}
