package dbfile_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/crashtest"
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

// fill makes a database of a few bytes.
func fill(path string) error { return os.WriteFile(path, []byte("new"), 0o600) }

// makeEnv has the test's program make a database at a path, in makeSync a
// durable one.
const (
	makeEnv  = "VARVE_TEST_MAKE"
	makeSync = "VARVE_TEST_MAKE_DURABLE"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(makeEnv); path != "" {
		if err := dbfile.Make(path, os.Getenv(makeSync) != "", fill); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// step matches a system call that syncs a file or directory, or names a file, in
// the output of strace.
var step = regexp.MustCompile(`(?m)^\d+ +(?:f(?:data)?sync\(\d+<([^>]*)>|renameat2\(|linkat\()`)

// TestMakeSyncs: a durable database is on the disk before it has its name, and
// the name is before Make returns, because an engine syncs neither. One that need
// not survive the loss of power is not synced.
func TestMakeSyncs(t *testing.T) {
	if reason := crashtest.CannotTrace(); reason != "" {
		t.Skip(reason)
	}
	for durable, want := range map[string][]string{"yes": {"the file", "its name", "the directory"}, "": {"its name"}} {
		t.Run("durable="+durable, func(t *testing.T) {
			dir := t.TempDir()
			path, trace := filepath.Join(dir, "x"), filepath.Join(t.TempDir(), "trace")
			cmd := exec.Command("strace", "-f", "-y", "-qq", "-e", "trace=fsync,fdatasync,renameat2,linkat", "-o", trace, os.Args[0])
			cmd.Env = append(os.Environ(), makeEnv+"="+path, makeSync+"="+durable)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.FileExists(t, path)
			text, err := os.ReadFile(trace)
			require.NoError(t, err)
			var got []string
			for _, call := range step.FindAllSubmatch(text, -1) {
				switch synced := string(call[1]); {
				case synced == "":
					got = append(got, "its name")
				case synced == dir:
					got = append(got, "the directory")
				case filepath.Base(synced) == "x":
					got = append(got, "the file")
				default:
					got = append(got, synced)
				}
			}
			require.Equal(t, want, got, "%s", text)
		})
	}
}
