package dbfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/dbfile"
)

// TestMakeAfterKill: a run that is killed leaves its directory, with the database
// under its name or without. The next run removes the directory and nothing else.
func TestMakeAfterKill(t *testing.T) {
	for name, made := range map[string]bool{"before it has its name": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "x")
			require.NoError(t, os.Mkdir(path+".new-0123456789abcdef", 0o700))
			require.NoError(t, os.Mkdir(path+".new-mine", 0o700))
			if made {
				require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
			}
			require.NoError(t, dbfile.Make(path, true, func(path string) error {
				return os.WriteFile(path, []byte("new"), 0o600)
			}))
			require.NoDirExists(t, path+".new-0123456789abcdef")
			require.DirExists(t, path+".new-mine")
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, map[bool]string{false: "new", true: "old"}[made], string(text))
		})
	}
}
