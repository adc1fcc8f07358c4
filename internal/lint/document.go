package lint

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Superseded reports whether a later decision record has replaced this one,
// which then describes the past.
func Superseded(text []byte) bool {
	return bytes.Contains(text, []byte("\n## Status\n\nSuperseded by "))
}

// Tree has the names in a repository that documents may refer to.
type Tree struct {
	paths    map[string]bool // of files and directories
	bases    map[string]bool // last elements of these
	packages map[string]bool // names of Go packages
	names    map[string]bool // declared in Go: Name, package.Name, Type.Member
	aliases  map[string]bool // types that have the members of others
}

// NewTree reads the paths of a repository's files and its Go source.
func NewTree(files []string, source map[string]string) (*Tree, error) {
	t := &Tree{paths: map[string]bool{}, bases: map[string]bool{}, packages: map[string]bool{}, names: map[string]bool{}, aliases: map[string]bool{}}
	for _, name := range files {
		for t.bases[path.Base(name)] = true; name != "." && !t.paths[name]; name = path.Dir(name) {
			t.paths[name] = true
		}
	}
	for name, text := range source {
		f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		t.declare(f)
	}
	return t, nil
}

// declare adds the top-level declarations of a file.
func (t *Tree) declare(f *ast.File) {
	pkg := f.Name.Name
	t.packages[pkg] = true
	ast.Inspect(f, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncDecl:
			of := pkg
			if x.Recv != nil {
				of, _, _ = strings.Cut(strings.TrimPrefix(types.ExprString(x.Recv.List[0].Type), "*"), "[")
			}
			t.add(of, x.Name)
			return false
		case *ast.ValueSpec:
			t.add(pkg, x.Names...)
		case *ast.TypeSpec:
			t.add(pkg, x.Name)
			t.aliases[x.Name.Name] = t.aliases[x.Name.Name] || x.Assign.IsValid()
			ast.Inspect(x.Type, func(n ast.Node) bool {
				if field, ok := n.(*ast.Field); ok {
					t.add(x.Name.Name, field.Names...)
				}
				return true
			})
			return false
		}
		return true
	})
}

func (t *Tree) add(of string, names ...*ast.Ident) {
	for _, n := range names {
		t.names[n.Name], t.names[of+"."+n.Name] = true, true
	}
}

var (
	ticked    = regexp.MustCompile("`([^`]+)`")
	baseName  = regexp.MustCompile(`^[\w-]+\.(go|md|sql|proto|ya?ml)$`)
	testName  = regexp.MustCompile(`^(Test|Benchmark|Example|Fuzz)[A-Z_]\w*$`)
	qualified = regexp.MustCompile(`^([A-Za-z]\w*)\.([A-Z]\w*)(\(.*\))?$`)
)

// CheckNames finds names in a Markdown file, between backticks outside of
// fenced blocks, that do not exist in the repository: paths below one of its
// directories, files, tests, and declarations of its Go packages.
func (t *Tree) CheckNames(name string, text []byte) []Problem {
	var problems []Problem
	prose, _ := Fences(text)
	for i, line := range prose {
		for _, m := range ticked.FindAllStringSubmatch(line, -1) {
			if t.lacks(m[1], path.Dir(name)) {
				problems = append(problems, Problem{name, i + 1, "there is no " + m[1]})
			}
		}
	}
	return problems
}

func (t *Tree) lacks(s, dir string) bool {
	if first, _, below := strings.Cut(strings.TrimPrefix(s, "./"), "/"); below && t.paths[first] && !strings.ContainsAny(s, " <*…") {
		p := path.Clean(strings.TrimSuffix(s, "/..."))
		return !t.paths[p] && !t.paths[path.Join(dir, p)]
	}
	if baseName.MatchString(s) {
		return !t.bases[s]
	}
	if testName.MatchString(s) {
		return !t.names[s]
	}
	m := qualified.FindStringSubmatch(s)
	return m != nil && (t.packages[m[1]] || ast.IsExported(m[1])) &&
		!t.names[m[1]+"."+m[2]] && !t.aliases[m[1]]
}

// Matches reports whether a pattern for go test's -run or -bench matches an
// existing test or benchmark.
func (t *Tree) Matches(pattern string) bool {
	first, _, _ := strings.Cut(pattern, "/")
	re, err := regexp.Compile(first)
	for name := range t.names {
		if err == nil && testName.MatchString(name) && re.MatchString(name) {
			return true
		}
	}
	return false
}

// Fences returns the lines of a Markdown text, with empty lines in place of
// fenced blocks, and the kinds of these blocks.
func Fences(text []byte) (prose, kinds []string) {
	fenced := false
	for line := range strings.SplitSeq(string(text), "\n") {
		m := fence.FindStringSubmatch(line)
		if m != nil && !fenced {
			kinds = append(kinds, m[1])
		}
		if m != nil || fenced {
			line = ""
		}
		fenced = fenced != (m != nil)
		prose = append(prose, line)
	}
	return prose, kinds
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^#+ +(.*)$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	linked  = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

// CheckLinks finds links in a Markdown file to missing files and headings. Name
// is relative to root.
func CheckLinks(root, name string, text []byte) []Problem {
	var problems []Problem
	prose, _ := Fences(text)
	for i, line := range prose {
		for _, m := range link.FindAllStringSubmatch(line, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") {
				continue
			}
			path, within := filepath.Join(root, filepath.Dir(name), target), text
			if _, err := os.Stat(path); err != nil && target != "" {
				problems = append(problems, Problem{name, i + 1, "dead link " + m[1]})
				continue
			}
			if strings.HasSuffix(target, ".md") {
				within, _ = os.ReadFile(path) // a missing file is reported by its anchor
			}
			if anchor != "" && !anchors(within)[anchor] {
				problems = append(problems, Problem{name, i + 1, "no heading for " + m[1]})
			}
		}
	}
	return problems
}

// anchors returns the link targets within a Markdown text, as GitHub names
// them.
func anchors(text []byte) map[string]bool {
	found := map[string]bool{}
	prose, _ := Fences(text)
	for _, line := range prose {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		slug := noSlug.ReplaceAllString(strings.ToLower(linked.ReplaceAllString(m[1], "$1")), "")
		slug = strings.ReplaceAll(slug, " ", "-")
		again := slug
		for n := 1; found[again]; n++ {
			again = slug + "-" + strconv.Itoa(n)
		}
		found[again] = true
	}
	return found
}
