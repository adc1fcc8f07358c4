package lint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/lint"
)

func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root(t), ".github", "workflows", "*.yml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		report(t, lint.CheckWorkflow(filepath.Base(file), text))
		report(t, lint.CheckText(filepath.Base(file), text))
	}
}

func TestCheckWorkflow(t *testing.T) {
	commit := strings.Repeat("0a", 20)
	tests := map[string]struct {
		line string
		ok   bool
	}{
		"commit and tag":    {"      - uses: a/b@" + commit + " # v1.2.3", true},
		"of the repository": {"      - uses: ./.github/actions/c", true},
		"under an anchor":   {"        uses: a/b@" + commit, false},
		"tag":               {"      - uses: a/b@v1.2.3", false},
		"short commit":      {"      - uses: a/b@0a0a0a0 # v1.2.3", false},
		"branch":            {"      - uses: a/b@main # v1.2.3", false},
		"tool":              {"      - run: go run a.example/b@v1.2.3 ./...", true},
		"latest tool":       {"      - run: go run a.example/b@latest ./...", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.ok, len(lint.CheckWorkflow("w.yml", []byte("jobs:\n"+tc.line+"\n"))) == 0)
		})
	}
}
