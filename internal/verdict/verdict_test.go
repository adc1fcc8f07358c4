package verdict_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/reporttest"
	"github.com/varvedb/varve/internal/verdict"
)

// record makes a record of "experiment engine key=value …" with metrics by unit.
func record(experiment, engine string, settings string, metrics map[string]float64) result.Record {
	r := result.Record{Experiment: experiment, Name: "Test", Config: result.Config{
		{Key: "engine", Value: engine}, {Key: "layout", Value: "arkiv"},
	}}
	for _, pair := range strings.Fields(settings) {
		k, v, _ := strings.Cut(pair, "=")
		r.Config = r.Config.With(k, v)
	}
	for unit, v := range metrics {
		r.Metrics = append(r.Metrics, result.Metric{Value: v, Unit: unit})
	}
	return r
}

func crashed(r result.Record) result.Record {
	r.Metrics, r.Error = nil, "signal: killed"
	return r
}

type figures = map[string]float64

func sustained(engine, scale string, p99 float64) result.Record {
	return record("D1", engine, "scale="+scale+" rate=6000",
		figures{"p50-ms": p99 / 4, "p99-ms": p99, "max-ms": p99 * 2, "rows/s": 5990, "wal-MB": 60, "resident": 0.99})
}

func find(t *testing.T, criteria []verdict.Criterion, name string) verdict.Criterion {
	t.Helper()
	for _, c := range criteria {
		if c.Name == name {
			return c
		}
	}
	require.Fail(t, "no criterion "+name)
	return verdict.Criterion{}
}

func TestTree(t *testing.T) {
	tests := []struct {
		name    string
		records []result.Record
		answers []verdict.Outcome // of the engines asked, in the tree's order
		engine  string
		leaf    string
	}{
		{"first passes", []result.Record{sustained("sqlite", "5", 200)},
			[]verdict.Outcome{verdict.Pass}, "sqlite", "stay with SQLite"},
		{"second passes", []result.Record{sustained("sqlite", "5", 900), sustained("libsql", "5", 300)},
			[]verdict.Outcome{verdict.Fail, verdict.Pass}, "libsql", "libSQL: the least migration"},
		{"third passes", []result.Record{sustained("sqlite", "5", 900), sustained("libsql", "5", 800), sustained("postgres", "5", 100)},
			[]verdict.Outcome{verdict.Fail, verdict.Fail, verdict.Pass}, "postgres", "embedded Postgres: accept the operational overhead"},
		{"crash is a no", []result.Record{crashed(sustained("sqlite", "5", 1)), sustained("libsql", "5", 300)},
			[]verdict.Outcome{verdict.Fail, verdict.Pass}, "libsql", "libSQL: the least migration"},
		{"none passes", []result.Record{
			sustained("sqlite", "5", 900), sustained("libsql", "5", 900), sustained("postgres", "5", 900), sustained("duckdb", "5", 900),
		}, []verdict.Outcome{verdict.Fail, verdict.Fail, verdict.Fail, verdict.Fail}, "", "revisit the architecture: sharding, asynchronous writes"},
		{"not measured", []result.Record{sustained("libsql", "5", 100)},
			[]verdict.Outcome{verdict.Unknown}, "", "not decided: measure sqlite first"},
		{"one small size", []result.Record{sustained("sqlite", "0.05", 100)},
			[]verdict.Outcome{verdict.Unknown}, "", "not decided: measure sqlite first"},
		{"one small size, too slow", []result.Record{sustained("sqlite", "0.05", 600), sustained("libsql", "5", 100)},
			[]verdict.Outcome{verdict.Fail, verdict.Pass}, "libsql", "libSQL: the least migration (by extrapolation)"},
		{"limit itself", []result.Record{sustained("sqlite", "5", 500), sustained("libsql", "5", 499)},
			[]verdict.Outcome{verdict.Fail, verdict.Pass}, "libsql", "libSQL: the least migration"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			report := verdict.Evaluate(tt.records)
			require.Len(t, report.Walks, 1)
			w := report.Walks[0]
			var answers []verdict.Outcome
			for _, s := range w.Steps {
				answers = append(answers, s.Answer)
			}
			require.Equal(t, tt.answers, answers)
			require.Equal(t, tt.engine, w.Engine)
			require.Equal(t, tt.leaf, w.Leaf)
		})
	}
}

