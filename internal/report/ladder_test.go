package report_test

import (
	"go/types"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

// ladder is the files of the package from the top. A file uses only those after it.
var ladder = []string{
	"print.go", "page.go", "questions.go", "table.go", "compare.go", "fit.go", "picture.go",
	"selection.go", "column.go", "view.go", "reference.go", "asked.go", "ratio.go", "figure.go", "set.go",
}

// TestLadder: no name of a file is used by one that is below it, so that who reads from the top never
// has to go back.
func TestLadder(t *testing.T) {
	list, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax}, ".")
	require.NoError(t, err)
	require.Len(t, list, 1)
	p := list[0]
	require.Empty(t, p.Errors)
	require.Len(t, p.Syntax, len(ladder), "a file is not in the ladder")
	place := func(o types.Object) int {
		return slices.Index(ladder, filepath.Base(p.Fset.Position(o.Pos()).Filename))
	}
	for at, used := range p.TypesInfo.Uses {
		if used.Pkg() != p.Types || used.Parent() != nil && used.Parent() != p.Types.Scope() {
			continue // of another package, or local
		}
		if v, ok := used.(*types.Var); ok && v.IsField() {
			continue // which goes with its type
		}
		from := slices.Index(ladder, filepath.Base(p.Fset.Position(at.Pos()).Filename))
		if place(used) < from {
			t.Errorf("%s uses %s, which is above it in %s", p.Fset.Position(at.Pos()), used.Name(), ladder[place(used)])
		}
	}
}
