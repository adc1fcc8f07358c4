package pgembed

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// TestLockOfTheDying: the lock that a child of a killed process has for a moment is waited for.
func TestLockOfTheDying(t *testing.T) {
	t.Parallel()
	dir := madeDir(t)
	lock, err := lockDir(t.Context(), dir)
	require.NoError(t, err)
	closed := make(chan error)
	go func() {
		time.Sleep(lockPatience / 10)
		closed <- lock.Close()
	}()
	start(t, Config{Dir: dir})
	require.NoError(t, <-closed)
}

// TestOverlookedServer starts a server while another one, which was not seen, takes
// the data directory: the first attempts end as a real one then does.
func TestOverlookedServer(t *testing.T) {
	t.Parallel()
	root, err := install(t.Context())
	require.NoError(t, err)
	for _, lost := range []int{1, launches} {
		bin := t.TempDir()
		require.NoError(t, os.Symlink(filepath.Join(root, "bin", "initdb"), filepath.Join(bin, "initdb")))
		script := fmt.Sprintf(`#!/bin/sh
if [ "$1" = -D ] && [ $(ls %[1]s | grep -c lost) -lt %[2]d ]; then
	touch %[1]s/lost.$$
	echo 'FATAL:  lock file "postmaster.pid" already exists' >&2
	exit 1
fi
exec %[3]s "$@"
`, bin, lost, filepath.Join(root, "bin", "postgres"))
		require.NoError(t, os.WriteFile(filepath.Join(bin, "postgres"), []byte(script), 0o755))
		dir := madeDir(t)
		s, err := Start(t.Context(), Config{Dir: dir, BinDir: bin})
		if lost == launches {
			require.ErrorContains(t, err, "already exists")
			require.NotErrorIs(t, err, driver.ErrLocked)
			requireNothingLeft(t, dir)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "1", query(t, s, "SELECT 1"))
		require.NoError(t, s.Stop(t.Context()))
	}
}
