package report_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/lab"
	"github.com/varvedb/varve/internal/report"
)

var update = flag.Bool("update", false, "write the tables, pictures and figures of documents again")

// documents have tables, pictures and figures of the result sets. Their paths are of the root.
var documents = []string{"EXPERIMENTS.md", "README.md", "docs/choosing.md"}

// place is where a document has a table: a comment names the result set, the experiment or
// question, which of its tables, and an expression for the keys of the rows that are shown.
var place = regexp.MustCompile(`(?m)^<!-- result (\S+) (\S+) (\d+)(?: (.+))? -->\n(?:.*\n\n(?:\|.*\n)+)?`)

// picture is a picture of a result set.
var picture = regexp.MustCompile(`\]\(docs/results/((\w+)-[\w-]+\.svg)\)`)

// summary is the table of docs/choosing.md: what decides between engines and layouts, a row each.
var summary = report.View{Rows: "/engine /layout /scale@num", Columns: slices.Concat(
	report.Columns("experiment:D1 /rate:max", "settled-rows/s=most rows/s"),
	report.Columns("experiment:D1 /rate:6000", "p99-ms=commit p99 at 6,000 rows/s, ms"),
	report.Columns("experiment:C1 /mix:B /clients:10", "qps=reads/s, B"),
	report.Columns("experiment:I3 /mix:A /rate:6000", "qps=reads/s, A, while 6,000 rows/s are asked", "rows/s=rows/s meanwhile"),
)}

// results has the result sets that documents name, and their tables and
// pictures.
type results struct {
	sets     map[string]*report.Set
	tables   map[string]map[string][]*report.Table // by set and experiment, question or "summary"
	pictures map[string][]byte
	written  map[string]string // tables and figures by their comments
}

// published is the result sets that the tests have read so far. They share it,
// because the tables of a set take seconds.
var published = &results{map[string]*report.Set{}, map[string]map[string][]*report.Table{}, map[string][]byte{}, map[string]string{}}

// set reads a result set, once.
func (r *results) set(name string) (*report.Set, error) {
	if s := r.sets[name]; s != nil {
		return s, nil
	}
	s, err := report.Load(filepath.Join("../../docs/results", name))
	if err == nil {
		r.sets[name] = s
	}
	return s, err
}

// read makes the tables and pictures of a set, once.
func (r *results) read(t *testing.T, name string) map[string][]*report.Table {
	if r.tables[name] != nil {
		return r.tables[name]
	}
	s, err := r.set(name)
	require.NoError(t, err)
	page, err := report.NewPage(s, name, lab.Sections())
	require.NoError(t, err)
	of, err := s.Table(summary)
	require.NoError(t, err)
	r.tables[name] = map[string][]*report.Table{"summary": {of}}
	for _, a := range page.Answers() {
		for _, pic := range a.Pictures {
			r.pictures[name+"-"+pic.Name+".svg"] = pic.SVG
		}
		for _, table := range a.Tables {
			for ; table != nil; table = table.Under {
				r.tables[name][a.ID] = append(r.tables[name][a.ID], table)
			}
		}
	}
	return r.tables[name]
}

// write returns a document with its tables as the results have them.
func (r *results) write(t *testing.T, text string) string {
	return place.ReplaceAllStringFunc(text, func(was string) string {
		comment, _, _ := strings.Cut(was, "\n")
		if r.written[comment] == "" {
			r.written[comment] = comment + "\n" + r.table(t, place.FindStringSubmatch(was))
		}
		return r.written[comment]
	})
}

// table writes the table of a place with the line above it.
func (r *results) table(t *testing.T, at []string) string {
	tables := r.read(t, at[1])[at[2]]
	n, err := strconv.Atoi(at[3])
	require.NoError(t, err)
	require.LessOrEqual(t, n, len(tables), at[0])
	table := *tables[n-1]
	keep, rows := regexp.MustCompile(at[4]), table.Rows
	table.Rows, table.Under = nil, nil
	for _, row := range rows {
		var keys []string
		for _, c := range row[:table.Keys] {
			keys = append(keys, c.String())
		}
		if keep.MatchString(strings.Join(keys, " ")) {
			if last := len(row) - 1; table.Heads[last] == "sittings" { // which they are is on the page
				row = append(slices.Clone(row[:last]), report.Cell{Text: row[last].Text})
			}
			table.Rows = append(table.Rows, row)
		}
	}
	require.NotEmpty(t, table.Rows, at[0])
	caption := strings.Trim(table.Title+", "+table.Unit, ", ")
	if caption != "" {
		caption = "**" + caption + ".** "
	}
	caption += table.Note
	table.Title, table.Unit, table.Note = "", "", ""
	var b strings.Builder
	require.NoError(t, report.WriteTables(&b, []*report.Table{&table}))
	return strings.TrimSpace(caption) + "\n\n" + strings.TrimRight(b.String(), "\n") + "\n"
}

// The tables and pictures of documents agree with the results.
func TestExperiments(t *testing.T) {
	files := make(map[string]string)
	for _, name := range documents {
		text := published.write(t, document(t, name))
		files[name] = text
		for _, at := range picture.FindAllStringSubmatch(text, -1) {
			published.read(t, at[2])
			require.NotEmpty(t, published.pictures[at[1]], "%s: no such picture", at[1])
			files["docs/results/"+at[1]] = string(published.pictures[at[1]])
		}
	}
	for name, want := range files {
		agrees(t, name, want)
	}
}

// document reads a file of the repository.
func document(t *testing.T, name string) string {
	text, err := os.ReadFile(filepath.Join("../..", name))
	require.NoError(t, err)
	return string(text)
}

// agrees compares a file with its text, which -update writes.
func agrees(t *testing.T, name, want string) {
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join("../..", name), []byte(want), 0o644)) //nolint:gosec // a document of the repository
	}
	lines := strings.Split(document(t, name), "\n")
	for i, line := range strings.Split(want, "\n") { // not all of both, which is long
		if i >= len(lines) || lines[i] != line {
			t.Fatalf("%s:%d: the results say\n%s\ngo test ./internal/report -run 'TestExperiments|TestFigures' -update writes tables, pictures and figures", name, i+1, line)
		}
	}
	require.Len(t, lines, strings.Count(want, "\n")+1, name)
}
