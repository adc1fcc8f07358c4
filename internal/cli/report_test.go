package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/answer"
	"github.com/varvedb/varve/internal/cli"
)

// resultFile is a file of a result set.
func resultFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "D1-sqlite-1.txt")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const sustained = `experiment: D1
BenchmarkSustained/engine=sqlite/layout=arkiv/scale=1/rate=6000 1000 1.5 p50-ms 8 p95-ms 20 p99-ms 90 max-ms 5914 rows/s
BenchmarkTimeline/engine=sqlite/layout=arkiv/scale=1/rate=6000/second=1 10 1.5 p50-ms 8 max-ms 1 checkpoints
BenchmarkTimeline/engine=sqlite/layout=arkiv/scale=1/rate=6000/second=2 10 1.5 p50-ms 9 max-ms 0 checkpoints
`

func TestReport(t *testing.T) {
	set, out := resultFile(t, sustained), filepath.Join(t.TempDir(), "page.html")
	code, text, errs := varve("report", filepath.Dir(set), "-o", out, "--title", "My <results>")
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, text, out+": 1 measurements")
	page, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Contains(t, string(page), "<h1>My &lt;results&gt;</h1>")
	require.Contains(t, string(page), "<svg")

	out = filepath.Join(filepath.Dir(out), "page.md")
	code, _, errs = varve("report", set, "-o", out, "--markdown")
	require.Equal(t, cli.ExitOK, code, errs)
	page, err = os.ReadFile(out)
	require.NoError(t, err)
	const picture = "page-commit-latency-by-quantile-6-000-rows-s-1x.svg"
	require.Contains(t, string(page), "]("+picture+")")
	require.FileExists(t, filepath.Join(filepath.Dir(out), picture))

	code, _, errs = varve("report", t.TempDir())
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "no result files")
}

// A page that cannot be written leaves nothing behind, and the old one stays.
func TestReportWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "full"), 0o700)) // a directory in the way
	code, _, errs := varve("report", resultFile(t, sustained), "-o", dir)
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, errs, "report: ")
	require.NoFileExists(t, dir+".tmp")
	require.DirExists(t, filepath.Join(dir, "full"))
}

// Answers from results that are there: a sentence for each question, the tables, the tree, V1.
func TestAnswerFrom(t *testing.T) {
	set := filepath.Dir(resultFile(t, sustained))
	code, out, errs := varve("answer", "-v", "--from", set)
	require.Equal(t, cli.ExitOK, code, errs)
	for _, want := range []string{
		"1. Most writes: Not known: nothing was measured of it. varve answer measures it", "| sqlite | arkiv  |",
		"4. Degradation: Not known: one size was measured, 800K entities of the base profile (scale 1).",
		"5. V1: Not known", "Decision tree", "not known: measure sqlite first",
	} {
		require.Contains(t, out, want)
	}
	require.NoFileExists(t, filepath.Join(set, "report.html"))
	code, short, errs := varve("answer", "--from", set)
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, short, "| sqlite | arkiv  |                  20 |", "the figures that decide")
	require.NotContains(t, short, "V1, upper end")

	code, out, errs = varve("answer", "--json", "--from", set)
	require.Equal(t, cli.ExitOK, code, errs)
	var a answer.Answers
	require.NoError(t, json.Unmarshal([]byte(out), &a))
	require.Len(t, a.Questions, 5)
	require.Equal(t, answer.Unknown, a.Candidates[0].Parts[0].Outcome)

	code, _, _ = varve("answer", "--from", filepath.Join(t.TempDir(), "nowhere"))
	require.Equal(t, cli.ExitUsage, code)
}

// What cannot be measured is refused before anything is, and leaves nothing.
func TestAnswerRefuses(t *testing.T) {
	other := filepath.Dir(resultFile(t, sustained))
	text := resultFile(t, "no tar")
	for _, c := range []struct {
		want string
		code int
		args []string
	}{
		{"unknown engine \"oracle\"", cli.ExitUsage, []string{"--engines=oracle"}},
		{"unknown layout \"rows\"", cli.ExitUsage, []string{"--engines=sqlite", "--layouts=rows"}},
		{"no such file", cli.ExitError, []string{"--engines=sqlite", filepath.Join(t.TempDir(), "none.tar")}},
		{text, cli.ExitError, []string{"--engines=sqlite", text}},
		{"results of another command", cli.ExitUsage, []string{"--engines=sqlite", "--out=" + other}},
		{"disk full", cli.ExitError, []string{"--engines=sqlite", "--time=720h", "--sizes=1000"}},
	} {
		dir := filepath.Join(t.TempDir(), "out")
		code, out, errs := varve(append([]string{"answer", "--out=" + dir}, c.args...)...)
		require.Equal(t, c.code, code, "%v: %s%s", c.args, out, errs)
		require.Contains(t, errs, c.want)
		require.NoFileExists(t, filepath.Join(dir, "answer.json"))
	}
}
