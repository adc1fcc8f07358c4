package lint_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/lint"
)

// The tests in this file show that each rule finds what it forbids and lets
// pass what it allows.

const (
	ours  = lint.Module
	mattn = "github.com/mattn/go-sqlite3"
	turso = "github.com/tursodatabase/go-libsql"
)

func pkg(path string, imports ...string) lint.Package {
	return lint.Package{ImportPath: path, Name: "p", Imports: imports, Deps: imports}
}

func TestCheckImports(t *testing.T) {
	tests := []struct {
		name string
		pkg  lint.Package
		want string // part of the one problem; empty when there is none
	}{
		{"store, engine", pkg(ours+"/store", ours+"/store/sqlite"), "only programs"},
		{"store, native", pkg(ours+"/store", "github.com/jackc/pgx/v5/pgtype"), "must not link a native library"},
		{"store, contract", pkg(ours+"/store", ours+"/store/driver", ours+"/schemas", "database/sql"), ""},
		{"driver, ours", pkg(ours+"/store/driver", ours+"/store/entity"), "stands alone"},
		{"query, entity", pkg(ours+"/store/query", ours+"/store/entity"), ""},
		{"query, sql", pkg(ours+"/store/query", "database/sql"), "neither SQL"},
		{"engine, shared", pkg(ours+"/store/sqlite", ours+"/store/driver", ours+"/internal/sqlstore", mattn), ""},
		{"engine, entities", pkg(ours+"/store/sqlite", ours+"/store/entity"), "knows nothing of entities"},
		{"engine, layout", pkg(ours+"/store/sqlite", ours+"/internal/layout"), "nothing of entities"},
		{"engine, glob", pkg(ours+"/store/sqlite", ours+"/store/query"), ""},
		{"engine, other engine", pkg(ours+"/store/sqlite", ours+"/store/libsql"), "nothing of entities"},
		{"engine, other library", pkg(ours+"/store/libsql", mattn), "belongs to ./store/sqlite"},
		{"schemas", pkg(ours+"/schemas", ours+"/store/driver"), "stand alone"},
		{"generator, vocabulary", pkg(ours+"/dcseed", ours+"/store/entity"), ""},
		{"generator, store", pkg(ours+"/scaler", ours+"/store"), "generators are pure"},
		{"generator, sql", pkg(ours+"/scaler", "database/sql"), "generators are pure"},
		{"layout, sqlstore", pkg(ours+"/internal/layout/eav", ours+"/internal/sqlstore"), "no driver"},
		{"interface, store", pkg(ours+"/api/varve/v1", ours+"/store"), "a client imports it"},
		{"interface, its own", pkg(ours+"/api/varve/v1", "google.golang.org/grpc"), ""},
		{"service, transport", pkg(ours+"/internal/service", ours+"/internal/service/rest"), "not the other way"},
		{"seal, store", pkg(ours+"/internal/service/seal", ours+"/store"), "stands alone"},
		{"transport, service", pkg(ours+"/internal/service/rpc", ours+"/internal/service", ours+"/api/varve/v1"), ""},
		{"bench, engine's test", pkg(ours+"/bench/sqlite", ours+"/bench", ours+"/store/sqlite"), ""},
		{"program", pkg(ours+"/cmd/varve", ours+"/store/sqlite", ours+"/store/duckdb"), ""},
		{"program, testify", pkg(ours+"/cmd/varve-libsql", "github.com/stretchr/testify/assert/yaml"), "only tests need"},
		{"store, zstd", pkg(ours+"/store", "github.com/klauspost/compress/zstd", "vendor/golang.org/x/text", "crypto/sha256"), ""},
		{"store, another library", pkg(ours+"/store", "github.com/google/uuid"), "links zstd, the driver and x/sys"},
		{"sqlite, another library", pkg(ours+"/store/sqlite", "golang.org/x/text/unicode"), "links zstd, the driver and x/sys"},
		{"other module", pkg("example.com/x", ours+"/store/sqlite"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			problems := lint.CheckImports([]lint.Package{tt.pkg})
			if tt.want == "" {
				require.Empty(t, problems)
				return
			}
			require.Contains(t, join(problems), tt.want)
		})
	}
}

