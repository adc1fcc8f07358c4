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

	"github.com/varvedb/varve/internal/report"
)

var update = flag.Bool("update", false, "write the tables of EXPERIMENTS.md anew")

// place is where EXPERIMENTS.md has a table: a comment names the result set, the experiment or
// question, which of its tables, and an expression for the keys of the rows that are shown.
var place = regexp.MustCompile(`(?m)^<!-- result (\S+) (\S+) (\d+)(?: (.+))? -->\n(?:.*\n\n(?:\|.*\n)+)?`)

// The tables of EXPERIMENTS.md are what the results say.
func TestExperiments(t *testing.T) {
	const path = "../../EXPERIMENTS.md"
	tables := make(map[string][]*report.Table)
	read := func(set string) {
		s, err := report.Load(filepath.Join("../../docs/results", set))
		require.NoError(t, err)
		page, err := report.NewPage(s, set)
		require.NoError(t, err)
		answers := page.Questions
		for _, section := range page.Sections {
			answers = append(answers, section.Answers...)
		}
		for _, a := range answers {
			for _, table := range a.Tables {
				for ; table != nil; table = table.Under {
					tables[set+a.ID] = append(tables[set+a.ID], table)
				}
			}
		}
		tables[set] = tables[set+"1"]
	}
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	text := place.ReplaceAllStringFunc(string(old), func(was string) string {
		at := place.FindStringSubmatch(was)
		if tables[at[1]] == nil {
			read(at[1])
		}
		n, err := strconv.Atoi(at[3])
		require.NoError(t, err)
		require.LessOrEqual(t, n, len(tables[at[1]+at[2]]), was)
		table := *tables[at[1]+at[2]][n-1]
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
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) // it exists and keeps its mode
	} else {
		require.Equal(t, text, string(old), "go test ./internal/report -run TestExperiments -update writes the tables anew")
	}
}
