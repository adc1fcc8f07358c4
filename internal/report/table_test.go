package report_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report"
	"github.com/varvedb/varve/internal/report/reporttest"
)

func record(experiment, config string, repeat int, metrics ...result.Metric) result.Record {
	r := result.Record{Experiment: experiment, Name: "Test", Repeat: repeat, Metrics: metrics}
	for _, pair := range strings.Fields(config) {
		k, v, _ := strings.Cut(pair, "=")
		r.Config = append(r.Config, result.Pair{Key: k, Value: v})
	}
	return r
}

func rate(v float64) result.Metric { return result.Metric{Value: v, Unit: "ent/s"} }

// input has all records of one revision.
func input(records ...result.Record) *report.Input {
	results := &result.Results{Records: records, Manifests: map[string]json.RawMessage{}}
	for i := range records {
		if records[i].Manifest == "" {
			records[i].Manifest = "one"
		}
	}
	for _, name := range []string{"one", "two", "dirty"} {
		results.Manifests[name] = json.RawMessage(fmt.Sprintf(`{"varve":{"commit":"%s-revision","modified":%t}}`, name, name == "dirty"))
	}
	return &report.Input{Title: "Test", Results: results}
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
	in.Catalogue = []report.Entry{{ID: "A5", Title: "Schema", Question: "How many?", Earlier: "714"}}
	require.Equal(t, strings.TrimPrefix(`
**A5. Schema.** How many? *The documents:* 714.\
By engine, ent/s over what both have: postgres first, ≈ sqlite 0.6×.\
**ent/s**. Medians of 1 to 3 runs (the range); layout arkiv. BACKvarve run A5 --blocks 3BACK

| profile | sqlite | duckdb | postgres |
|---|---:|---:|---:|
| p2 | 0.5 | – | – |
| p10 | ≈ 3,000 (1,000–9,000) | failed | **5,000** |

Runs that failed: 1; the first, duckdb: out of memory. The page has all.
`, "\n"), strings.ReplaceAll(report.Markdown(report.Brief(in, "A5")), "`", "BACK"))
}

func TestMissingExperiment(t *testing.T) {
	end := record("A7", "engine=sqlite", 0)
	end.Name, end.Error = "Run", "ended after 15m0s, see --timeout"
	require.Equal(t, "**A7.**\n\nNot measured. To measure it: `varve run A7`\nRuns that failed: 1; the first, sqlite: ended after 15m0s, see --timeout. The page has all.\n",
		report.Markdown(report.Brief(input(end), "A7")))
}

// An experiment that no renderer knows is shown as it comes.
func TestUnknownExperiment(t *testing.T) {
	text := report.Markdown(report.Brief(input(record("X1", "engine=sqlite", 0, rate(1), result.Metric{Value: 2, Unit: "odd"})), "X1"))
	require.Contains(t, text, "| ent/s | 1 |\n| odd | 2 |\n")
}

