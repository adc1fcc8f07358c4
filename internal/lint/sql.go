package lint

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/varvedb/varve/internal/engine"
)

// CheckEmbedded finds SQL files that no package embeds. Files are absolute
// paths.
func CheckEmbedded(files []string, packages []Package) []Problem {
	embedded := map[string]bool{}
	for i := range packages {
		p := &packages[i]
		for _, list := range [][]string{p.EmbedFiles, p.TestEmbedFiles, p.XTestEmbedFiles} {
			for _, name := range list {
				embedded[filepath.Join(p.Dir, name)] = true
			}
		}
	}
	var problems []Problem
	for _, name := range files {
		if !embedded[name] {
			problems = append(problems, Problem{Path: name, Message: "no package embeds it"})
		}
	}
	return sorted(problems)
}

// listing are the functions by which a package takes every file of a directory.
var listing = regexp.MustCompile(`\b(ReadDir|WalkDir|Glob)\(`)

// embedding matches an embed directive with its patterns.
var embedding = regexp.MustCompile(`(?m)^\s*//go:embed (.*)$`)

// dialects are directories that are chosen by the engine and named by no code.
var dialects = append(engine.Names(), "common")

// CheckReachable finds, among the SQL files that a package embeds, those that
// its source does not take: it must embed the file by its own name, or name the
// file (with or without extension) and each directory that is no dialect, or
// list directories. Files are relative to the package; source maps its Go files
// to their text.
func CheckReachable(files []string, source map[string][]byte) ([]Problem, error) {
	named := map[string]bool{}
	for name, text := range source {
		if listing.Match(text) {
			return nil, nil
		}
		for _, m := range embedding.FindAllSubmatch(text, -1) {
			for _, file := range strings.Fields(string(m[1])) {
				named[file] = true
			}
		}
		f, err := parse(name, text)
		if err != nil {
			return nil, err
		}
		f.literals(func(_ token.Pos, s string) {
			for element := range strings.SplitSeq(strings.TrimSuffix(s, ".sql"), "/") {
				named[element] = true
			}
		})
	}
	var problems []Problem
	for _, name := range files {
		if named[name] {
			continue
		}
		for element := range strings.SplitSeq(strings.TrimSuffix(name, ".sql"), "/") {
			if !named[element] && !slices.Contains(dialects, element) {
				problems = append(problems, Problem{Path: name, Message: "embedded, but no code names " + element})
			}
		}
	}
	return sorted(problems), nil
}

// keyword matches a line that begins with an SQL keyword in lower case. The
// words are those that start a clause and that no column is named after.
var keyword = regexp.MustCompile(`^\s*(select|insert|update|delete|create|drop|alter|with|from|where|and|or|` +
	`join|left|inner|cross|on|using|group|order|limit|offset|union|values|set|returning|having|except|intersect)\b`)

// index matches the line that begins an index.
var index = regexp.MustCompile(`^CREATE (UNIQUE )?INDEX\b`)

// CheckSQL finds clauses that begin in lower case, and indexes without the query
// that they serve.
func CheckSQL(name string, text []byte) []Problem {
	var problems []Problem
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if index.MatchString(line) && (i == 0 || !strings.HasPrefix(lines[i-1], "-- Serves: ")) {
			problems = append(problems, Problem{Path: name, Line: i + 1,
				Message: `index without a line "-- Serves: …" before it that names its query`})
		}
		if m := keyword.FindStringSubmatch(line); m != nil {
			problems = append(problems, Problem{Path: name, Line: i + 1, Message: "keyword in lower case: " + m[1]})
		}
	}
	return problems
}

// literals visits every string literal of the file.
func (f *file) literals(visit func(pos token.Pos, text string)) {
	ast.Inspect(f.tree, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				visit(lit.Pos(), text)
			}
		}
		return true
	})
}
