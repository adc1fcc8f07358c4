package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/varvedb/varve/internal/engine"
)

// rule limits what a set of packages may import, directly or through others.
// Patterns are import paths as go list writes them: "p" is p, "p/..." is p and
// everything below it; a leading "./" stands for the main module.
type rule struct {
	packages []string // the rule is for these …
	except   []string // … but not for these

	only   []string // of this repository, they may import nothing else (nil: no limit)
	never  []string // they must not import these
	others []string // of other modules, they may import nothing else (nil: no limit)
	direct bool     // only what they import themselves counts
	tests  bool     // what their tests import counts as well

	why string
}

var (
	engines = each(func(e engine.Engine) []string { return []string{"./store/" + e.Name + "/..."} })
	natives = append(each(func(e engine.Engine) []string { return e.Libraries }), "github.com/lib/pq/...")
	// testOnly are what tests need and programs do not. Package testing would be one,
	// but embedded-postgres has a file test_config.go, which is no test and imports it.
	testOnly = []string{
		"github.com/stretchr/testify/...", "pgregory.net/rapid/...", "go.uber.org/goleak/...",
		"github.com/anishathalye/porcupine/...", "github.com/google/go-cmp/...", "github.com/hinshun/...", "github.com/chromedp/...",
	}
	// wiring is where an engine meets a workload or a program.
	wiring = append(each(func(e engine.Engine) []string { return []string{"./bench/" + e.Name + "/..."} }), "./cmd/...", "./examples/...")
)

// each lists patterns for each engine.
func each(patterns func(engine.Engine) []string) (list []string) {
	for _, e := range engine.All {
		list = append(list, patterns(e)...)
	}
	return list
}

// rules is the table of docs/architecture.md. A rule for a package that does
// not exist holds.
func rules() []rule {
	all := slices.Concat(engineRules(), ownerRules(), dataRules(), serviceRules())
	return append(all,
		rule{packages: []string{"./..."}, except: slices.Concat(engines, wiring), never: engines,
			why: "only programs and bench/<engine> choose an engine"},
		rule{packages: []string{"./cmd/..."}, never: testOnly,
			why: "programs link nothing that only tests need: what runs suites is in storetest, faulttest and gobench"},
		rule{packages: []string{"./store", "./store/sqlite"},
			others: []string{"github.com/klauspost/compress/...", "github.com/mattn/go-sqlite3/...", "golang.org/x/sys/..."},
			why:    "a program that keeps entities in SQLite links zstd, the driver and x/sys"},
		rule{packages: []string{"./store"}, never: slices.Concat(natives, []string{"./bench/...", "./cmd/..."}),
			why: "importing store must not link a native library"},
		rule{packages: []string{"./internal/engine"}, only: []string{}, never: natives, why: "the list stands alone"},
		rule{packages: []string{"./store/driver"}, only: []string{}, never: natives,
			why: "the contract stands alone"},
		rule{packages: []string{"./store/query"}, only: []string{"./store/entity"},
			never: slices.Concat(natives, []string{"database/sql/..."}),
			why:   "the language knows neither SQL nor engines"},
		rule{packages: []string{"./store/event"}, only: []string{"./store/driver", "./store/entity"},
			never: slices.Concat(natives, []string{"database/sql/..."}), why: "the vocabulary of events stands alone"},
		rule{packages: []string{"./store/storetest/..."}, never: slices.Concat(natives, []string{"./bench/..."}),
			why: "the suites run on the engine that the caller gives"},
		rule{packages: []string{"./internal/layout/...", "./internal/eventlog"},
			never: slices.Concat(natives, []string{"database/sql/...", "./internal/sqlstore/..."}),
			why:   "layouts know store/driver and no driver"},
		rule{packages: []string{"./internal/lsm/...", "./internal/bitmap/...", "./internal/statement/..."},
			only: []string{"./store/driver", "./internal/packed", "./internal/lsm/...", "./internal/bitmap/...", "./internal/statement/..."},
			why:  "what a layout is built of knows nothing of entities"},
		rule{packages: []string{"./bench/..."}, except: append([]string{"./bench"}, wiring...), never: slices.Concat(engines, natives), tests: true,
			why: "workloads know no engine; wire it in bench/<engine>"},
		rule{packages: []string{"./bench"}, never: slices.Concat(engines, natives),
			why: "workloads know no engine; the Example of bench links one"},
		rule{packages: []string{"./internal/report"}, only: []string{"./bench/stat", "./internal/engine", "./internal/catalogue"},
			why: "it reads files in the Go benchmark format and knows nothing of who wrote them"},
		rule{packages: []string{"./internal/answer"}, only: []string{"./internal/report", "./bench/stat", "./internal/engine", "./internal/catalogue"},
			why: "it judges what the report reads"},
	)
}

