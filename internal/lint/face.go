package lint

import (
	"go/ast"
	"path"
	"strings"
)

// selfEvident are methods that well-known interfaces define.
var selfEvident = map[string]bool{
	"Error": true, "Unwrap": true, "Is": true, "As": true, "String": true, "Format": true,
	"Len": true, "Less": true, "Swap": true,
	"MarshalJSON": true, "UnmarshalJSON": true, "MarshalText": true, "UnmarshalText": true,
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
