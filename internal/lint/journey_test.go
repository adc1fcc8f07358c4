package lint_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/engine"
)

var update = flag.Bool("update", false, "write the numbers of files into docs/architecture.md")

// journeys are uses of a store that docs/architecture.md describes, and the most
// files that may run for each, because a newcomer has to read them to follow it.
var journeys = map[string]int{"block": 47, "query": 46, "append": 28}

// readingList is the list of files that the document gives for a journey, with
// the number of all files that run for it.
var readingList = regexp.MustCompile(`(?s)<!-- journey:(\w+) -->(\d+) files.*?\.\n\n`)

// mayDiffer is by how many files two runs of a journey differ, because background
// work runs in some of them.
const mayDiffer = 3

// TestJourneys counts the files that run for a use of a store by coverage
// counters. docs/architecture.md prints the numbers, and a file in its reading
// lists must be one that runs.
func TestJourneys(t *testing.T) {
	dir := t.TempDir()
	command := func(name string, args ...string) {
		cmd := exec.Command(name, args...)
		cmd.Dir = root(t)
		cmd.Env = append(os.Environ(), "GOCOVERDIR="+dir) // of the counters from the program's exit
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	program := filepath.Join(dir, "journey")
	command("go", "build", "-cover", "-covermode=atomic", "-coverpkg="+engine.Module+"/...", "-o", program, "./internal/lint/journey")
	const document = "docs/architecture.md"
	text := read(t, document)[document]
	lists := readingList.FindAllStringSubmatch(text, -1)
	require.Len(t, lists, len(journeys))
	for _, list := range lists {
		journey := list[1]
		counters := filepath.Join(dir, journey)
		require.NoError(t, os.Mkdir(counters, 0o700))
		command(program, journey, engine.Names()[0]+":"+counters+".db", counters)
		ran := filesThatRan(t, counters, command)
		require.LessOrEqual(t, len(ran), journeys[journey], "%s runs through %v", journey, ran)
		for _, name := range regexp.MustCompile("`([^`]+\\.go)`").FindAllStringSubmatch(list[0], -1) {
			assert.Contains(t, ran, name[1], "the reading list of %s has a file that does not run", journey)
		}
		printed, err := strconv.Atoi(list[2])
		require.NoError(t, err)
		if *update {
			place := "<!-- journey:" + journey + " -->"
			text = strings.Replace(text, place+list[2], place+strconv.Itoa(len(ran)), 1)
			continue
		}
		assert.InDelta(t, printed, len(ran), mayDiffer, "%s: go test ./internal/lint -run TestJourneys -update writes the number", journey)
	}
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join(root(t), document), []byte(text), 0o644))
	}
}

// filesThatRan returns the module's files with a counter above zero.
func filesThatRan(t *testing.T, counters string, command func(name string, args ...string)) map[string]bool {
	profile := counters + ".txt"
	command("go", "tool", "covdata", "textfmt", "-i="+counters, "-o="+profile)
	text, err := os.ReadFile(profile)
	require.NoError(t, err)
	ran := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		file, counter, ok := strings.Cut(strings.TrimSpace(line), ".go:")
		file = strings.TrimPrefix(file, engine.Module+"/") + ".go"
		if ok && !strings.HasSuffix(counter, " 0") && !strings.HasPrefix(file, "internal/lint/") {
			ran[file] = true
		}
	}
	return ran
}
