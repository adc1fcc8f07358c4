package bench

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// A file is made once, and whole or not at all; a sweep of incomplete data sets
// leaves it.
func TestCacheFile(t *testing.T) {
	t.Setenv(CacheEnv, t.TempDir())
	c, err := OpenCache("")
	require.NoError(t, err)
	get := func(write func(f *os.File) error) (string, error) { return c.File(t.Context(), "key", "x.tar", write) }
	for want, cause := range map[error]error{driver.ErrDiskFull: syscall.ENOSPC, os.ErrInvalid: os.ErrInvalid} {
		_, err = get(func(f *os.File) error {
			_, err := f.WriteString("half")
			return errors.Join(err, cause)
		})
		require.ErrorIs(t, err, want)
		require.NoDirExists(t, c.path("key"))
	}
	path, err := get(func(f *os.File) error { _, err := f.WriteString("whole"); return err })
	require.NoError(t, err)
	require.NoError(t, SweepCache())
	again, err := get(func(*os.File) error { return os.ErrInvalid })
	require.NoError(t, err)
	require.Equal(t, path, again)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "whole", string(text))
	require.NoError(t, EmptyCache())
	require.NoFileExists(t, path)
}
