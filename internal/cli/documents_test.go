package cli

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/lint"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/storeurl"
	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/node/rpc"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"

	_ "github.com/varvedb/varve/store/duckdb"
	_ "github.com/varvedb/varve/store/libsql/remote"
	_ "github.com/varvedb/varve/store/postgres"
	_ "github.com/varvedb/varve/store/sqlite"
	_ "github.com/varvedb/varve/store/sqlitego"
)

var update = flag.Bool("update", false, "write the tables of docs anew")

// listed has the tables of docs that list parts of the code.
var listed = map[string]func(t *testing.T) string{
	"commands": commandTable, "parameters": parameterTable, "metrics": metricTable,
	"layouts": layoutTable, "arkiv-indexes": indexTable,
}

// TestDocuments: the tables of docs agree with the code.
func TestDocuments(t *testing.T) {
	root, err := lint.Root()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	shown := map[string]bool{}
	for _, path := range files {
		old, err := os.ReadFile(path)
		require.NoError(t, err)
		text := place.ReplaceAllStringFunc(string(old), func(was string) string {
			at := place.FindStringSubmatch(was)
			require.Equal(t, at[1], at[2], "%s: the place of a table does not end", path)
			require.Contains(t, listed, at[1], path)
			shown[at[1]] = true
			return fmt.Sprintf("<!-- table:%s -->\n\n%s\n<!-- /table:%s -->", at[1], listed[at[1]](t), at[1])
		})
		switch {
		case text == string(old):
		case *update:
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) // it exists and keeps its mode
		default:
			t.Errorf("%s differs from the code; go test ./internal/cli -run TestDocuments -update writes its tables", path)
		}
	}
	require.Len(t, shown, len(listed), "a table that no document shows")
}

// A place for a table begins with <!-- table:NAME --> and ends with <!--
// /table:NAME -->, each on a separate line.
var place = regexp.MustCompile(`(?ms)^<!-- table:([^ ]+) -->\n(?:.*?^<!-- /table:([^ ]+) -->)?`)

// table makes a table of Markdown of rows of words.
func table(heads []string, rows [][]string) string {
	escape := strings.NewReplacer("|", `\|`, "\n", " ")
	line := func(cells []string) string {
		text := "|"
		for _, c := range cells {
			text += " " + escape.Replace(cmp.Or(c, "–")) + " |"
		}
		return text + "\n"
	}
	text := line(heads) + "|" + strings.Repeat("---|", len(heads)) + "\n"
	for _, row := range rows {
		text += line(row)
	}
	return text
}

func code(s string) string { return "`" + s + "`" }

func codes(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = code(s)
	}
	return strings.Join(quoted, ", ")
}

// commandTable has every command with its arguments and flags.
func commandTable(t *testing.T) string {
	parser, err := newParser(new(commands), kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {}))
	require.NoError(t, err)
	var rows [][]string
	for _, node := range parser.Model.Leaves(true) {
		line := strings.TrimPrefix(node.Path(), "varve ")
		for _, p := range node.Positional {
			line += " " + p.Summary()
		}
		var flags []string
		for _, f := range node.Flags {
			if !f.Hidden {
				flags = append(flags, flagText(f))
			}
		}
		rows = append(rows, []string{code(line), node.Help, codes(flags)})
	}
	return table([]string{"command", "what it does", "flags, with their defaults"}, rows)
}

func flagText(f *kong.Flag) string {
	text := "--" + f.Name
	if f.Tag.Negatable != "" {
		text = "--[no-]" + f.Name
	}
	if f.HasDefault && f.Default != "" && !f.IsBool() {
		text += "=" + f.Default
	}
	return text
}

var byDefault = regexp.MustCompile(`^(.*) \(default (.*)\)$`)

// parameterTable has the parameters of URLs, first the common ones.
func parameterTable(t *testing.T) string {
	var rows [][]string
	add := func(of string, params map[string]string) {
		for _, name := range slices.Sorted(maps.Keys(params)) {
			m := byDefault.FindStringSubmatch(params[name])
			require.NotNil(t, m, "parameter %s of %s: %q does not end with (default …)", name, of, params[name])
			same := slices.IndexFunc(rows, func(row []string) bool { return row[0] == code(name) && row[2] == m[1] && row[3] == m[2] })
			if same >= 0 {
				rows[same][1] += ", " + of
				continue
			}
			rows = append(rows, []string{code(name), of, m[1], m[2]})
		}
	}
	add("all", storeurl.Params())
	engines, err := allEngines()
	require.NoError(t, err)
	for _, e := range engines {
		of := e.Name
		if client := engine.Find(e.Name).Client; client != "" && e.Library == client {
			of += " servers"
		}
		add(of, e.Parameters)
	}
	return table([]string{"parameter", "of", "what it says", "default"}, rows)
}

// allEngines has the engines that are linked here and the one that cannot be
// linked with them.
var allEngines = sync.OnceValues(func() (list []engineInfo, err error) {
	list = linkedEngines()
	for _, listed := range engine.All {
		if linked(listed.Name, false) {
			continue
		}
		others, err := siblingEngines(&env{ctx: context.Background(), stderr: io.Discard}, listed, false)
		if err != nil || len(others) == 0 {
			return nil, fmt.Errorf("%s: %d answers, %w", listed.Name, len(others), err)
		}
		list = append(list, others...)
	}
	slices.SortStableFunc(list, func(a, b engineInfo) int { return engine.Rank(a.Name) - engine.Rank(b.Name) })
	return list, nil
})