func TestCheckImportsOfTests(t *testing.T) {
	test := pkg(ours+"/bench/mix.test", ours+"/bench/mix ["+ours+"/bench/mix.test]", ours+"/store/sqlite")
	require.Contains(t, join(lint.CheckImports([]lint.Package{test})), "workloads know no engine")

	test = pkg(ours+"/bench/sqlite.test", ours+"/store/sqlite", ours+"/store/duckdb")
	require.Contains(t, join(lint.CheckImports([]lint.Package{test})), "process of its own")

	test = pkg(ours+"/store.test", ours+"/store", ours+"/store/sqlite")
	require.Empty(t, lint.CheckImports([]lint.Package{test}), "examples of store need an engine")
}

func TestCheckImportsShowsTheWay(t *testing.T) {
	top := pkg(ours+"/store", ours+"/internal/x")
	top.Deps = []string{ours + "/internal/x", mattn}
	middle := pkg(ours+"/internal/x", mattn)
	require.Contains(t, join(lint.CheckImports([]lint.Package{top, middle})),
		"(store → internal/x → "+mattn+")")
}

func TestCheckBinaries(t *testing.T) {
	program := func(deps ...string) []lint.Package {
		return []lint.Package{{ImportPath: ours + "/cmd/varve", Name: "main", Deps: deps}}
	}
	require.Empty(t, lint.CheckBinaries(program(mattn, "fmt")))
	require.Empty(t, lint.CheckBinaries(program(turso)))
	require.Contains(t, join(lint.CheckBinaries(program(mattn, turso))), "symbols clash")
	require.Contains(t, join(lint.CheckBinaries(program(mattn, turso+" [x.test]"))), "symbols clash")
}

func TestCheckWiring(t *testing.T) {
	p := lint.Package{ImportPath: ours + "/bench/sqlite", GoFiles: []string{"doc.go", "extra.go"}}
	require.Contains(t, join(lint.CheckWiring([]lint.Package{p})), "extra.go")
	p.GoFiles = []string{"doc.go"}
	require.Empty(t, lint.CheckWiring([]lint.Package{p}))
}

