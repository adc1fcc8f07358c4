package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/cli/clitest"
)

// TestFiles: no command touches a file that it has not made.
func TestFiles(t *testing.T) {
	for _, engine := range []string{"sqlite", "sqlitego", "duckdb"} {
		t.Run(engine, func(t *testing.T) { clitest.RunFiles(t, engine) })
	}
}

// TestRestoreIntoDirectory: the directory of a server may be empty, as that of a volume is,
// and a restore that fails leaves it so.
func TestRestoreIntoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "backup")
	from := url(t, "a.db")
	must(t, "import", arkiv+"blocks.tar", from)
	must(t, "backup", from, file, "--no-verify")
	empty := filepath.Join(t.TempDir(), "volume")
	require.NoError(t, os.Mkdir(empty, 0o700))
	absent := filepath.Join(t.TempDir(), "made")
	for _, dir := range []string{empty, absent} {
		_, errs, code := varve(t, "restore", file, "postgres://"+dir+"?readers=-1")
		require.NotEqual(t, cli.ExitOK, code, errs)
		entries, _ := os.ReadDir(dir) // it may not exist
		require.Empty(t, entries)
	}
	require.NoDirExists(t, absent)
	for _, dir := range []string{empty, absent} {
		must(t, "restore", file, "postgres://"+dir)
		require.Contains(t, must(t, "check", "postgres://"+dir), "digests recomputed")
		_, errs, code := varve(t, "restore", file, "postgres://"+dir)
		require.Equal(t, cli.ExitError, code)
		require.Contains(t, errs, "exists already")
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, entry := range entries {
			require.NotContains(t, entry.Name(), "restore")
		}
	}
}
