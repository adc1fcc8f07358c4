package lint

import (
	"fmt"
	"slices"
	"strings"
)

// apart are the libraries that no program may link together: both bring a copy
// of SQLite's C code with the same symbols.
var apart = [2]string{"github.com/mattn/go-sqlite3", "github.com/tursodatabase/go-libsql"}

// CheckBinaries finds programs, test programs included, that link two copies of
// SQLite.
func CheckBinaries(packages []Package) []Problem {
	var problems []Problem
	for i := range packages {
		p := &packages[i]
		if p.Name != "main" || p.Standard {
			continue
		}
		if links(p, apart[0]) && links(p, apart[1]) {
			problems = append(problems, Problem{Path: p.ImportPath, Message: fmt.Sprintf(
				"links both %s and %s, whose symbols clash: make two programs of it", apart[0], apart[1])})
		}
	}
	return sorted(problems)
}

func links(p *Package, library string) bool {
	return slices.ContainsFunc(p.Deps, func(dep string) bool { return plain(dep) == library })
}

// CheckWiring finds Go files other than tests and doc.go in bench/<engine>,
// which only wires workloads to an engine.
func CheckWiring(packages []Package) []Problem {
	var problems []Problem
	for i := range packages {
		p := &packages[i]
		engine, isBench := strings.CutPrefix(p.ImportPath, Module+"/bench/")
		if !isBench || !matchAny(engines, Module+"/store/"+engine) {
			continue
		}
		for _, file := range p.GoFiles {
			if file != "doc.go" {
				problems = append(problems, Problem{Path: p.ImportPath,
					Message: file + ": only tests belong here; workloads go into bench"})
			}
		}
	}
	return sorted(problems)
}
