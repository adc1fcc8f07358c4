package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/verdict"
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

func TestDecide(t *testing.T) {
	set := resultFile(t, sustained)
	code, out, errs := varve("decide", set)
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, "not known: measure sqlite first")
	require.Contains(t, out, "Decision tree")

	code, out, errs = varve("decide", "--json", set)
	require.Equal(t, cli.ExitOK, code, errs)
	var r verdict.Report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, verdict.Unknown, r.Candidates[0].Parts[0].Outcome)

	code, _, _ = varve("decide", filepath.Join(t.TempDir(), "nowhere"))
	require.Equal(t, cli.ExitUsage, code)
}
