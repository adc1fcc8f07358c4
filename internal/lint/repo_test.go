package lint_test

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/lint"
)

// The tests in this file apply each rule to the repository.

func root(t *testing.T) string {
	t.Helper()
	dir, err := lint.Root()
	require.NoError(t, err)
	return dir
}

// read returns the repository's files of one kind, by path relative to it.
func read(t *testing.T, suffixes ...string) map[string]string {
	t.Helper()
	dir := root(t)
	files, err := lint.Files(dir, suffixes...)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	text := make(map[string]string, len(files))
	for _, name := range files {
		content, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		text[name] = string(content)
	}
	return text
}

func report(t *testing.T, problems []lint.Problem) {
	t.Helper()
	for _, p := range problems {
		t.Error(p)
	}
}

// TestEngines: code names an engine only in the list of engines and in the engine's packages.
func TestEngines(t *testing.T) {
	// Tests and suites may; internal/answer says what to do with each, and dialects are called after engines.
	free := regexp.MustCompile(`^(internal/engine|internal/answer|schemas|store/driver|examples|.*test)/|_test\.go$`)
	literal := regexp.MustCompile("[\"`,](" + strings.Join(engine.Names(), "|") + ")[\"`,:]")
	comment := regexp.MustCompile(`(?m)(^|\s)//.*$`)
	for name, text := range read(t, ".go") {
		if free.MatchString(name) {
			continue
		}
		for _, m := range literal.FindAllStringSubmatch(comment.ReplaceAllString(text, ""), -1) {
			of := engine.Find(m[1])
			own := slices.Concat(of.Internal, []string{of.Name})
			if !slices.ContainsFunc(strings.Split(name, "/"), func(dir string) bool { return slices.Contains(own, dir) }) {
				t.Errorf("%s names engine %s: ask internal/engine or the driver's capabilities", name, of.Name)
			}
		}
	}
}

// TestSQLFiles: every SQL file is embedded and taken by its name, and an index says which query it serves.
func TestSQLFiles(t *testing.T) {
	index := regexp.MustCompile(`(?m)^(.*)\nCREATE (UNIQUE )?INDEX\b`)
	keyword := regexp.MustCompile(`(?m)^\s*(select|insert|update|delete|create|drop|alter|from|where|and|or|join|order|group|limit|values|set)\b`)
	listing := regexp.MustCompile(`\b(ReadDir|WalkDir|Glob)\(`)
	source := map[string]string{} // of a package that embeds a file
	for _, p := range packages(t) {
		for _, name := range slices.Concat(p.EmbedFiles, p.TestEmbedFiles, p.XTestEmbedFiles) {
			for _, file := range slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
				if text, err := os.ReadFile(filepath.Join(p.Dir, file)); err == nil { // a test's main is elsewhere
					source[filepath.Join(p.Dir, name)] += string(text)
				}
			}
		}
	}
	for name, text := range read(t, ".sql") {
		code := source[filepath.Join(root(t), name)]
		word := regexp.MustCompile(`\b` + strings.TrimSuffix(path.Base(name), ".sql") + `\b`)
		assert.True(t, listing.MatchString(code) || word.MatchString(code), "%s: no package embeds and names it", name)
		assert.Empty(t, keyword.FindString(text), "%s: a keyword in lower case", name)
		for _, m := range index.FindAllStringSubmatch("\n"+text, -1) {
			assert.Regexp(t, "^-- Serves: ", m[1], `%s: an index without a line "-- Serves: …" that names its query`, name)
		}
	}
}

