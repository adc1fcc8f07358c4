package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/report/reporttest"
	"github.com/varvedb/varve/internal/verdict"
)

func resultSet(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "results")
	require.NoError(t, reporttest.Write(dir, reporttest.Full(reporttest.Options{
		Engines: []string{"sqlite", "duckdb"}, Layouts: []string{"arkiv"}, Seconds: 3, Only: []string{"A5", "D1", "D4", "D5"},
	})))
	return dir
}

func TestReportPage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	code, out, errs := varve("report", resultSet(t), "-o", page, "--title", "My results")
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, page)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "<h1>My results</h1>")
	require.Contains(t, string(text), "A5 · Full schema", "titles come from the catalogue")
}

func TestReportTables(t *testing.T) {
	set, doc := resultSet(t), filepath.Join(t.TempDir(), "EXPERIMENTS.md")
	require.NoError(t, os.WriteFile(doc, []byte("# E\n\n<!-- table:A5 -->\n| old |\n<!-- /table:A5 -->\n"), 0o600))

	code, out, errs := varve("report", set, "--experiments", doc, "--check")
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, out, "-| old |")
	require.Contains(t, out, "+| profile | documents | sqlite | duckdb |")
	require.Contains(t, errs, "render it again")
	text, err := os.ReadFile(doc)
	require.NoError(t, err)
	require.Contains(t, string(text), "| old |", "a check changes nothing")

	code, _, errs = varve("report", set, "--experiments", doc)
	require.Equal(t, cli.ExitOK, code, errs)
	code, out, errs = varve("report", set, "--experiments", doc, "--check")
	require.Equal(t, cli.ExitOK, code, out+errs)
	info, err := os.Stat(doc)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())

	code, _, _ = varve("report", set, "--check")
	require.Equal(t, cli.ExitUsage, code)
}

func TestDecide(t *testing.T) {
	set := resultSet(t)
	code, out, errs := varve("decide", set)
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, "Not known: ")
	require.Contains(t, out, "varve run D3 --engines sqlite --layouts arkiv --scale 1 ")

	text := out
	code, out, errs = varve("decide", "--json", set)
	require.Equal(t, cli.ExitOK, code, errs)
	var r verdict.Report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.True(t, strings.HasPrefix(text, r.Sentence+"\n"), "the text begins with the sentence")
	require.Equal(t, "sqlite", r.Assessments[0].Engine)
	require.Equal(t, verdict.Undecided, r.Assessments[0].V1)

	code, _, _ = varve("decide", filepath.Join(set, "nowhere"))
	require.Equal(t, cli.ExitUsage, code)
}

// Results of nothing decide nothing, and that is no failure.
func TestDecideNothing(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "records.jsonl"), nil, 0o600))
	code, out, errs := varve("decide", dir)
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, "Not known: there is no record to decide from")
}