func TestCheckSource(t *testing.T) {
	tests := []struct {
		name, path, text string
		want             string
	}{
		{"good", "p/a.go", "package p\n\n// A is one.\nconst A = 1\n", ""},
		{"too long", "p/a.go", "package p\n" + strings.Repeat("//\n", lint.MaxLines), "801 lines"},
		{"program", "cmd/x/a.go", "package main\n\nimport \"fmt\"\n\nfunc A() { fmt.Println() }\n", ""},
		{"skip", "p/a_test.go", "package p\n\nfunc a() { t.Skip() }\n", "skips without a reason"},
		{"empty skip", "p/a_test.go", "package p\n\nfunc a() { b.Skip(\"\") }\n", "skips without a reason"},
		{"skip now", "p/a_test.go", "package p\n\nfunc a() { t.SkipNow() }\n", "skips without a reason"},
		{"skip with a reason", "p/a_test.go", "package p\n\nfunc a() { t.Skip(\"no strace\") }\n", ""},
		{"engine", "p/a.go", "package p\n\nimport _ \"x/duckdb\"\n\nconst a = \"duckdb\"\n", "a.go:5: names engine duckdb"},
		{"engine in a list", "p/a.go", "package p\n\nvar a struct {\n\tb int `default:\"x,libsql\"`\n}\n", "names engine libsql"},
		{"engine in a URL", "store/sqlite/a.go", "package sqlite\n\nconst a = \"postgres:///x\"\n", "names engine postgres"},
		{"engine's own", "internal/pgembed/a.go", "package pgembed\n\nconst a = \"postgres\"\n", ""},
		{"engine in prose", "p/a.go", "package p\n\nconst a = \"such as sqlite:x.db\"\n", ""},
		{"engine of a suite", "p/ptest/a.go", "package ptest\n\nconst a = \"sqlite\"\n", ""},
		{"internal alias", "p/a.go", "package p\n\nimport \"x/internal/q\"\n\n// T is.\ntype T = q.T\n", "hides q.T"},
		{"internal field", "p/a.go", "package p\n\nimport \"x/internal/q\"\n\n// T is.\ntype T struct{ F []q.F }\n", "hides q.F"},
		{"internal hidden field", "p/a.go", "package p\n\nimport \"x/internal/q\"\n\n// T is.\ntype T struct{ f q.F }\n", ""},
		{"internal result", "p/a.go", "package p\n\nimport \"x/internal/q\"\n\n// T is.\ntype T int\n\n// M does.\nfunc (T) M() *q.R { return q.New() }\n", "hides q.R"},
		{"internal constant", "p/a.go", "package p\n\nimport \"x/internal/q\"\n\n// C is.\nconst C = q.C\n", "hides q.C"},
		{"internal body", "p/a.go", "package p\n\nimport \"x/internal/q\"\n\n// F does.\nfunc F() { q.F() }\n", ""},
		{"internal in internal", "p/internal/a.go", "package p\n\nimport \"x/internal/q\"\n\n// T is.\ntype T = q.T\n", ""},
		{"generated", "p/a.go", "// Code generated by x. DO NOT EDIT.\n\npackage p\nfunc A() {}\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			problems, err := lint.CheckSource(tt.path, []byte(tt.text))
			require.NoError(t, err)
			if tt.want == "" {
				require.Empty(t, problems)
				return
			}
			require.Contains(t, join(problems), tt.want)
		})
	}
	_, err := lint.CheckSource("p/a.go", []byte("package"))
	require.Error(t, err)
}

func TestCheckSQL(t *testing.T) {
	require.Empty(t, lint.CheckSQL("a.sql", []byte("-- select is a word here\nSELECT value\nFROM t\n  AND from_block < ?\n")))
	require.Contains(t, join(lint.CheckSQL("a.sql", []byte("SELECT value\n  from t\n"))), "a.sql:2: keyword in lower case: from")
	require.Empty(t, lint.CheckSQL("a.sql", []byte("-- Serves: x = ?\nCREATE UNIQUE INDEX i ON t (x);\n")))
	require.Contains(t, join(lint.CheckSQL("a.sql", []byte("CREATE INDEX i ON t (x);\n"))), "names its query")
}

func TestCheckEmbedded(t *testing.T) {
	p := lint.Package{Dir: "/r/schemas", EmbedFiles: []string{"a/x.sql"}}
	problems := lint.CheckEmbedded([]string{"/r/schemas/a/x.sql", "/r/schemas/a/y.sql"}, []lint.Package{p})
	require.Equal(t, "/r/schemas/a/y.sql: no package embeds it", join(problems))
}

func TestCheckReachable(t *testing.T) {
	files := []string{"a/x.sql", "a/sqlite/y.sql", "b/x.sql"}
	check := func(source string) string {
		problems, err := lint.CheckReachable(files, map[string][]byte{"p.go": []byte("package p\n" + source)})
		require.NoError(t, err)
		return join(problems)
	}
	require.Equal(t, "b/x.sql: embedded, but no code names b", check(`var names = []string{"x", "a/" + "y.sql"}`))
	require.Empty(t, check("//go:embed a/x.sql b/x.sql\nvar x string\nvar y = \"a/y\""))
	require.Empty(t, check(`var all, _ = fs.ReadDir(files, "a")`))
}

