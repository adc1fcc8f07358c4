package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// MaxLines is the length at which a Go file is refused. Ask at 500.
const MaxLines = 800

// file is one parsed Go file.
type file struct {
	path string // relative to the repository, with slashes
	text []byte
	set  *token.FileSet
	tree *ast.File
}

func parse(path string, text []byte) (*file, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &file{path: path, text: text, set: set, tree: tree}, nil
}

func (f *file) at(pos token.Pos, message string) Problem {
	return Problem{Path: f.path, Line: f.set.Position(pos).Line, Message: message}
}

func (f *file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// isProgram tells whether the file is of a program, which nobody imports.
func (f *file) isProgram() bool {
	return f.tree.Name.Name == "main" || strings.HasPrefix(f.path, "cmd/") || strings.HasPrefix(f.path, "examples/")
}

// CheckSource applies the rules for Go source to one file. Path is relative to
// the repository. It fails when the file does not parse.
func CheckSource(path string, text []byte) ([]Problem, error) {
	f, err := parse(path, text)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(f.tree) {
		return nil, nil
	}
	problems := f.checkLength()
	problems = append(problems, f.checkSkips()...)
	if !f.isTest() {
		problems = append(problems, f.checkEngines()...)
	}
	return sorted(append(problems, f.checkFace()...)), nil
}

func (f *file) checkLength() []Problem {
	if n := bytes.Count(f.text, []byte("\n")); n > MaxLines {
		return []Problem{{Path: f.path, Message: fmt.Sprintf("%d lines, at most %d: split it by concept", n, MaxLines)}}
	}
	return nil
}

// checkSkips finds tests that are skipped without saying what is missing.
func (f *file) checkSkips() []Problem {
	var problems []Problem
	ast.Inspect(f.tree, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		receiver, method := selector(call.Fun)
		if !slices.Contains([]string{"t", "b", "f", "tb", "rt"}, receiver) {
			return true
		}
		if method == "SkipNow" || (method == "Skip" || method == "Skipf") && !hasReason(call) {
			problems = append(problems, f.at(call.Pos(), "skips without a reason: say what is missing"))
		}
		return true
	})
	return problems
}

func hasReason(call *ast.CallExpr) bool {
	if len(call.Args) == 0 {
		return false
	}
	lit, isLit := call.Args[0].(*ast.BasicLit)
	return !isLit || lit.Kind != token.STRING || len(lit.Value) > 2
}

// imports maps the names of imported packages in this file to their paths.
func (f *file) imports() map[string]string {
	names := make(map[string]string, len(f.tree.Imports))
	for _, spec := range f.tree.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has accepted it
		}
		name := path.Base(importPath)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = importPath
	}
	return names
}

// selector splits x.Sel when x is a plain name.
func selector(e ast.Expr) (name, sel string) {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok {
			return x.Name, s.Sel.Name
		}
	}
	return "", ""
}
