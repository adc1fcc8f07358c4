package lint_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

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

func report(t *testing.T, problems []lint.Problem) {
	t.Helper()
	for _, p := range problems {
		t.Error(p)
	}
}

// read returns the repository's files of one kind, by path relative to it.
func read(t *testing.T, suffixes ...string) map[string][]byte {
	t.Helper()
	dir := root(t)
	files, err := lint.Files(dir, suffixes...)
	require.NoError(t, err)
	text := make(map[string][]byte, len(files))
	for _, name := range files {
		text[name], err = os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
	}
	return text
}

func packages(t *testing.T, dir string) []lint.Package {
	t.Helper()
	list, err := lint.List(t.Context(), dir)
	require.NoError(t, err)
	return list
}

func TestImports(t *testing.T) {
	list := packages(t, root(t))
	report(t, lint.CheckImports(list))
	report(t, lint.CheckWiring(list))
}

func TestBinaries(t *testing.T) {
	modules, err := lint.Modules(root(t))
	require.NoError(t, err)
	require.NotEmpty(t, modules)
	for _, dir := range modules {
		report(t, lint.CheckBinaries(packages(t, dir)))
	}
}

func TestGoSource(t *testing.T) {
	files := read(t, ".go")
	require.Contains(t, files, "internal/lint/repo_test.go")
	for name, text := range files {
		problems, err := lint.CheckSource(name, text)
		require.NoError(t, err)
		report(t, problems)
	}
}

func TestSQLFiles(t *testing.T) {
	dir := root(t)
	list := packages(t, dir)
	var files []string
	for name, text := range read(t, ".sql") {
		report(t, lint.CheckSQL(name, text))
		files = append(files, filepath.Join(dir, name))
	}
	report(t, lint.CheckEmbedded(files, list))
	for _, p := range list {
		if p.Standard || !strings.HasPrefix(p.Dir, dir) || len(p.EmbedFiles) == 0 {
			continue
		}
		source := map[string][]byte{}
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			if filepath.IsAbs(name) {
				path = name // a generated file, such as a test's main
			}
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			source[name] = text
		}
		var embedded []string
		for _, name := range p.EmbedFiles {
			if strings.HasSuffix(name, ".sql") {
				embedded = append(embedded, name)
			}
		}
		problems, err := lint.CheckReachable(embedded, source)
		require.NoError(t, err)
		report(t, problems)
	}
}

func TestText(t *testing.T) {
	for name, text := range read(t, ".go", ".sql", ".md", ".yml", ".mod", "Makefile", ".ci/run") {
		report(t, lint.CheckText(name, text))
	}
}

func TestDocuments(t *testing.T) {
	dir := root(t)
	documents := read(t, ".md")
	records := map[string][]byte{}
	for name, text := range documents {
		report(t, lint.CheckLinks(dir, name, text))
		if record, ok := strings.CutPrefix(name, "docs/adr/"); ok && record != "README.md" {
			records[record] = text
		}
	}
	require.NotEmpty(t, records)
	report(t, lint.CheckDecisions(records))
	report(t, lint.CheckIndex(documents["docs/adr/README.md"], records))
}

// TestNames: what documents name is there.
func TestNames(t *testing.T) {
	files, err := lint.Files(root(t), "")
	require.NoError(t, err)
	tree, err := lint.NewTree(files, read(t, ".go"))
	require.NoError(t, err)
	for name, text := range read(t, ".md") {
		if name != "CHANGELOG.md" && !lint.Superseded(text) { // which tell of what was
			report(t, tree.CheckNames(name, text))
		}
	}
	page := regexp.MustCompile(`(?m)(?:^|[\s("\x60])(docs/[\w/-]+\.md)\b`)
	for name, text := range read(t, ".go") {
		for _, m := range page.FindAllSubmatch(text, -1) {
			if !slices.Contains(files, string(m[1])) {
				t.Errorf("%s: there is no %s", name, m[1])
			}
		}
	}
}

// TestArchitecture: docs/architecture.md names every package.
func TestArchitecture(t *testing.T) {
	text := string(read(t, "docs/architecture.md")["docs/architecture.md"])
	for _, p := range packages(t, root(t)) {
		path, ours := strings.CutPrefix(p.ImportPath, lint.Module+"/")
		if !ours || p.ForTest != "" || strings.Contains(path, ".test") {
			continue
		}
		dir, base := filepath.Split(path)
		if slices.Contains(engine.Names(), base) {
			path = dir + "<engine>"
		}
		if !strings.Contains(text, "`"+path+"`") {
			t.Errorf("docs/architecture.md does not name %s", path)
		}
	}
}

func TestContinuousIntegration(t *testing.T) {
	dir := root(t)
	command, err := lint.TestCommand(read(t, "README.md")["README.md"])
	require.NoError(t, err)
	require.Regexp(t, `^go test .*\./\.\.\.`, command)
	info, err := os.Stat(filepath.Join(dir, ".ci", "run"))
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&0o111, ".ci/run is not executable")
}