// engineRules: an engine knows the contract and the mechanics it shares, and a
// bench/<engine> links that engine alone.
func engineRules() []rule {
	shared := []string{
		"./store/driver", "./internal/sqlstore/...", "./internal/sqlitewal/...", "./internal/pgembed/...", "./internal/filesync", "./internal/filelease", "./internal/dbfile",
		// For the glob function that SQLite lends from Go, and what it needs.
		"./store/query", "./store/entity",
	}
	set := []rule{
		{packages: []string{"./internal/sqlstore/..."}, only: []string{"./store/driver", "./internal/sqlstore/..."},
			never: natives, why: "it serves every engine and knows nothing of entities"},
		{packages: []string{"./internal/sqlitewal/..."},
			only:  []string{"./store/driver", "./internal/sqlstore/...", "./internal/sqlitewal/...", "./internal/filelease", "./internal/filesync", "./internal/dbfile"},
			never: natives, why: "it serves libraries that cannot share a program"},
		{packages: []string{"./internal/pgembed/..."}, only: []string{"./store/driver", "./internal/pgembed/...", "./internal/filesync", "./internal/filelease"},
			why: "it runs a server and knows nothing of entities"},
	}
	for i, engine := range engines {
		others := slices.Delete(slices.Clone(engines), i, i+1)
		set = append(set,
			rule{packages: []string{engine}, only: append(slices.Clone(shared), engine),
				why: "an engine knows the driver contract, its mechanics, and nothing of entities"},
			rule{packages: []string{engine}, never: []string{"./store/entity"}, direct: true,
				why: "an engine knows nothing of entities"},
			rule{packages: []string{strings.Replace(engine, "store", "bench", 1)}, never: others, tests: true,
				why: "each engine is measured in a process of its own"})
	}
	return set
}

// ownerRules: one package imports a native library; everybody else uses that
// package. Tests may compare with the bare library.
func ownerRules() []rule {
	var set []rule
	for _, e := range engine.All {
		set = append(set, rule{packages: []string{"./..."}, except: owners(e), never: e.Libraries, direct: true,
			why: "it belongs to " + strings.Join(owners(e), " and ")})
	}
	return set
}

// dataRules: text and data stay free of the machinery that stores them.
func dataRules() []rule {
	return []rule{
		{packages: []string{"./schemas/..."}, only: []string{"./schemas/..."},
			never: slices.Concat(natives, []string{"database/sql/..."}), why: "SQL text and its descriptors stand alone"},
		{packages: []string{"./store/entity"}, only: []string{}, never: slices.Concat(natives, []string{"database/sql/..."}),
			why: "the vocabulary stands alone"},
		{packages: []string{"./store/entity"}, never: []string{"os/...", "net/..."}, direct: true,
			why: "the vocabulary does no input or output"},
		{packages: []string{"./scaler/...", "./dcseed/..."},
			never: slices.Concat(natives, []string{"./store", "./store/driver", "./schemas/...", "database/sql/..."}),
			why:   "generators are pure; store/entity is all the vocabulary they need"},
	}
}