// A power law over three sizes is found again at 5x.
func TestExtrapolation(t *testing.T) {
	var records []result.Record
	for _, scale := range []string{"0.05", "0.2", "0.8"} {
		s := map[string]float64{"0.05": 0.05, "0.2": 0.2, "0.8": 0.8}[scale]
		records = append(records, record("D5", "sqlite", "scale="+scale, figures{"p99-ms": 100 * math.Sqrt(s)}))
	}
	records = append(records, sustained("sqlite", "0.8", 90))
	report := verdict.Evaluate(records)
	c := find(t, report.Walks[0].Steps[0].Criteria, "commit p99 at 5x")
	require.InEpsilon(t, 100*math.Sqrt(5), *c.Got, 1e-6)
	require.True(t, c.Extrapolated)
	require.Equal(t, verdict.Pass, c.Verdict)
	require.InEpsilon(t, 5/math.Sqrt(5), *c.Margin, 1e-6)
	require.Contains(t, c.Note, "extrapolated 6.25× beyond scale 0.8, where it was 89.4 ms")
	require.Contains(t, c.Note, "scale^0.50 over 3 sizes")
	require.Contains(t, c.Source, "D5 Test/engine=sqlite/layout=arkiv/scale=0.8")
	rate := find(t, report.Walks[0].Steps[0].Criteria, "rows/s sustained at 5x")
	require.Equal(t, verdict.Pass, rate.Verdict)
	require.True(t, rate.Extrapolated)
	require.Equal(t, "stay with SQLite (by extrapolation)", report.Walks[0].Leaf)
}

// Where the trend leaves room for both answers, the tree says so.
func TestUncertainExtrapolation(t *testing.T) {
	report := verdict.Evaluate([]result.Record{
		record("D5", "sqlite", "scale=0.1", figures{"p99-ms": 20}),
		record("D5", "sqlite", "scale=0.4", figures{"p99-ms": 80}),
		record("D5", "sqlite", "scale=1.6", figures{"p99-ms": 90}),
		sustained("sqlite", "1.6", 90),
	})
	c := find(t, report.Walks[0].Steps[0].Criteria, "commit p99 at 5x")
	require.True(t, c.Uncertain)
	require.Equal(t, "pass (extrapolated, uncertain)", c.Answer())
	require.Contains(t, c.Note, "includes the limit")
	require.Equal(t, "stay with SQLite (by uncertain extrapolation)", report.Walks[0].Leaf)
}

// What gets faster with size is not believed to go on doing so.
func TestExtrapolationDoesNotShrink(t *testing.T) {
	report := verdict.Evaluate([]result.Record{
		record("D5", "sqlite", "scale=0.1", figures{"p99-ms": 60}),
		record("D5", "sqlite", "scale=1", figures{"p99-ms": 40}),
	})
	c := find(t, report.Assessments[0].Criteria, "commit p99 at 5x")
	require.InEpsilon(t, 40, *c.Got, 1e-9)
	require.Contains(t, c.Note, "no growth over 2 sizes")
}

func TestWriteTargets(t *testing.T) {
	report := verdict.Evaluate([]result.Record{
		sustained("sqlite", "0.1", 10),
		record("D1", "sqlite", "scale=1 rate=6000", figures{"p50-ms": 100, "p99-ms": 1600, "max-ms": 3500, "rows/s": 4000}),
		record("D1", "sqlite", "scale=1 rate=max", figures{"p50-ms": 1, "p99-ms": 2, "max-ms": 3, "rows/s": 4500}),
	})
	criteria := report.Assessments[0].Criteria
	for name, want := range map[string]verdict.Outcome{"commit p50": verdict.Pass, "commit p99": verdict.Fail, "commit max": verdict.Fail, "rows a second": verdict.Fail} {
		c := find(t, criteria, name)
		require.Equal(t, want, c.Verdict, name)
		require.Equal(t, "1", c.Scale)
	}
	require.Contains(t, find(t, criteria, "commit p99").Note, "good side of 2,000 ms, where failure begins")
	require.Empty(t, find(t, criteria, "commit max").Note)
	require.InEpsilon(t, 4500, *find(t, criteria, "rows a second").Got, 1e-9)
	require.InEpsilon(t, 0.9, *find(t, criteria, "rows a second").Margin, 1e-9)
}

