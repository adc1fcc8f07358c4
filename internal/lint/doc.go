// Package lint holds the rules of this repository that no linter knows, as
// functions that return problems; the tests beside them apply the rules to the
// repository, and to samples that break them.
//
// The rules: which package may import which (imports.go), that no program links
// both SQLite and libSQL (binary.go), what Go source may contain (source.go) and what
// its documentation may show (face.go), that every SQL file is embedded and used
// (sql.go), and what documents must hold to (text.go) and which commands they show
// (command.go).
//
// Run it with -count=1: the test cache does not see new imports.
package lint

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is a rule broken at a place.
type Problem struct {
	Path    string // file or import path
	Line    int    // 0 when the place is the whole file or package
	Message string // what is wrong and what to do instead
}

// String returns the problem as path:line: message.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.Path + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Message)
}

// sorted orders problems by place, so that output does not depend on map order.
func sorted(problems []Problem) []Problem {
	slices.SortFunc(problems, func(a, b Problem) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return strings.Compare(a.Message, b.Message)
	})
	return problems
}