// layoutTable has the layouts of entities, with one row for the ablation's.
func layoutTable(t *testing.T) string {
	var rows [][]string
	ablation := schemas.AblationLayouts()
	for _, name := range schemas.EntityLayouts() {
		if name == ablation[0] {
			rows = append(rows, []string{code(name) + " … " + code(ablation[len(ablation)-1]), "the same with the first N of the thirteen", "yes", "N", "yes"})
		}
		if slices.Contains(ablation, name) {
			continue
		}
		l, err := schemas.Entities(name, string(driver.SQLite))
		require.NoError(t, err)
		citus, err := schemas.Entities(name, string(driver.Postgres))
		require.NoError(t, err)
		rows = append(rows, []string{code(name), l.About, yes(l.Temporal), fmt.Sprint(len(l.Indexes)), yes(len(citus.Spread) > 0)})
	}
	return table([]string{"layout of entities", "what it is", "past blocks", "indexes", "Citus"}, rows)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// indexTable has the indexes of the arkiv family.
func indexTable(t *testing.T) string {
	var rows [][]string
	for _, layout := range []string{"arkiv", "arkiv-ordered", "arkiv-columnar", "arkiv-pruned"} {
		l, err := schemas.Entities(layout, string(driver.SQLite))
		require.NoError(t, err)
		for _, index := range l.Indexes {
			same := slices.IndexFunc(rows, func(row []string) bool { return row[1] == code(index.Name) })
			if same >= 0 {
				rows[same][4] += ", " + code(layout)
				continue
			}
			n := ""
			if layout == "arkiv" {
				n = fmt.Sprint(len(rows) + 1)
			}
			_, columns, _ := strings.Cut(index.SQL, " (")
			rows = append(rows, []string{n, code(index.Name), code(strings.TrimSuffix(columns, ")")), strings.TrimSuffix(index.Serves, "."), code(layout)})
		}
	}
	return table([]string{"N", "index", "columns", "what it serves", "layouts"}, rows)
}

var described = regexp.MustCompile(`fqName: "([^"]*)", help: "([^"]*)"`)

// metricTable has the metrics of a service with Arkiv's JSON-RPC, and of a follower.
func metricTable(t *testing.T) string {
	db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "varve.db"), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	s, err := service.New(t.Context(), db, service.Options{})
	require.NoError(t, err)
	defer s.Close()
	m := s.Metrics()
	m.Operation("rest", "get", 200) // so that its labels are gathered
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	handler, err := rpc.New(t.Context(), ents, rpc.Options{Metrics: m.Registry()})
	require.NoError(t, err)
	defer handler.Close()
	served, ok := m.Registry().(*prometheus.Registry)
	require.True(t, ok)
	followed := prometheus.NewRegistry()
	observe(followed, &chain.Follower{Store: ents}, db)

	rows := map[string][]string{}
	for _, registry := range []*prometheus.Registry{followed, served} {
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, f := range families {
			var labels []string
			for _, l := range f.GetMetric()[0].GetLabel() {
				labels = append(labels, l.GetName())
			}
			if strings.HasPrefix(f.GetName(), "varve_") {
				rows[f.GetName()] = []string{code(f.GetName()), strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp()}
			}
		}
		for _, d := range descriptions(registry) { // gauges without a value in this store
			if _, there := rows[d[1]]; !there && strings.HasPrefix(d[1], "varve_") {
				rows[d[1]] = []string{code(d[1]), "gauge", "", d[2]}
			}
		}
	}
	sorted := make([][]string, 0, len(rows))
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		sorted = append(sorted, rows[name])
	}
	return table([]string{"metric", "type", "labels", "meaning"}, sorted)
}

// descriptions are name and help of all metrics of a registry.
func descriptions(c prometheus.Collector) (list [][]string) {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		c.Describe(descs)
	}()
	for d := range descs {
		list = append(list, described.FindStringSubmatch(d.String()))
	}
	return list
}

var (
	inline  = regexp.MustCompile("`varve ([a-z][^`]*)`")
	flagged = regexp.MustCompile(`^--([\w-]+)`)
)

// TestDocumentedFlags: commands that documents name in a line exist, with their
// flags. cmd/varve runs the commands in blocks.
func TestDocumentedFlags(t *testing.T) {
	root, err := lint.Root()
	require.NoError(t, err)
	files, err := lint.Files(root, ".md")
	require.NoError(t, err)
	parser, err := newParser(new(commands), kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {}))
	require.NoError(t, err)
	for _, name := range files {
		if name == "CHANGELOG.md" {
			continue // it describes the past
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		if lint.Superseded(text) {
			continue
		}
		for _, m := range inline.FindAllStringSubmatch(string(text), -1) {
			node := parser.Model.Node
			for word := range strings.FieldsSeq(m[1]) {
				if next := below(node, word); next != nil {
					node = next
				} else if f := flagged.FindStringSubmatch(word); f != nil && !hasFlag(node, f[1]) {
					t.Errorf("%s: `varve %s`: %s has no --%s", name, m[1], node.Name, f[1])
				}
			}
			if node.Type == kong.ApplicationNode {
				t.Errorf("%s: `varve %s`: no such command", name, m[1])
			}
		}
	}
}

func below(node *kong.Node, name string) *kong.Node {
	i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return node.Children[i]
}

func hasFlag(node *kong.Node, name string) bool {
	for _, group := range node.AllFlags(false) {
		if slices.ContainsFunc(group, func(f *kong.Flag) bool { return f.Name == name || f.Tag.Negatable != "" && "no-"+f.Name == name }) {
			return true
		}
	}
	return false
}