func TestChecklist(t *testing.T) {
	bytes := func(v int64) *int64 { return &v }
	resident := 0.9
	r := record("D1", "sqlite", "scale=1 rate=6000", figures{"p99-ms": 10, "max-ms": 400})
	r.Timeline = []result.Second{
		{At: 1, ReadBytes: bytes(20 * 4096), WALBytes: bytes(150e6), Resident: &resident},
		{At: 2, ReadBytes: bytes(0), WALBytes: bytes(10e6), Resident: &resident},
	}
	criteria := verdict.Evaluate([]result.Record{r}).Assessments[0].Criteria
	require.Equal(t, verdict.Fail, find(t, criteria, "resident in the page cache").Verdict)
	require.InEpsilon(t, 90, *find(t, criteria, "resident in the page cache").Got, 1e-9)
	require.InEpsilon(t, 150, *find(t, criteria, "largest WAL").Got, 1e-9)
	require.Equal(t, verdict.Pass, find(t, criteria, "longest commit").Verdict)
	reads := find(t, criteria, "reads from disk")
	require.InEpsilon(t, 10, *reads.Got, 1e-9)
	require.Equal(t, verdict.Unknown, reads.Verdict, "large reads would be fewer")
}

func TestNothingTold(t *testing.T) {
	r := record("D1", "duckdb", "scale=1 rate=6000", figures{"p99-ms": 10})
	criteria := verdict.Evaluate([]result.Record{r}).Assessments[0].Criteria
	c := find(t, criteria, "resident in the page cache")
	require.Equal(t, verdict.Unknown, c.Verdict)
	require.Nil(t, c.Got)
	require.NotEmpty(t, c.Note)
	c = find(t, criteria, "commit p99 while the same keys are deleted and inserted")
	require.Equal(t, "varve run D3 --engines duckdb --layouts arkiv", c.Command)
}

func TestCombined(t *testing.T) {
	report := verdict.Evaluate([]result.Record{
		record("D4", "sqlite", "scale=1 qps=0", figures{"p99-ms": 20, "qps": 12, "rows/s": 6000}),
		record("D4", "sqlite", "scale=1 qps=100", figures{"p99-ms": 30, "qps": 100, "rows/s": 6000}),
		record("D4", "sqlite", "scale=1 qps=5000", figures{"p99-ms": 2500, "qps": 4000, "rows/s": 6000}),
		record("D4", "sqlite", "scale=1 qps=ceiling", figures{"p99-ms": 1500, "qps": 2900, "ceiling-qps": 3000, "rows/s": 6000}),
	})
	criteria := report.Assessments[0].Criteria
	require.Contains(t, find(t, criteria, "commit p99 beside 0 reads/s").Note, "6,000 rows/s + 0 reads/s")
	require.Equal(t, verdict.Fail, find(t, criteria, "commit p99 beside 5000 reads/s").Verdict)
	ceiling := find(t, criteria, "reads/s with commits below 2 s")
	require.Equal(t, verdict.Pass, ceiling.Verdict)
	require.Equal(t, "6,000 rows/s + 3,000 reads/s", ceiling.Note)
}