// Every experiment of a full set has tables with figures of every engine.
func TestFullSetHasAllTables(t *testing.T) {
	in := input(reporttest.Full(reporttest.Options{Seconds: 3})...)
	for _, id := range []string{
		"A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A11", "A12", "A13", "A14",
		"C1", "C2", "C3", "D1", "D2", "D3", "D4", "D5", "E1", "E2", "E3",
	} {
		text := report.Markdown(report.Brief(in, id))
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

**A5.**\
**ent/s**. Single runs. `+"`varve run A5 --blocks 1`"+`

|  | sqlite |
|---|---:|
| all | 1,000 |

<!-- /table:A5 -->

between

<!-- table:A7 -->

**A7.**

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

// A setting of which no engine has a figure has no row in its table.
func TestNoEmptyRows(t *testing.T) {
	in := input(record("A5", "engine=sqlite layout=arkiv", 0, rate(1)), record("A5", "engine=sqlite layout=simple", 0, result.Metric{Value: 2, Unit: "p50-ms"}))
	text := report.Markdown(report.Brief(in, "A5"))
	require.Contains(t, text, "| all | 1 |")
	require.NotContains(t, text, "simple")
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
	text := report.Markdown(report.Brief(in, "D3"))
	require.Contains(t, text, "| arkiv | p99-ms | max 90 (n 48) |\n")
	require.Contains(t, text, "| compact | p99-ms | 80 |\n")
	require.Contains(t, text, "n 1,272 operations a figure")
}

// Overviews of any result set can be rendered, also of an empty one.
func TestRenderOverviews(t *testing.T) {
	var text strings.Builder
	for _, name := range []string{"verdict,v1,criteria", "ranking", "best", "settings", "machine,coverage", "peers:F"} {
		fmt.Fprintf(&text, "<!-- table:%s -->\n<!-- /table:%s -->\n", name, name)
	}
	_, err := report.RenderMarkdown(text.String(), input())
	require.NoError(t, err)
	rendered, err := report.RenderMarkdown(text.String(), full(t, reporttest.Options{Engines: []string{"sqlite"}, Layouts: []string{"arkiv"}, Seconds: 3}))
	require.NoError(t, err)
	for _, want := range []string{"Not known: of the 2 engines", "undecided", "checklist: largest WAL", "| sqlite arkiv | 1 |", "journal_mode"} {
		require.Contains(t, rendered, want)
	}
}

// Lines that only one text has, as often as it has more of them.
func TestDiff(t *testing.T) {
	require.Empty(t, report.Diff("a\nb", "a\nb"))
	require.Equal(t, "-b\n-d\n+x\n+e\n", report.Diff("a\nb\nc\nd\nd", "a\nx\nc\nd\ne"))
}

// Records of another revision, of one that has no name and without a manifest are in
// no table, and it says so. Who has just measured them sees them.
func TestTablesAreOfOneRevision(t *testing.T) {
	of := func(manifest string, layout string, v float64) result.Record {
		r := record("A5", "engine=sqlite layout="+layout, 0, rate(v))
		r.Manifest = manifest
		return r
	}
	in := input(of("two", "arkiv", 1), of("one", "compact", 2), of("one", "simple", 3), of("dirty", "bare", 4), of("none", "arkiv-0", 5))
	text := report.Markdown(report.Brief(in, "A5"))
	require.Contains(t, text, `
| layout | sqlite |
|---|---:|
| compact | 2 |
| simple | 3 |

3 records left out: another revision, two-rev (1), dirty revision dirty-r (1), no manifest (1).
`)
	dirty := input(of("dirty", "bare", 4))
	require.Contains(t, report.Markdown(report.Brief(dirty, "A5")), "No records of a known revision. To measure it: `varve run A5`\n1 records left out: dirty revision dirty-r (1).")
	var out strings.Builder
	require.NoError(t, report.WriteText(&out, dirty, "A5"))
	require.Equal(t, "Test: Single runs; layout bare.\n         sqlite\n  ent/s       4\n\n", out.String())
}

// The median of six runs stands with its interval, and a second measurement of the
// same in no table.
func TestIntervals(t *testing.T) {
	var records []result.Record
	for i, v := range []float64{1, 2, 3, 4, 5, 6} {
		records = append(records, record("A5", "engine=sqlite", i, rate(v)), record("A5", "engine=sqlite aa=2", i, rate(100*v)))
	}
	text := report.Markdown(report.Brief(input(records...), "A5"))
	require.Contains(t, text, "Medians of 6 runs (the 95 % interval).")
	require.Contains(t, text, "| all | 3.5 (1–6) |\n")
	require.NotContains(t, text, "00")
}

// ranked are records of the columns of the ranking, for each layout with a factor
// that all its figures are worse by.
func ranked(factors map[string]float64) []result.Record {
	var records []result.Record
	for layout, f := range factors {
		base := "engine=sqlite layout=" + layout
		rate := func(unit string, v float64) result.Metric { return result.Metric{Value: v / f, Unit: unit} }
		paced := record("D1", base+" rate=6000", 0, result.Metric{Value: 10 * f, Unit: "p50-ms"}, result.Metric{Value: 100 * f, Unit: "data-MB"})
		records = append(records, paced, record("D1", base+" rate=max", 0, rate("settled-rows/s", 1000)))
		for _, mix := range []string{"A", "B", "C"} {
			records = append(records, record("C1", base+" clients=1 mix="+mix, 0, rate("qps", 500)))
		}
	}
	return records
}

// Rows are ranked by the geometric mean of what they are to the best, those inside the
// noise together, and what is missing is said in words.
func TestRanking(t *testing.T) {
	records := ranked(map[string]float64{"arkiv": 1, "simple": 1.05, "compact": 3})
	for unit, id := range map[string]string{"p50-ms": "D1", "settled-rows/s": "D1", "data-MB": "D1", "qps": "C1"} {
		first := record(id, "engine=sqlite rate=9", 0, result.Metric{Value: 100, Unit: unit})
		again := record(id, "engine=sqlite rate=9 aa=2", 0, result.Metric{Value: 110, Unit: unit})
		first.Name, again.Name = strings.ToUpper(unit), strings.ToUpper(unit)
		records = append(records, first, again)
	}
	records = append(records, record("C1", "engine=duckdb layout=arkiv clients=1 mix=A", 0, result.Metric{Value: 50, Unit: "qps"}))
	for i, config := range []string{"engine=sqlite layout=arkiv", "engine=sqlite layout=arkiv aa=2"} { // what is noisy elsewhere is so there
		records = append(records, record("C3", config, 0, result.Metric{Value: 1 + 8*float64(i), Unit: "p50-ms"}, result.Metric{Value: 9, Unit: "p99-ms"}))
	}
	text, err := report.RenderMarkdown("<!-- table:ranking -->\n<!-- /table:ranking -->\n", input(records...))
	require.NoError(t, err)
	require.Contains(t, text, "| sqlite arkiv | 1 | 1× | **10** | **1,000** |")
	require.Contains(t, text, "| sqlite simple | 1 | 1.05× | ≈ 10.5 | ≈ 952 |")
	require.Contains(t, text, "| sqlite compact | 3 | 3× | 30 | 333 |")
	require.Contains(t, text, "| duckdb arkiv | – | – | – | – | 50 |")
	require.Contains(t, text, "Noise floor, from measuring the same twice: 1.1× for p50-ms")
	short, err := report.RenderMarkdown("<!-- table:best -->\n<!-- /table:best -->\n", input(records...))
	require.NoError(t, err)
	require.Contains(t, short, "| sqlite arkiv | 1 | 1× | 1× | 1× |", "its best layout alone, without figures beside")
	require.NotContains(t, short, "simple")
	require.NotContains(t, short, "duckdb", "it has no place")
	require.Contains(t, text, "Not measured, or of too few operations: commit p99, ms (D1); reorg p99, ms (D3); reads/s beside writes (D4).")
	require.Contains(t, text, "Without a place: duckdb arkiv (not measured, or failed: commit p50, ms;")
}

// Without a pair of the same no small difference counts, and only what was measured
// with the same settings is compared.
func TestRankingWithoutPairs(t *testing.T) {
	records := ranked(map[string]float64{"arkiv": 1, "simple": 2})
	records = append(records, record("D1", "engine=duckdb layout=arkiv scale=7 rate=max", 0, result.Metric{Value: 9e9, Unit: "settled-rows/s"}))
	text, err := report.RenderMarkdown("<!-- table:ranking -->\n<!-- /table:ranking -->\n", input(records...))
	require.NoError(t, err)
	require.Contains(t, text, "| sqlite simple | 1 | 2× | ≈ 20 |")
	require.Contains(t, text, "Noise floor: not measured")
	require.NotContains(t, text, "duckdb")
}
