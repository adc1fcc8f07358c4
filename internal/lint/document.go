package lint

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Tree is what a repository has that documents may name.
type Tree struct {
	paths    map[string]bool // of files and directories
	bases    map[string]bool // last elements of these
	packages map[string]bool // names of Go packages
	names    map[string]bool // declared in Go: Name, package.Name, Type.Member
}

// NewTree reads the paths of a repository's files and its Go source.
func NewTree(files []string, source map[string][]byte) (*Tree, error) {
	t := &Tree{paths: map[string]bool{}, bases: map[string]bool{}, packages: map[string]bool{}, names: map[string]bool{}}
	for _, name := range files {
		for t.bases[path.Base(name)] = true; name != "." && !t.paths[name]; name = path.Dir(name) {
			t.paths[name] = true
		}
	}
	for name, text := range source {
		f, err := parse(name, text)
		if err != nil {
			return nil, err
		}
		pkg := f.tree.Name.Name
		t.packages[pkg] = true
		for _, decl := range f.tree.Decls {
			t.declare(pkg, decl)
		}
	}
	return t, nil
}

func (t *Tree) declare(pkg string, decl ast.Decl) {
	if d, ok := decl.(*ast.FuncDecl); ok {
		if d.Recv != nil {
			t.names[receiver(d.Recv.List[0].Type)+"."+d.Name.Name] = true
			return
		}
		t.names[d.Name.Name], t.names[pkg+"."+d.Name.Name] = true, true
		return
	}
	d, ok := decl.(*ast.GenDecl)
	if !ok || d.Tok == token.IMPORT {
		return
	}
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.ValueSpec:
			for _, n := range s.Names {
				t.names[n.Name], t.names[pkg+"."+n.Name] = true, true
			}
		case *ast.TypeSpec:
			t.names[s.Name.Name], t.names[pkg+"."+s.Name.Name] = true, true
			t.names[s.Name.Name+".="] = s.Assign.IsValid()
			for _, field := range members(s.Type) {
				for _, n := range field.Names {
					t.names[s.Name.Name+"."+n.Name] = true
				}
			}
		}
	}
}

func receiver(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func members(e ast.Expr) []*ast.Field {
	switch x := e.(type) {
	case *ast.StructType:
		return x.Fields.List
	case *ast.InterfaceType:
		return x.Methods.List
	}
	return nil
}

var (
	ticked    = regexp.MustCompile("`([^`]+)`")
	baseName  = regexp.MustCompile(`^[\w-]+\.(go|md|sql|proto|ya?ml)$`)
	testName  = regexp.MustCompile(`^(Test|Benchmark|Example|Fuzz)[A-Z_]\w*$`)
	qualified = regexp.MustCompile(`^([A-Za-z]\w*)\.([A-Z]\w*)(\(.*\))?$`)
)

// CheckNames finds what a Markdown file names, between backticks outside of fenced blocks,
// and the repository has not: paths below one of its directories, files, tests, and what
// its Go packages declare.
func (t *Tree) CheckNames(name string, text []byte) []Problem {
	var problems []Problem
	for i, line := range prose(text) {
		for _, m := range ticked.FindAllStringSubmatch(line, -1) {
			if s := m[1]; t.lacks(s, path.Dir(name)) {
				problems = append(problems, Problem{Path: name, Line: i + 1, Message: "there is no " + s})
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
		!t.names[m[1]+"."+m[2]] && !t.names[m[1]+".="] // an alias has the members of another type
}

// Blocks returns the kinds of the fenced blocks of a Markdown text.
func Blocks(text []byte) (kinds []string) {
	fenced := false
	for line := range strings.SplitSeq(string(text), "\n") {
		if m := fence.FindStringSubmatch(line); m != nil {
			if fenced = !fenced; fenced {
				kinds = append(kinds, m[1])
			}
		}
	}
	return kinds
}

// prose returns the lines of a Markdown text, those of fenced blocks empty.
func prose(text []byte) []string {
	lines := strings.Split(string(text), "\n")
	fenced := false
	for i, line := range lines {
		mark := fence.MatchString(line)
		if fenced = fenced != mark; fenced || mark {
			lines[i] = ""
		}
	}
	return lines
}

var (
	heading = regexp.MustCompile(`^#+ +(.*)$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	linked  = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

// anchors are the places of a Markdown text that links can lead to, as GitHub names them.
func anchors(text []byte) map[string]bool {
	found := map[string]bool{}
	for _, line := range prose(text) {
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
