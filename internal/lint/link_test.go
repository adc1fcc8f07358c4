package lint_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/engine"
)

// pkg is what go list tells of a package. "p.test" is the program of p's tests.
type pkg struct {
	ImportPath, Dir, ForTest                    string
	Deps                                        []string // direct and indirect
	GoFiles, TestGoFiles, XTestGoFiles          []string
	EmbedFiles, TestEmbedFiles, XTestEmbedFiles []string
}

var listed = sync.OnceValues(func() ([]pkg, error) {
	out, err := exec.Command("go", "list", "-test", "-json=ImportPath,Dir,ForTest,Deps,GoFiles,TestGoFiles,XTestGoFiles,"+
		"EmbedFiles,TestEmbedFiles,XTestEmbedFiles", engine.Module+"/...").Output()
	var list []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); err == nil && dec.More(); {
		list = append(list, pkg{})
		err = dec.Decode(&list[len(list)-1])
	}
	return list, err
})

// packages are the main module's and their tests'.
func packages(t *testing.T) []pkg {
	t.Helper()
	list, err := listed()
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return list
}

// links returns the packages that a program or package links, of a list of
// prefixes.
func (p *pkg) links(prefixes ...string) (found []string) {
	for _, dep := range p.Deps {
		dep, _, _ = strings.Cut(dep, " ") // "p [q.test]" is p
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(dep+"/", prefix+"/") }) {
			found = append(found, dep)
		}
	}
	return found
}

// TestLinks checks linked packages: golangci-lint sees direct imports only.
func TestLinks(t *testing.T) {
	const mattn, turso = "github.com/mattn/go-sqlite3", "github.com/tursodatabase/go-libsql"
	const document = "docs/dependencies.md"
	_, tests, _ := strings.Cut(read(t, document)[document], "\n## Tests\n")
	var ofTests []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(tests, -1) {
		ofTests = append(ofTests, m[1])
	}
	require.NotEmpty(t, ofTests)
	small := regexp.MustCompile(`^(vendor/|[^.]*(/|$)|` + engine.Module + `/|github\.com/klauspost/compress(/|$)|golang\.org/x/(sync|sys)/)`)
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, engine.Module+"/")
		if len(p.links(mattn)) > 0 {
			assert.Empty(t, p.links(turso), "%s links two copies of SQLite, whose symbols clash: make two programs of it", name)
		}
		if strings.HasPrefix(name, "cmd/") && p.ForTest == "" && !strings.HasSuffix(name, ".test") {
			assert.Empty(t, p.links(ofTests...), "%s: a program links nothing that only tests need", name)
		}
		for _, e := range engine.All {
			if name == "bench/"+e.Name+".test" {
				for _, other := range engine.All {
					linked := p.links(other.Package())
					assert.Equal(t, e.Name == other.Name, len(linked) > 0, "%s: each engine is measured in a process of its own: %q", name, linked)
				}
			}
		}
		if name == "bench/gobench" {
			assert.Empty(t, p.links(engine.Module+"/internal/service", engine.Module+"/node", "google.golang.org/grpc", "google.golang.org/protobuf"),
				"whoever benchmarks an engine does not link the service")
		}
		if name == "store" || name == "store/sqlite" {
			for _, dep := range p.Deps {
				if !small.MatchString(dep) && (name == "store" || dep != mattn) {
					t.Errorf("%s links %s: a program that keeps entities in SQLite links zstd, the driver, x/sync and x/sys", name, dep)
				}
			}
		}
	}
}

// TestRulesOfImports: .golangci.yml says who may import the library of each engine.
func TestRulesOfImports(t *testing.T) {
	text := read(t, ".golangci.yml")[".golangci.yml"]
	for _, e := range engine.All {
		for _, library := range e.Libraries {
			assert.Contains(t, text, "pkg: "+strings.TrimSuffix(library, "/..."), e.Name)
		}
		assert.Contains(t, text, e.Name+"/**")
	}
}
