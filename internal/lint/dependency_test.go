package lint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/lint"
)

func TestDependencies(t *testing.T) {
	dir := root(t)
	list, err := lint.Dependencies(t.Context(), dir)
	require.NoError(t, err)
	require.NotEmpty(t, list)
	const name = "docs/dependencies.md"
	problems, err := lint.CheckDependencies(name, read(t, name)[name], list)
	require.NoError(t, err)
	report(t, problems)
}

func TestCheckDependencies(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "LICENSE"), []byte("Permission is\nhereby granted, free  of charge"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data"), make([]byte, 2_000_000), 0o600))
	list := []lint.Dependency{{Path: "example.com/a", Dir: dir}}
	tests := map[string]struct{ rows, want string }{
		"right":         {"| `example.com/a` | it is needed | MIT | 2.5 |", ""},
		"no row":        {"", "no row of example.com/a"},
		"too many":      {"| `example.com/a` | it is needed | MIT | 2 |\n| `example.com/b` | nothing | MIT | 2 |", "example.com/b is not a direct requirement"},
		"twice":         {"| `example.com/a` | it is needed | MIT | 2 |\n| `example.com/a` | again | MIT | 2 |", "two rows of example.com/a"},
		"no reason":     {"| `example.com/a` |  | MIT | 2 |", "has no reason"},
		"other licence": {"| `example.com/a` | it is needed | ISC | 2 |", `licence "ISC", its source has "MIT"`},
		"has grown":     {"| `example.com/a` | it is needed | MIT | 0.9 |", "its source has 2 MB"},
		"has shrunk":    {"| `example.com/a` | it is needed | MIT | 4.1 |", "its source has 2 MB"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			problems, err := lint.CheckDependencies("d.md", []byte("# Dependencies\n\n"+tc.rows+"\n"), list)
			require.NoError(t, err)
			var text []string
			for _, p := range problems {
				text = append(text, p.Message)
			}
			if tc.want == "" {
				require.Empty(t, text)
				return
			}
			require.Contains(t, strings.Join(text, "\n"), tc.want)
		})
	}
	_, err := lint.CheckDependencies("d.md", []byte("| `example.com/a` | it is needed | MIT | 2 |\n"), []lint.Dependency{{Path: "example.com/a"}})
	require.ErrorContains(t, err, "go mod download")
}