// serviceRules: the interface of the service stands alone, so that a client does
// not import a store, and the core knows none of its transports.
func serviceRules() []rule {
	return []rule{
		{packages: []string{"./api/..."}, only: []string{"./api/..."}, never: slices.Concat(natives, []string{"database/sql/..."}),
			why: "a client imports it and no store"},
		{packages: []string{"./client"}, only: []string{"./api/...", "./store/event", "./store/entity", "./store/driver"},
			never: slices.Concat(natives, []string{"database/sql/..."}), why: "a program that decides elsewhere links no store"},
		{packages: []string{"./node/..."},
			never: slices.Concat(natives, []string{"./internal/service/...", "./bench/...", "google.golang.org/grpc/...", "github.com/ethereum/..."}),
			why:   "a node imports it, on whatever engine; it has no service, links no gRPC, and no library of the chain's licence"},
		{packages: []string{"./internal/accesslog"}, only: []string{}, why: "it is of any handler"},
		{packages: []string{"./internal/service/seal"}, only: []string{}, why: "encryption of bytes stands alone"},
		{packages: []string{"./internal/service"},
			never: slices.Concat(natives, []string{"./internal/service/rest/...", "./internal/service/rpc/...", "./internal/service/server/...", "./api/..."}),
			why:   "transports know the core, and not the other way round"},
	}
}

// CheckImports applies the import table to the packages of a module, as List
// returns them.
func CheckImports(packages []Package) []Problem {
	graph := make(map[string]*Package, len(packages))
	for i := range packages {
		graph[packages[i].ImportPath] = &packages[i]
	}
	var problems []Problem
	for _, r := range rules() {
		for i := range packages {
			p := &packages[i]
			if subject, ok := r.subject(p); ok {
				problems = append(problems, r.check(subject, p, graph)...)
			}
		}
	}
	return sorted(problems)
}

// subject returns the package that a listed package stands for under the rule:
// itself, or for a test program the package under test.
func (r *rule) subject(p *Package) (string, bool) {
	path, isTest := strings.CutSuffix(p.ImportPath, ".test")
	if p.Standard || p.ForTest != "" || isTest && !r.tests {
		return "", false
	}
	return path, matchAny(r.packages, path) && !matchAny(r.except, path)
}

func (r *rule) check(subject string, p *Package, graph map[string]*Package) []Problem {
	reach := p.Deps
	if r.direct {
		reach = p.Imports
	}
	var problems []Problem
	for _, dep := range reach {
		path := plain(dep)
		if path == subject || path == subject+"_test" || strings.HasSuffix(path, ".test") || !r.forbids(path) {
			continue
		}
		problems = append(problems, Problem{
			Path:    p.ImportPath,
			Message: fmt.Sprintf("must not import %s: %s (%s)", path, r.why, chain(p.ImportPath, dep, graph)),
		})
	}
	return problems
}

func (r *rule) forbids(path string) bool {
	if matchAny(r.never, path) {
		return true
	}
	if match("./...", path) {
		return r.only != nil && !matchAny(r.only, path)
	}
	module, _, _ := strings.Cut(path, "/")
	return r.others != nil && strings.Contains(module, ".") && !matchAny(r.others, path)
}

// chain returns a shortest way from one package to one that it imports.
func chain(from, to string, graph map[string]*Package) string {
	before := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at == to {
			return strings.Join(trace(at, before), " → ")
		}
		p := graph[at]
		if p == nil {
			continue
		}
		for _, next := range p.Imports {
			if _, seen := before[next]; !seen {
				before[next] = at
				queue = append(queue, next)
			}
		}
	}
	return from + " → … → " + to
}

func trace(at string, before map[string]string) []string {
	var way []string
	for ; at != ""; at = before[at] {
		way = append(way, strings.TrimPrefix(plain(at), Module+"/"))
	}
	slices.Reverse(way)
	return way
}

func matchAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return match(pattern, path) })
}

func match(pattern, path string) bool {
	if rest, ours := strings.CutPrefix(pattern, "./"); ours {
		pattern = Module + "/" + rest
	}
	if base, tree := strings.CutSuffix(pattern, "/..."); tree {
		return path == base || strings.HasPrefix(path, base+"/")
	}
	return path == pattern
}
