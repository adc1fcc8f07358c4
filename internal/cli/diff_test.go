package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/cli"
)

// figures are the repetitions of a configuration in a result set of a test.
type figures struct {
	experiment, engine string
	p99, rate          []float64 // milliseconds, rows/s
	err                string
}

// writeSet makes a result set and returns its directory.
func writeSet(t *testing.T, runs ...figures) string {
	t.Helper()
	dir := t.TempDir()
	w, err := result.Open(dir)
	require.NoError(t, err)
	for _, f := range runs {
		for i := range max(len(f.p99), 1) {
			r := result.Record{
				Experiment: f.experiment, Name: "Commit", Repeat: i, Started: time.Unix(0, 0).UTC(), Error: f.err,
				Config: result.Config{{Key: "engine", Value: f.engine}, {Key: "layout", Value: "arkiv"}},
			}
			if f.err == "" {
				r.Metrics = []result.Metric{{Value: f.p99[i], Unit: "p99-ms"}, {Value: f.rate[i], Unit: "rows/s"}, {Value: -0.06, Unit: "r-payload"}}
			}
			r.Manifest, err = w.Manifest(struct{}{})
			require.NoError(t, err)
			require.NoError(t, w.Append(&r))
		}
	}
	require.NoError(t, w.Close())
	return dir
}

func around(center float64) []float64 {
	return []float64{center, center * 1.01, center * 0.99, center * 1.02, center * 0.98, center * 1.005}
}

func TestBenchDiff(t *testing.T) {
	old := writeSet(t,
		figures{experiment: "A5", engine: "sqlite", p99: around(10), rate: around(4000)},
		figures{experiment: "A5", engine: "duckdb", p99: around(40), rate: around(100)},
		figures{experiment: "A6", engine: "sqlite", p99: around(7), rate: around(5000)},
		figures{experiment: "A6", engine: "libsql", p99: around(7), rate: around(5000)},
	)
	changed := writeSet(t,
		figures{experiment: "A5", engine: "sqlite", p99: around(12), rate: around(3000)}, // worse by both
		figures{experiment: "A5", engine: "duckdb", p99: around(20), rate: around(102.5)},
		figures{experiment: "A6", engine: "sqlite", err: "out of\nmemory"},
		figures{experiment: "A7", engine: "sqlite", p99: around(1), rate: around(1)},
	)
	code, out, errs := varve("bench", "diff", old, changed)
	require.Equal(t, cli.ExitError, code)
	require.Equal(t, "varve: bench diff: 3 of 7 became worse\n", errs)
	require.Equal(t, `p99-ms, lower is better
                                      old         new         delta
A5 Commit/engine=sqlite/layout=arkiv  10.02 ± 2%  12.03 ± 2%  +20.00% (p=0.002 n=6)  worse
A5 Commit/engine=duckdb/layout=arkiv  40.1 ± 2%   20.05 ± 2%  -50.00% (p=0.002 n=6)  better
geomean                                                       -22.54%

rows/s, higher is better
                                      old         new         delta
A5 Commit/engine=sqlite/layout=arkiv  4010 ± 2%   3008 ± 2%   -25.00% (p=0.002 n=6)  worse
A5 Commit/engine=duckdb/layout=arkiv  100.2 ± 2%  102.8 ± 2%  +2.50% (p=0.026 n=6)   within noise (±5%)
geomean                                                       -12.32%

r-payload, neither is better
                                      old         new         delta
A5 Commit/engine=sqlite/layout=arkiv  -0.06 ± 0%  -0.06 ± 0%  ~ (p=1.000 n=6)
A5 Commit/engine=duckdb/layout=arkiv  -0.06 ± 0%  -0.06 ± 0%  ~ (p=1.000 n=6)

fails now: A6 Commit/engine=sqlite/layout=arkiv: out of memory
only in old: A6 Commit/engine=libsql/layout=arkiv
only in new: A7 Commit/engine=sqlite/layout=arkiv
7 compared, 2 worse by more than 5% and the noise (false discovery rate 0.05, p ≤ 0.042), 1 failing now
`, out)

	code, out, errs = varve("bench", "diff", old, old)
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, "12 compared, 0 worse by more than 5% and the noise (false discovery rate 0.05, p ≤ 0.0042), 0 failing now")

	code, out, errs = varve("bench", "diff", "--threshold=35", "--units=p99-ms,rows/s", old, writeSet(t,
		figures{experiment: "A5", engine: "sqlite", p99: around(12), rate: around(3000)}))
	require.Equal(t, cli.ExitOK, code, errs)
	require.NotContains(t, out, "r-payload")
}

