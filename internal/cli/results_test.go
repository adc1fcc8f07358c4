package cli_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
)

// A figure that is not a number is refused by file, line and name, by each
// command that reads results: no median or test of it means anything.
func TestResultsAreNumbers(t *testing.T) {
	good := benchFile(t, bench{"Get", "ns/op", around(100)})
	for _, value := range []string{"NaN", "Inf", "+Inf", "-inf"} {
		bad := resultFile(t, "BenchmarkGet 1 100 ns/op\nBenchmarkGet 1 100 ns/op\nBenchmarkGet 1 "+value+" ns/op\n")
		for _, args := range [][]string{
			{"bench", "diff", good, bad},
			{"bench", "diff", bad, good},
			{"report", bad, "--check"},
			{"answer", "--from", filepath.Dir(bad)},
		} {
			code, out, errs := varve(args...)
			require.Equal(t, cli.ExitUsage, code, "%v: %s%s", args, out, errs)
			require.Contains(t, errs, "D1-sqlite-1.txt:3: BenchmarkGet: ")
			require.Contains(t, errs, "ns/op is not a finite number")
		}
	}
	excluded := resultFile(t, "BenchmarkGet 1 100 ns/op\nexcluded: the clock\nBenchmarkGet 1 NaN ns/op\n")
	code, _, errs := varve("report", excluded, "--check")
	require.Equal(t, cli.ExitOK, code, errs)
}

// No change is none, also from nothing to nothing.
func TestBenchDiffZero(t *testing.T) {
	zero := benchFile(t, bench{"Get", "B/op", []float64{0, 0, 0, 0, 0, 0}})
	code, out, errs := varve("bench", "diff", zero, zero)
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, "Get   0    0    +0.0% (p=1.000 n=6+6)")
	code, out, _ = varve("bench", "diff", zero, benchFile(t, bench{"Get", "B/op", around(64)}))
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, out, "from 0 (p=0.002 n=6+6)  worse")
}

// A phase in which no commit or no read finished is shown as that.
func TestEmptyPhases(t *testing.T) {
	const (
		sustained = "BenchmarkSustained/engine=sqlite/layout=compact/profile=mendoza/scale="
		frontier  = "BenchmarkFrontier/engine=sqlite/layout=compact/profile=mendoza/scale=1/mix=W/rate=6000 1 "
	)
	for name, text := range map[string]string{
		"commits":        "experiment: D1\n" + sustained + "1/rate=6000 1 0 qps 0 errors 0 rows/s 0 ent/s\n",
		"one of sizes":   "experiment: D1\n" + sustained + "1/rate=max 1 0 qps 0 rows/s 0 settled-rows/s\n" + sustained + "2/rate=max 1 0 qps 0 rows/s 0 settled-rows/s\n",
		"one is left":    "experiment: D1\n" + sustained + "0.5/rate=max 1 0 rows/s 0 settled-rows/s\n" + sustained + "1/rate=max 9 9 settled-rows/s 7 p99-ms\n",
		"a size of none": "experiment: D1\n" + sustained + "0/rate=max 9 9 rows/s 9 settled-rows/s\n" + sustained + "1/rate=max 9 9 settled-rows/s\n",
		"timeline": "experiment: D1\n" + sustained + "1/rate=6000 1 0 rows/s\n" +
			"BenchmarkTimeline/engine=sqlite/layout=compact/scale=1/rate=6000/second=1 1 0 ops\n",
		"timeline with a checkpoint": "experiment: D1\n" + sustained + "1/rate=6000 1 0 rows/s\n" +
			"BenchmarkTimeline/engine=sqlite/layout=compact/scale=1/rate=6000/second=1 1 0 ops 1 checkpoints\n",
		"beside":  "experiment: I3\n" + frontier + "0 rows/s 0 qps 0 late\n",
		"reads":   "experiment: C1\nBenchmarkReadMix/engine=sqlite/layout=compact/scale=1/mix=W/clients=10 1 0 qps\n",
		"V1":      "experiment: I5\nBenchmarkV1/engine=sqlite/layout=compact/profile=mendoza/scale=1/mix=W/rate=10000/qps=1000 1 0 rows/s 0 qps\n",
		"machine": "experiment: M1\nBenchmarkMachine/engine=sqlite/host=a 1 0 syncs/s\n",
		"first":   "experiment: Q1\nBenchmarkFirstLook/engine=sqlite/layout=compact 1 0 load-s 0 B/ent\nBenchmarkFirstLook/engine=sqlite/layout=arkiv 1 0 load-s 0 B/ent\n",
	} {
		t.Run(name, func(t *testing.T) {
			set := filepath.Dir(resultFile(t, text))
			code, out, errs := varve("answer", "-v", "--from", set)
			require.Equal(t, cli.ExitOK, code, errs)
			require.NotContains(t, out, "NaN")
			require.NotContains(t, out, "Inf")
			switch name {
			case "commits", "one of sizes", "beside", "V1":
				require.Contains(t, out, "no commit finished in 1 of sqlite compact")
			case "reads":
				require.Contains(t, out, "no read finished in 1 of sqlite compact")
			}
			code, _, errs = varve("report", set, "-o", filepath.Join(t.TempDir(), "page.html"))
			require.Equal(t, cli.ExitOK, code, errs)
			code, out, errs = varve("bench", "diff", set, set)
			require.NotEqual(t, cli.ExitError, code, "%s%s", out, errs)
			require.NotContains(t, out, "NaN")
		})
	}
}

// A size that is not a number has no place on the axis of a picture.
func TestSizeIsNoNumber(t *testing.T) {
	name := "BenchmarkSustained/engine=sqlite/layout=compact/profile=mendoza/rate=max/scale="
	for _, scale := range []string{"NaN", "Inf", "x"} {
		set := resultFile(t, "experiment: D1\n"+name+scale+" 9 9 settled-rows/s\n"+name+"1 9 9 settled-rows/s\n")
		code, _, errs := varve("answer", "--from", set)
		require.Equal(t, cli.ExitError, code, errs)
		require.Contains(t, errs, "scale="+scale+": its scale is no number")
	}
}

// Costs are compared as times are, and a file of before, in milliseconds, with one
// in nanoseconds.
func TestBenchDiffCosts(t *testing.T) {
	text := func(unit string, times, bytes float64) (lines string) {
		for i := 0.0; i < 6; i++ {
			lines += fmt.Sprintf("BenchmarkCommit 1 %v %s %v cpu-ns/op %v write-B/op 1 syncs/op\n",
				times+i*times/1000, unit, 5e6+i, bytes+i)
		}
		return lines
	}
	old := resultFile(t, text("p50-ms", 2, 4096))
	code, out, errs := varve("bench", "diff", old, resultFile(t, text("p50-ns", 2e6, 8500)))
	require.Equal(t, cli.ExitError, code, errs)
	require.Regexp(t, `cpu-ns/op .*\nCommit .* \+0.0% [^\n]*\d\)\s*\n`, out)
	require.Regexp(t, `write-B/op .*\nCommit .* \+1[\d.]+% .*  worse\n`, out)
	require.Regexp(t, `p50-ms .*\nCommit .* \+0.0% [^\n]*\d\)\s*\n`, out)
	require.Contains(t, out, "4 compared, 1 worse, 0 better")
}
