package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSourceHash: what is measured, and nothing else, changes the revision.
func TestSourceHash(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("go.mod", "module "+modulePath+"\n")
	hash := func() string {
		h, _, err := hashSource(root)
		require.NoError(t, err)
		return h
	}
	last := hash()
	for _, path := range []string{
		"README.md", "docs/benchmarking.md", "internal/report/page.go", "internal/verdict/tree.go", "internal/cli/run.go",
		"store/entities_test.go", "store/testdata/golden.txt", "store/README.md", ".git/HEAD", "notes.txt",
	} {
		write(path, "new")
		require.Equal(t, last, hash(), path)
	}
	for _, path := range []string{"store/entities.go", "store/entities.go", "schemas/meta/sqlite/tables.sql", "go.sum", "internal/new/new.go", "testdata/arkiv-small/queries.jsonl"} {
		write(path, last)
		require.NotEqual(t, last, hash(), path)
		last = hash()
	}
	_, _, err := hashSource(t.TempDir())
	require.ErrorIs(t, err, errNoSource)
}

// TestUnmeasured: no experiment and no engine is built from what the revision does
// not cover.
func TestUnmeasured(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", modulePath+"/internal/experiment", modulePath+"/store/sqlite",
		modulePath+"/store/libsql", modulePath+"/store/duckdb", modulePath+"/store/postgres").Output()
	require.NoError(t, err)
	linked := strings.Fields(string(out))
	require.Contains(t, linked, modulePath+"/bench")
	for _, p := range linked {
		rel, own := strings.CutPrefix(p, modulePath+"/")
		require.NotEqual(t, suites, rel)
		for _, dir := range unmeasured {
			require.False(t, own && (rel == dir || strings.HasPrefix(rel, dir+"/")), "%s is measured", p)
		}
	}
}