func TestBenchDiffJSON(t *testing.T) {
	old := writeSet(t, figures{experiment: "A5", engine: "sqlite", p99: around(10), rate: []float64{0, 0, 0, 0, 0, 0}})
	changed := writeSet(t, figures{experiment: "A5", engine: "sqlite", p99: around(8), rate: around(100)})
	code, out, errs := varve("bench", "diff", "--json", old, changed)
	require.Equal(t, cli.ExitOK, code, errs)
	type row struct {
		Name, Verdict string
		Significant   bool
		P             float64
		Delta         *float64 `json:"delta_percent"`
		Old, New      struct {
			Median, Low, High float64
			N                 int
		}
	}
	var d struct {
		Compared, Regressions int
		Units                 []struct {
			Unit, Better string
			Rows         []row
			Geomean      *float64 `json:"geomean_ratio"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out), &d))
	require.Equal(t, 3, d.Compared)
	require.Zero(t, d.Regressions)
	p99 := d.Units[0].Rows[0]
	require.Equal(t, "better", p99.Verdict)
	require.True(t, p99.Significant)
	require.InDelta(t, -20, *p99.Delta, 0.1)
	require.InDelta(t, 2.0/924, p99.P, 1e-9)
	require.Equal(t, 6, p99.New.N)
	require.Less(t, p99.New.Low, p99.New.Median)
	require.InDelta(t, 0.8, *d.Units[0].Geomean, 0.01)
	rate := d.Units[1].Rows[0] // from 0: no percentage, and better all the same
	require.Nil(t, rate.Delta)
	require.Equal(t, "better", rate.Verdict)
	require.Nil(t, d.Units[1].Geomean)
	require.Equal(t, "neutral", d.Units[2].Better)
}

// Few samples cannot tell a doubling, however far they are apart, and nobody
// should take that for nothing worse.
func TestBenchDiffFewSamples(t *testing.T) {
	old := writeSet(t, figures{experiment: "A5", engine: "sqlite", p99: []float64{10, 10.1, 9.9}, rate: []float64{1, 1, 1}})
	changed := writeSet(t, figures{experiment: "A5", engine: "sqlite", p99: []float64{100, 101, 99}, rate: []float64{1, 1, 1}})
	code, out, errs := varve("bench", "diff", "--units=p99-ms", old, changed)
	require.Equal(t, cli.ExitNotChecked, code)
	require.Equal(t, "varve: bench diff: 1 of 1 have too few repetitions to tell a doubling, repeat both sides at least 4 times\n", errs)
	require.Equal(t, `p99-ms, lower is better
                                      old  new  delta
A5 Commit/engine=sqlite/layout=arkiv  10   100  ~ (p=0.100 n=3)  ?

? 1 of 1 have too few repetitions to tell a doubling, repeat both sides at least 4 times
1 compared, 0 worse by more than 5% and the noise (false discovery rate 0.05, p ≤ 0.05), 0 failing now
`, out)

	// Worse is worse, also beside rows that cannot tell.
	beside := func(p99 []float64) string {
		return writeSet(t, figures{experiment: "A5", engine: "sqlite", p99: []float64{10, 10.1, 9.9}, rate: []float64{1, 1, 1}},
			figures{experiment: "A5", engine: "duckdb", p99: p99, rate: p99})
	}
	code, out, _ = varve("bench", "diff", "--units=p99-ms", beside(around(10)), beside(around(20)))
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, out, "? 1 of 2 have too few repetitions to tell a doubling, repeat both sides at least 4 times\n2 compared, 1 worse")

	noisy := writeSet(t, figures{experiment: "A5", engine: "sqlite", p99: []float64{1, 10, 100, 1e3, 1e4, 1e5}, rate: around(1)})
	code, out, _ = varve("bench", "diff", "--units=p99-ms", noisy, noisy)
	require.Equal(t, cli.ExitNotChecked, code)
	require.Contains(t, out, "? 1 of 1 have too few repetitions to tell a doubling; 1 are too noisy even for 100: find out why\n")
}

// What two measurements of the same are apart is noise, in every row of the unit.
func TestBenchDiffNoiseFloor(t *testing.T) {
	set := func(name, first, again string, other float64) string {
		var text strings.Builder
		for range 8 {
			fmt.Fprintf(&text, "BenchmarkGet/layout=arkiv-1/aa=1 1 %s ms\nBenchmarkGet/layout=arkiv-1/aa=2 1 %s ms\n", first, again)
		}
		for _, v := range append(around(other), around(other)...) {
			fmt.Fprintf(&text, "BenchmarkPut 1 %v ms\n", v)
		}
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
		return path
	}
	old := set("old", "100", "130", 10)
	code, out, errs := varve("bench", "diff", old, set("new", "100", "110", 12))
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, " Get/layout=arkiv-1  100 ± 0%    100 ± 0%    ~ (p=1.000 n=8)\n")
	require.Contains(t, out, " Put/                10.02 ± 1%  12.03 ± 1%  +20.00% (p=0.000 n=12)  within noise (±30%)\n")

	code, _, errs = varve("bench", "diff", "--filter=.name:Put", old, set("new", "100", "110", 12))
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, errs, "1 of 1 became worse")

	code, _, errs = varve("bench", "diff", old, set("new", "100", "110", 14))
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, errs, "1 of 2 became worse")
}

// Output of go test -bench is compared too, and its units may say what is better.
func TestBenchDiffFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, values ...string) string {
		text := "Unit hits better=higher\npkg: example.com/x\n"
		for _, v := range values {
			text += "BenchmarkGet/layout=arkiv-13-2 100 " + v + " ns/op " + v + " hits\n"
		}
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	old, changed := write("old", "100", "101", "99", "98", "102"), write("new", "150", "151", "149", "148", "152")
	code, out, errs := varve("bench", "diff", old, changed)
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, errs, "1 of 2 became worse")
	require.Contains(t, out, "ns/op, lower is better")
	require.Contains(t, out, "hits, higher is better")
	require.Contains(t, out, "example.com/x Get/layout=arkiv-13/gomaxprocs=2  100  150  +50.00% (p=0.008 n=5)  worse\n")
	require.Contains(t, out, "+50.00% (p=0.008 n=5)  better\n")
}

func TestBenchDiffUsage(t *testing.T) {
	set := writeSet(t, figures{experiment: "A5", engine: "sqlite", p99: around(1), rate: around(1)})
	other := writeSet(t, figures{experiment: "A6", engine: "sqlite", p99: around(1), rate: around(1)})
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"one", []string{set}, "expected"},
		{"missing", []string{set, filepath.Join(set, "none")}, "no such file"},
		{"not a set", []string{t.TempDir(), set}, "read result set"},
		{"nothing in common", []string{set, other}, "nothing in common"},
		{"no such unit", []string{"--units=p98-ms", set, set}, "nothing in common"},
		{"alpha", []string{"--alpha=1", set, set}, "--alpha must be between"},
		{"filter", []string{"--filter=/engine:", set, set}, "--filter"},
		{"filter of units", []string{"--filter=.unit:ms", set, set}, "--units"},
		{"threshold", []string{"--threshold=-1", set, set}, "--threshold: want from 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, _, errs := varve(append([]string{"bench", "diff"}, tt.args...)...)
			require.Equal(t, cli.ExitUsage, code)
			require.Contains(t, errs, tt.want)
		})
	}
}

// What a crash left torn is passed over, and said.
func TestBenchDiffTorn(t *testing.T) {
	set := writeSet(t, figures{experiment: "A5", engine: "sqlite", p99: around(1), rate: around(1)})
	f, err := os.OpenFile(filepath.Join(set, result.RecordsFile), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"experiment":"A5"`)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	code, _, errs := varve("bench", "diff", set, set)
	require.Equal(t, cli.ExitOK, code)
	require.Equal(t, 2, strings.Count(errs, "warning: records.jsonl: the last line is torn"))
}
