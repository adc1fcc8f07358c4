package lint_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/lint"
)

// What sentences of EXPERIMENTS.md say is in the tables of their section.
func TestFiguresOfExperiments(t *testing.T) {
	root, err := lint.Root()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "EXPERIMENTS.md"))
	require.NoError(t, err)
	for _, p := range lint.CheckFigures("EXPERIMENTS.md", text) {
		t.Error(p)
	}
}

func TestCheckFigures(t *testing.T) {
	const table = "\n\n| a | b |\n|---|---|\n| 5,380 (5,138–5,521) | 248K |\n| 886 ms | 0.0135 |\n"
	for sentence, want := range map[string]int{
		"It answers 5,380 reads a second.":                  0,
		"It answers 5,381 reads a second.":                  1,
		"It takes 0.9 s, or 886 ms.":                        0,
		"It takes 0.8 s.":                                   1,
		"It writes 247,575 rows a second.":                  0,
		"It writes 249K rows/s.":                            1,
		"By hand it was 7 ms. <!-- not in a table: 7 -->":   0,
		"By hand it was 7 ms. <!-- not in a table: 7 8 -->": 1,
		"*Published:* 12 ms.":                               0,
	} {
		require.Len(t, lint.CheckFigures("x.md", []byte("# T\n\n"+sentence+table)), want, sentence)
	}
}