// TestText: no text has unfinished work, or a path of one machine.
func TestText(t *testing.T) {
	// The words are spelt in two parts so that this file passes its own rule.
	bad := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b|(^|[\s"'(=:])/(wo` + `rk|ro` + `ot|home/[a-z]+)/`)
	for name, text := range read(t, ".go", ".sql", ".md", ".yml", ".mod", "Makefile", ".ci/run") {
		assert.Empty(t, bad.FindAllString(text, -1), name)
	}
}

// TestWorkflows: actions are pinned to a commit, with its tag in a comment, and
// tools have a version.
func TestWorkflows(t *testing.T) {
	pinned := regexp.MustCompile(`uses:\s*(\./|[^@\s]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$)`)
	files, err := filepath.Glob(filepath.Join(root(t), ".github", "workflows", "*.yml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.SplitSeq(string(text), "\n") {
			unpinned := strings.Contains(line, "uses:") && !pinned.MatchString(line)
			if unpinned || regexp.MustCompile(`\S@(latest|main|master)\b`).MatchString(line) {
				t.Errorf("%s: no commit with its tag, or no version: %s", file, line)
			}
		}
	}
}

// TestDependencies: docs/dependencies.md has a row, with a reason, for each module that go.mod
// requires directly, and no other.
func TestDependencies(t *testing.T) {
	var required, listed []string
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(read(t, "go.mod")["go.mod"], -1) {
		required = append(required, m[1])
	}
	const document = "docs/dependencies.md"
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^ |]").FindAllStringSubmatch(read(t, document)[document], -1) {
		listed = append(listed, m[1])
	}
	require.ElementsMatch(t, required, listed)
}

// TestDocuments: links lead somewhere, and names, of documents too, are there.
func TestDocuments(t *testing.T) {
	dir := root(t)
	files, err := lint.Files(dir, "")
	require.NoError(t, err)
	code := read(t, ".go")
	tree, err := lint.NewTree(files, code)
	require.NoError(t, err)
	for name, text := range read(t, ".md") {
		report(t, lint.CheckLinks(dir, name, []byte(text)))
		if name != "CHANGELOG.md" && !lint.Superseded([]byte(text)) { // these describe the past
			report(t, tree.CheckNames(name, []byte(text)))
		}
	}
	page := regexp.MustCompile(`(?m)(?:^|[\s("\x60])(docs/[\w/-]+\.md)\b`)
	for name, text := range code {
		for _, m := range page.FindAllStringSubmatch(text, -1) {
			assert.Contains(t, files, m[1], name)
		}
	}
}

// TestDecisions: decision records are numbered without gaps, have Nygard's sections, and are in the index,
// which says of each whether it holds.
func TestDecisions(t *testing.T) {
	const index = "docs/adr/README.md"
	records := read(t, ".md")
	n := 0
	for _, name := range slices.Sorted(maps.Keys(records)) {
		if name == index || !strings.HasPrefix(name, "docs/adr/") {
			continue
		}
		n++
		assert.Contains(t, name, fmt.Sprintf("/%04d-", n))
		m := regexp.MustCompile(fmt.Sprintf(`(?s)^# %d\. ([^\n]*)\n.*\n## Status\n.*\n## Context\n.*\n## Decision\n.*\n## Consequences\n`, n)).
			FindStringSubmatch(records[name])
		require.NotNil(t, m, "%s: its number and the sections Status, Context, Decision, Consequences", name)
		state := "holds"
		if lint.Superseded([]byte(records[name])) {
			state = "replaced by ["
		}
		assert.Contains(t, records[index], fmt.Sprintf("\n| %d | [%s](%s) | %s", n, m[1], path.Base(name), state))
	}
	require.NotZero(t, n)
}

// TestArchitecture: docs/architecture.md names every package.
func TestArchitecture(t *testing.T) {
	text := read(t, "docs/architecture.md")["docs/architecture.md"]
	for _, p := range packages(t) {
		name, ours := strings.CutPrefix(p.ImportPath, engine.Module+"/")
		if !ours || p.ForTest != "" || strings.Contains(name, ".test") {
			continue
		}
		if dir, base := path.Split(name); slices.Contains(engine.Names(), base) {
			name = dir + "<engine>"
		}
		assert.Contains(t, text, "`"+name+"`")
	}
}

// TestMutants: a mutant that no longer fits the code says nothing about the tests.
func TestMutants(t *testing.T) {
	const name = "internal/tools/mutants/mutants.txt"
	code, file := read(t, ".go"), ""
	for line := range strings.Lines(read(t, name)[name]) {
		switch kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " "); kind {
		case "", "#", "%", "+":
		case "-":
			assert.Equal(t, 1, strings.Count(code[file], rest), "%s: %s", file, rest)
		default:
			file = strings.TrimSuffix(kind, ":")
		}
	}
	require.NotEmpty(t, file)
}
