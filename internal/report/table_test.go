package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report"
	"github.com/varvedb/varve/internal/report/reporttest"
)

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.012345: "0.0123", 1.5: "1.5", 12.34: "12.3", 99.96: "100", 100.4: "100", 1234567: "1,234,567", -4321: "-4,321", 1e-7: "1e-07",
	} {
		require.Equal(t, want, report.Number(v))
	}
}

func record(experiment, config string, repeat int, metrics ...result.Metric) result.Record {
	r := result.Record{Experiment: experiment, Name: "Test", Repeat: repeat, Metrics: metrics}
	for _, pair := range strings.Fields(config) {
		k, v, _ := strings.Cut(pair, "=")
		r.Config = append(r.Config, result.Pair{Key: k, Value: v})
	}
	return r
}

func rate(v float64) result.Metric { return result.Metric{Value: v, Unit: "ent/s"} }

func input(records ...result.Record) *report.Input {
	return &report.Input{Title: "Test", Results: &result.Results{Records: records}}
}

// Engines stand in their order, rows in that of their numbers, medians are over
// repetitions, and what is missing or has failed is said.
func TestTablesOfAnExperiment(t *testing.T) {
	failed := record("A5", "engine=duckdb layout=arkiv profile=p10", 0)
	failed.Error = "out of\nmemory"
	in := input(
		record("A5", "engine=postgres layout=arkiv profile=p10", 0, rate(5000)),
		record("A5", "engine=sqlite layout=arkiv profile=p10", 0, rate(1000)),
		record("A5", "engine=sqlite layout=arkiv profile=p10", 1, rate(9000)),
		record("A5", "engine=sqlite layout=arkiv profile=p10", 2, rate(3000)),
		record("A5", "engine=sqlite layout=arkiv profile=p2", 0, rate(0.5)),
		failed,
	)
	require.Equal(t, strings.TrimPrefix(`
Medians of 1 to 3 runs; layout arkiv.

| profile | sqlite ent/s | duckdb ent/s | postgres ent/s |
|---|---:|---:|---:|
| p2 | 0.5 | – | – |
| p10 | 3,000 | failed | 5,000 |

Failed: engine=duckdb/layout=arkiv/profile=p10: out of memory
`, "\n"), report.Markdown(report.Tables(in, "A5")))
}

func TestMissingExperiment(t *testing.T) {
	end := record("A7", "engine=sqlite", 0)
	end.Name, end.Error = "Run", "ended after 15m0s, see --timeout"
	require.Equal(t, "Not measured. To measure it: `varve run A7`\nFailed: engine=sqlite: ended after 15m0s, see --timeout\n",
		report.Markdown(report.Tables(input(end), "A7")))
}

// An experiment that no renderer knows is shown as it comes.
func TestUnknownExperiment(t *testing.T) {
	text := report.Markdown(report.Tables(input(record("X1", "engine=sqlite", 0, rate(1), result.Metric{Value: 2, Unit: "odd"})), "X1"))
	require.Contains(t, text, "| sqlite ent/s |")
	require.Contains(t, text, "| sqlite odd |")
}

// Every experiment of a full set has tables with figures of every engine.
func TestFullSetHasAllTables(t *testing.T) {
	in := input(reporttest.Full(reporttest.Options{Seconds: 3})...)
	for _, id := range []string{
		"A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A11", "A12", "A13", "A14",
		"C1", "C2", "C3", "D1", "D2", "D3", "D4", "D5", "E1", "E2", "E3",
	} {
		text := report.Markdown(report.Tables(in, id))
		require.NotContains(t, text, "Not measured", id)
		for _, engine := range reporttest.Engines {
			require.Contains(t, text, engine, id)
		}
	}
}

const document = `# Experiments

<!-- table:A5 -->
old
<!-- /table:A5 -->

between

<!-- table:A7 -->
<!-- /table:A7 -->
`

func TestRenderMarkdown(t *testing.T) {
	in := input(record("A5", "engine=sqlite", 0, rate(1000)))
	text, err := report.RenderMarkdown(document, in)
	require.NoError(t, err)
	require.Equal(t, `# Experiments

<!-- table:A5 -->

Single runs.

|  | sqlite ent/s |
|---|---:|
| all | 1,000 |

<!-- /table:A5 -->

between

<!-- table:A7 -->

Not measured. To measure it: `+"`varve run A7`"+`

<!-- /table:A7 -->
`, text)
	again, err := report.RenderMarkdown(text, in)
	require.NoError(t, err)
	require.Equal(t, text, again, "rendering twice changes something")

	for _, bad := range []string{
		"<!-- table:A5 -->\n",
		"<!-- table:A5 -->\n<!-- table:A7 -->\n<!-- /table:A7 -->\n<!-- /table:A5 -->\n",
		"<!-- table:Z9 -->\n<!-- /table:Z9 -->\n",
	} {
		_, err := report.RenderMarkdown(bad, in)
		require.Error(t, err, bad)
	}
}

// A percentile stands with its operations; of too few there is none, and the
// maximum is called that.
func TestFewOperations(t *testing.T) {
	of := func(layout string, n int64) result.Record {
		r := record("D3", "engine=sqlite layout="+layout, 0, result.Metric{Value: 80, Unit: "p99-ms"})
		r.Latencies = []result.Distribution{{Kind: "commit", Count: n, P50: 5e6, P99: 80e6, P999: 85e6, Max: 90e6}}
		return r
	}
	in := input(of("arkiv", 48), of("compact", 1272))
	text := report.Markdown(report.Tables(in, "D3"))
	require.Contains(t, text, "| arkiv | max 90 (n 48) |\n")
	require.Contains(t, text, "| compact | 80 (n 1,272) |\n")
}

// Overviews of any result set can be rendered, also of an empty one.
func TestRenderOverviews(t *testing.T) {
	var text strings.Builder
	for _, name := range []string{"verdict", "tree", "v1", "criteria", "matrix", "settings"} {
		fmt.Fprintf(&text, "<!-- table:%s -->\n<!-- /table:%s -->\n", name, name)
	}
	_, err := report.RenderMarkdown(text.String(), input())
	require.NoError(t, err)
	rendered, err := report.RenderMarkdown(text.String(), full(t, reporttest.Options{Engines: []string{"sqlite"}, Layouts: []string{"arkiv"}, Seconds: 3}))
	require.NoError(t, err)
	for _, want := range []string{"Not known: of the 2 engines", "not known: measure sqlite first", "undecided", "checklist: largest WAL", "Most rows a second", "journal_mode"} {
		require.Contains(t, rendered, want)
	}
}

func TestDiff(t *testing.T) {
	require.Empty(t, report.Diff("a\nb", "a\nb"))
	require.Equal(t, "-b\n+x\n c\n+e\n", report.Diff("a\nb\nc\nd", "a\nx\nc\nd\ne"))
}