func TestCheckText(t *testing.T) {
	require.Empty(t, lint.CheckText("a.md", []byte("see /var/lib/node and docs/work/x")))
	require.Contains(t, join(lint.CheckText("a.md", []byte("// TO"+"DO: more"))), "open an issue")
	require.Contains(t, join(lint.CheckText("a.md", []byte("in /home"+"/me/x"))), "path of one machine")
}

func TestCheckLinks(t *testing.T) {
	text := []byte("[a](doc.go) [b](#here-1) [c](#a-bs-place) [d](https://example.com/#x)\n[e](gone.md) [f](#gone)\n# A `B`'s Place\n# Here\n# Here\n```\n# Gone\n[g](gone.md)\n```\n")
	require.Equal(t, "./README.md:2: dead link gone.md\n./README.md:2: no heading for #gone", join(lint.CheckLinks(".", "./README.md", text)))
}

func TestCheckNames(t *testing.T) {
	tree, err := lint.NewTree([]string{"p/q/a.go", "d/b.md"}, map[string][]byte{"p/q/a.go": []byte(
		"package q\n\ntype A struct{ F int }\n\ntype B = x.B\n\ntype I interface{ M() }\n\nfunc (*A) N() {}\n\nvar V int\n\nfunc TestT() {}\n")})
	require.NoError(t, err)
	there := "`p/q` `./p/...` `p/q/a.go` `a.go` `q.A` `A.F` `A.N` `I.M` `B.Any` `q.V` `TestT` `x/y` `p/<engine>` `http.Handler` `q.A(x)`\n```\n`p/gone`\n```\n"
	require.Empty(t, tree.CheckNames("d/b.md", []byte(there)))
	for _, gone := range []string{"p/r", "p/q/b.go", "b.go", "q.G", "A.G", "G.F", "I.F", "TestG"} {
		require.Equal(t, "d/b.md:2: there is no "+gone, join(tree.CheckNames("d/b.md", []byte("\n`"+gone+"`"))))
	}
}

func TestCheckDecisions(t *testing.T) {
	good := []byte("# 1. A\n\n## Status\n\nAccepted.\n\n## Context\n\n## Decision\n\n## Consequences\n")
	require.Empty(t, lint.CheckDecisions(map[string][]byte{"0001-a.md": good, "0002-b.md": good}))
	require.Contains(t, join(lint.CheckDecisions(map[string][]byte{"0001-a.md": good, "0003-b.md": good})), "no record 0002")
	require.Contains(t, join(lint.CheckDecisions(map[string][]byte{"0001-a.md": good, "0001-b.md": good})), "number taken")
	require.Contains(t, join(lint.CheckDecisions(map[string][]byte{"0001-a.md": []byte("# A\n")})), "no section ## Status")
	require.Contains(t, join(lint.CheckIndex(nil, map[string][]byte{"0001-a.md": good})), "no line - 1. [A](0001-a.md)")
	changed := bytes.Replace(good, []byte("Accepted."), []byte("Accepted. Amended by [ADR 2](0002-b.md)."), 1)
	records := map[string][]byte{"0001-a.md": changed, "0002-b.md": bytes.Replace(good, []byte("# 1. A"), []byte("# 2. B"), 1)}
	index := []byte("\n- 1. [A](0001-a.md), changed by 2\n- 2. [B](0002-b.md)\n")
	require.Equal(t, "0002-b.md: its status does not name 0001-a.md, whose status names it", join(lint.CheckIndex(index, records)))
}

func TestTestCommand(t *testing.T) {
	good := "x\n<!-- test command -->\n```sh\ngo test ./...\n```\n<!-- end -->\n"
	command, err := lint.TestCommand([]byte(good))
	require.NoError(t, err)
	require.Equal(t, "go test ./...", command)
	for _, bad := range []string{"", good + good, strings.Replace(good, "<!-- end -->", "", 1)} {
		_, err := lint.TestCommand([]byte(bad))
		require.Error(t, err)
	}
}

func join(problems []lint.Problem) string {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}
