package lint

import (
	"go/ast"
	"go/token"
	"path"
	"strings"
)

// selfEvident are methods that well-known interfaces define; their type's
// comment says what there is to say.
var selfEvident = map[string]bool{
	"Error": true, "Unwrap": true, "Is": true, "As": true, "String": true, "Format": true,
	"Len": true, "Less": true, "Swap": true,
	"MarshalJSON": true, "UnmarshalJSON": true, "MarshalText": true, "UnmarshalText": true,
}

// checkDocs finds exported names without a comment. A comment on a group of
// constants, variables or type aliases covers the group. In programs nothing is
// exported.
func (f *file) checkDocs() []Problem {
	if f.tree.Name.Name == "main" {
		return nil
	}
	var problems []Problem
	for _, decl := range f.tree.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Doc == nil && d.Name.IsExported() && !exempt(d) {
				problems = append(problems, f.undocumented(d.Name))
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				problems = append(problems, f.checkSpec(d, spec)...)
			}
		}
	}
	return problems
}

func (f *file) checkSpec(decl *ast.GenDecl, spec ast.Spec) []Problem {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		covered := decl.Doc != nil && (decl.Lparen == token.NoPos || s.Assign.IsValid())
		if s.Name.IsExported() && s.Doc == nil && !covered {
			return []Problem{f.undocumented(s.Name)}
		}
	case *ast.ValueSpec:
		if decl.Doc != nil || s.Doc != nil || s.Comment != nil {
			return nil
		}
		var problems []Problem
		for _, name := range s.Names {
			if name.IsExported() {
				problems = append(problems, f.undocumented(name))
			}
		}
		return problems
	}
	return nil
}

func (f *file) undocumented(name *ast.Ident) Problem {
	return f.at(name.Pos(), "exported "+name.Name+" has no comment")
}

// checkFace finds exported names of packages for others that are made of what an
// internal package documents: its readers see no fields and no values. It leaves of the
// tree what is exported, so it comes last. The service is internal, and bench/serve with it.
func (f *file) checkFace() []Problem {
	dir := "/" + path.Dir(f.path) + "/"
	if f.isTest() || f.isProgram() || strings.Contains(dir, "/internal/") || dir == "/bench/serve/" {
		return nil
	}
	ast.FileExports(f.tree)
	imported := f.imports()
	var problems []Problem
	ast.Inspect(f.tree, func(n ast.Node) bool {
		if d, ok := n.(*ast.FuncDecl); ok {
			d.Body = nil
			return !exempt(d)
		}
		if s, ok := n.(*ast.SelectorExpr); ok {
			if name, sel := selector(s); strings.Contains(imported[name], "/internal/") {
				problems = append(problems, f.at(s.Pos(), "its documentation hides "+name+"."+sel+", which is internal: define it here"))
			}
		}
		return true
	})
	return problems
}

// exempt tells whether a function is a method of an unexported type or one
// that every reader knows.
func exempt(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return false
	}
	if selfEvident[d.Name.Name] {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return !x.IsExported()
		default:
			return false
		}
	}
}

// CheckPackageDocs finds packages of which no file has a package comment. Files
// maps the paths of Go files, relative to the repository, to their text; tests
// are passed over.
func CheckPackageDocs(files map[string][]byte) ([]Problem, error) {
	documented := map[string]bool{}
	for path, text := range files {
		f, err := parse(path, text)
		if err != nil {
			return nil, err
		}
		if f.isTest() {
			continue
		}
		dir := dirOf(path)
		documented[dir] = documented[dir] || f.tree.Doc != nil
	}
	var problems []Problem
	for dir, ok := range documented {
		if !ok {
			problems = append(problems, Problem{Path: dir, Message: "no package comment"})
		}
	}
	return sorted(problems), nil
}
