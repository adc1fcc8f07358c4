package pgembed

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/varvedb/varve/store/driver"
)

func TestBadSettings(t *testing.T) {
	t.Parallel()
	dir := madeDir(t)
	for name, tc := range map[string]struct{ setting, value, want string }{
		"unknown":   {"no_such_thing", "1", "no_such_thing"},
		"bad value": {"shared_buffers", "many", "shared_buffers"},
		"too big":   {"shared_buffers", "1000TB", "shared_buffers"},
		"reserved":  {"Listen-Addresses", "*", "cannot be changed"},
		"no name":   {"", "1", "not of the form"},
		"two":       {"a=b", "1", "not of the form"},
		"nul":       {"a", "\x00", "not of the form"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Start(t.Context(), Config{Dir: dir, Settings: []driver.Setting{{Name: tc.setting, Value: tc.value}}})
			require.ErrorContains(t, err, tc.want)
			requireNothingLeft(t, dir)
		})
	}
	start(t, Config{Dir: dir})
}

func TestNoDir(t *testing.T) {
	_, err := Start(t.Context(), Config{})
	require.ErrorContains(t, err, "no directory")
}

// TestCancel cancels the start at many moments; whatever it was doing then,
// nothing may be left, and the next start must work.
func TestCancel(t *testing.T) {
	dir := t.TempDir()
	for _, after := range []time.Duration{0, 20, 150, 500, 800} {
		ctx, cancel := context.WithTimeout(t.Context(), after*time.Millisecond)
		s, err := Start(ctx, Config{Dir: dir})
		cancel()
		if err == nil { // a fast machine
			require.NoError(t, s.Stop(t.Context()))
		} else {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		requireNothingLeft(t, dir)
		require.NoDirExists(t, filepath.Join(dir, "data.part"))
	}
	start(t, Config{Dir: dir})
}

func TestOtherMajorVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	require.NoError(t, os.Mkdir(data, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte("17\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(data, "precious"), []byte("x"), 0o600))
	_, err := Start(t.Context(), Config{Dir: dir})
	require.ErrorIs(t, err, driver.ErrUnsupported)
	require.ErrorContains(t, err, "PostgreSQL 17 and this server is 18")
	require.FileExists(t, filepath.Join(data, "precious"))
	requireNothingLeft(t, dir)
}

func TestForeignFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	require.NoError(t, os.Mkdir(data, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(data, "precious"), []byte("x"), 0o600))
	_, err := Start(t.Context(), Config{Dir: dir})
	require.ErrorIs(t, err, driver.ErrCorrupt)
	require.FileExists(t, filepath.Join(data, "precious"))

	socket := filepath.Join(dir, "socket", "precious")
	require.NoError(t, os.RemoveAll(data))
	require.NoError(t, os.Mkdir(filepath.Dir(socket), 0o700))
	require.NoError(t, os.WriteFile(socket, []byte("x"), 0o600))
	_, err = Start(t.Context(), Config{Dir: dir})
	require.ErrorIs(t, err, unix.ENOTEMPTY)
	require.FileExists(t, socket)
}

func TestDamagedData(t *testing.T) {
	t.Parallel()
	dir := madeDir(t)
	require.NoError(t, os.Remove(filepath.Join(dir, "data", "global", "pg_control")))
	_, err := Start(t.Context(), Config{Dir: dir})
	require.ErrorContains(t, err, "pg_control", "the error carries the server's log")
	requireNothingLeft(t, dir)
}

// mount mounts a small file system for the test.
func mount(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() { soon(t, func() error { return unix.Unmount(dir, 0) }) })
	return dir
}

// soon does what fails while a child that another test starts has files of this one open yet.
func soon(t *testing.T, do func() error) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) { require.NoError(c, do()) }, time.Minute, 10*time.Millisecond)
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	t.Run("new data", func(t *testing.T) {
		dir := mount(t, "size=16m")
		_, err := Start(t.Context(), Config{Dir: dir})
		require.ErrorIs(t, err, driver.ErrDiskFull)
		require.ErrorContains(t, err, "No space left")
		requireNothingLeft(t, dir)
		require.NoDirExists(t, filepath.Join(dir, "data.part"))
	})
	t.Run("existing data", func(t *testing.T) {
		dir := mount(t, "size=128m")
		initDir(t, dir)
		filler := filepath.Join(dir, "filler")
		err := os.WriteFile(filler, make([]byte, 128<<20), 0o600)
		require.ErrorIs(t, err, unix.ENOSPC)
		_, err = Start(t.Context(), Config{Dir: dir})
		require.ErrorIs(t, err, driver.ErrDiskFull)
		requireNothingLeft(t, dir)
		require.NoError(t, os.Remove(filler))
		soon(t, func() error { return os.WriteFile(filler, make([]byte, 1<<20), 0o600) })
		start(t, Config{Dir: dir})
	})
}

func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	dir := mount(t, "size=128m")
	initDir(t, dir)
	soon(t, func() error { return unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, "") })
	_, err := Start(t.Context(), Config{Dir: dir})
	require.ErrorIs(t, err, driver.ErrReadOnly)
	requireNothingLeft(t, dir)
}

func TestLogErrorKeepsLastLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	text := strings.Repeat("line\n", 5000) + "the last\xff\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	tail, err := readTail(path)
	require.NoError(t, err)
	require.Equal(t, tailLines, strings.Count(tail, "\n")+1)
	require.True(t, strings.HasSuffix(tail, "the last?"))
	err = &logError{err: errors.ErrUnsupported, text: tail}
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "\n\tthe last?")
}
