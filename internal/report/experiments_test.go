package report_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/lab"
	"github.com/varvedb/varve/internal/report"
)

var update = flag.Bool("update", false, "write the tables of EXPERIMENTS.md anew")

// place is where EXPERIMENTS.md has a table: a comment names the result set, the experiment or
// question, which of its tables, and an expression for the keys of the rows that are shown.
var place = regexp.MustCompile(`(?m)^<!-- result (\S+) (\S+) (\d+)(?: (.+))? -->\n(?:.*\n\n(?:\|.*\n)+)?`)

// picture is a picture of a result set.
var picture = regexp.MustCompile(`\]\(docs/results/((\w+)-[\w-]+\.svg)\)`)

// The tables and pictures of EXPERIMENTS.md are what the results say.
func TestExperiments(t *testing.T) {
	const path = "../../EXPERIMENTS.md"
	sets, pictures := make(map[string]map[string][]*report.Table), make(map[string][]byte)
	read := func(set string) {
		s, err := report.Load(filepath.Join("../../docs/results", set))
		require.NoError(t, err)
		page, err := report.NewPage(s, set, lab.Sections())
		require.NoError(t, err)
		sets[set] = make(map[string][]*report.Table)
		for _, a := range page.Answers() {
			for _, pic := range a.Pictures {
				pictures[set+"-"+pic.Name+".svg"] = pic.SVG
			}
			for _, table := range a.Tables {
				for ; table != nil; table = table.Under {
					sets[set][a.ID] = append(sets[set][a.ID], table)
				}
			}
		}
	}
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	text := place.ReplaceAllStringFunc(string(old), func(was string) string {
		at := place.FindStringSubmatch(was)
		if sets[at[1]] == nil {
			read(at[1])
		}
		tables := sets[at[1]][at[2]]
		n, err := strconv.Atoi(at[3])
		require.NoError(t, err)
		require.LessOrEqual(t, n, len(tables), was)
		table := *tables[n-1]
		keep, rows := regexp.MustCompile(at[4]), table.Rows
		table.Rows, table.Under = nil, nil
		for _, row := range rows {
			var keys []string
			for _, c := range row[:table.Keys] {
				keys = append(keys, c.String())
			}
			if keep.MatchString(strings.Join(keys, " ")) {
				table.Rows = append(table.Rows, row)
			}
		}
		require.NotEmpty(t, table.Rows, was)
		caption := strings.Trim(table.Title+", "+table.Unit, ", ")
		if caption != "" {
			caption = "**" + caption + ".** "
		}
		caption += table.Note
		table.Title, table.Unit, table.Note = "", "", ""
		var b strings.Builder
		require.NoError(t, report.WriteTables(&b, []*report.Table{&table}))
		comment, _, _ := strings.Cut(was, "\n")
		return comment + "\n" + strings.TrimSpace(caption) + "\n\n" + strings.TrimRight(b.String(), "\n") + "\n"
	})
	files := map[string][]byte{path: []byte(text)}
	for _, at := range picture.FindAllStringSubmatch(text, -1) {
		require.NotEmpty(t, pictures[at[1]], "%s: no such picture", at[1])
		files["../../docs/results/"+at[1]] = pictures[at[1]]
	}
	for path, want := range files {
		if *update {
			require.NoError(t, os.WriteFile(path, want, 0o644)) //nolint:gosec // a document of the repository
		}
		is, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), string(is), "go test ./internal/report -run TestExperiments -update writes the tables and pictures anew")
	}
}
