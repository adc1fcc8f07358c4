package report_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report"
	"github.com/varvedb/varve/internal/report/reporttest"
)

// full is a synthetic set as it is read from its files.
func full(t *testing.T, o reporttest.Options) *report.Input {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, reporttest.Write(dir, reporttest.Full(o)))
	results, err := result.Read(dir)
	require.NoError(t, err)
	return &report.Input{Title: "Results", Results: results}
}

func page(t *testing.T, in *report.Input) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, report.WriteHTML(&b, in))
	return b.String()
}

func TestPageIsDeterministic(t *testing.T) {
	in := input(reporttest.Full(reporttest.Options{Seconds: 3, Repeats: 2})...)
	first := page(t, in)
	require.True(t, first == page(t, in), "the same results give another page") // not Equal: it would print megabytes
	require.Contains(t, first, `id="chart-d1-timeline-postgres"`)
	require.Contains(t, first, `<p class="note">Medians of 2 runs (the range); profile mendoza, durability durable, scale 0.05.</p>`)
}

func TestPageOfNothing(t *testing.T) {
	text := page(t, input())
	require.Contains(t, text, "The result set is empty.")
	require.Contains(t, text, "Not measured. To measure it: varve run A5")
	end := record("D1", "engine=sqlite", 0)
	end.Error = "killed"
	require.Contains(t, page(t, input(end)), "Failed: engine=sqlite: killed")
}

// What records say is text, whatever is in it.
func TestPageEscapes(t *testing.T) {
	const bad = `</script><script>alert(1)</script>`
	r := record("A5", "engine=sqlite layout=arkiv", 0, rate(1))
	r.Latencies = []result.Distribution{{Kind: bad, Count: 1, P50: 1, Curve: []result.Quantile{{Percent: 50, Value: 1}}}}
	r.Notes = []string{bad}
	failed := record("A5", "engine="+bad+" layout=arkiv", 1)
	failed.Error = bad
	require.NotContains(t, page(t, input(r, failed)), "<script>alert")
}

func TestBrokenManifest(t *testing.T) {
	in := input(record("A5", "engine=sqlite", 0, rate(1)))
	in.Results.Records[0].Manifest = "m"
	in.Results.Manifests["m"] = json.RawMessage(`{"host":1}`)
	require.ErrorContains(t, report.WriteHTML(&bytes.Buffer{}, in), "manifest m")
}