func TestV1(t *testing.T) {
	alone := func(scale string, rows float64) result.Record {
		return record("D1", "sqlite", "scale="+scale+" rate=max", figures{"p99-ms": 10, "rows/s": rows})
	}
	ceiling := func(scale string, reads float64) result.Record {
		return record("D4", "sqlite", "scale="+scale+" qps=ceiling", figures{"p99-ms": 10, "ceiling-qps": reads, "rows/s": 6000})
	}
	tests := []struct {
		name    string
		records []result.Record
		want    verdict.Decision
		share   float64
	}{
		{"carries it", []result.Record{alone("1", 30_000), ceiling("1", 4000)}, verdict.Go, 30_000 / (10_000 + 24_000*0.25)},
		{"writes too slow alone", []result.Record{alone("1", 8000), ceiling("1", 4000)}, verdict.NoGo, 0.8},
		{"reads too slow", []result.Record{alone("1", 30_000), ceiling("1", 500)}, verdict.NoGo, 0.5},
		{"no read at all", []result.Record{alone("1", 30_000), ceiling("1", 0)}, verdict.NoGo, 0},
		{"measured small", []result.Record{alone("0.05", 30_000), ceiling("0.05", 4000)}, verdict.Undecided, 30_000 / (10_000 + 24_000*0.25)},
		{"measured at once", []result.Record{
			record("E3", "sqlite", "scale=1 qps=1500", figures{"p99-ms": 10, "qps": 1500, "rows/s": 12_000}),
		}, verdict.Go, 1.2},
		{"no ceiling", []result.Record{alone("1", 30_000)}, verdict.Undecided, -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := verdict.Evaluate(tt.records).Assessments[0]
			require.Equal(t, tt.want, a.V1)
			c := find(t, a.Criteria, "10K rows/s with 1K reads/s")
			if tt.share < 0 {
				require.Nil(t, c.Got)
				return
			}
			require.InDelta(t, tt.share, *c.Got, 1e-9)
		})
	}
}

// Only durable runs count where there are any; without, the criterion says so.
func TestDurability(t *testing.T) {
	relaxed := record("D1", "sqlite", "durability=relaxed scale=5 rate=6000", figures{"p99-ms": 1, "rows/s": 6000})
	durable := record("D1", "sqlite", "durability=durable scale=5 rate=6000", figures{"p99-ms": 800, "rows/s": 6000})
	c := find(t, verdict.Evaluate([]result.Record{relaxed, durable}).Assessments[0].Criteria, "commit p99 at 5x")
	require.InEpsilon(t, 800, *c.Got, 1e-9)
	c = find(t, verdict.Evaluate([]result.Record{relaxed}).Assessments[0].Criteria, "commit p99 at 5x")
	require.Contains(t, c.Note, "durability relaxed: no durable run")
}

// A p99 of few commits says so.
func TestFewCommits(t *testing.T) {
	r := sustained("sqlite", "5", 200)
	r.Latencies = []result.Distribution{{Kind: "commit", Count: 11}}
	c := find(t, verdict.Evaluate([]result.Record{r}).Assessments[0].Criteria, "commit p99 at 5x")
	require.Contains(t, c.Note, "p99 of 11 commits, so of the slowest one")
}

// What a process leaves that ended before its first record is told.
func TestEndedEarly(t *testing.T) {
	end := result.Record{Experiment: "D3", Name: "Run", Config: result.Config{{Key: "engine", Value: "sqlite"}}, Error: "ended after 15m0s, see --timeout"}
	c := find(t, verdict.Evaluate([]result.Record{sustained("sqlite", "1", 10), end}).Assessments[0].Criteria,
		"commit p99 while the same keys are deleted and inserted")
	require.Equal(t, verdict.Unknown, c.Verdict)
	require.Contains(t, c.Note, "ended after 15m0s")
}

func TestText(t *testing.T) {
	var out bytes.Buffer
	report := verdict.Evaluate(nil)
	require.NoError(t, report.WriteText(&out))
	require.Contains(t, out.String(), "varve run D")

	out.Reset()
	report = verdict.Evaluate(reporttest.Full(reporttest.Options{Seconds: 5}))
	require.NoError(t, report.WriteText(&out))
	text := out.String()
	for _, want := range []string{
		"layout arkiv: ", "layout compact: ", "(extrapolated)", "V1: 621,000 entities", "sqlite arkiv\n", "duckdb simple\n", "varve run ",
	} {
		require.Contains(t, text, want)
	}
	require.NotNil(t, report.Find("postgres", "compact"))
	require.Nil(t, report.Find("postgres", "none"))
}
