package cli_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
)

// bench are the repetitions of a benchmark in a file.
type bench struct {
	name, unit string
	values     []float64
}

func benchFile(t *testing.T, list ...bench) string {
	t.Helper()
	var text strings.Builder
	for _, b := range list {
		for _, v := range b.values {
			fmt.Fprintf(&text, "Benchmark%s 1 %v %s\n", b.name, v, b.unit)
		}
	}
	return resultFile(t, text.String())
}

func around(center float64) []float64 {
	return []float64{center, center * 1.01, center * 0.99, center * 1.02, center * 0.98, center * 1.005}
}

func TestBenchDiff(t *testing.T) {
	old := benchFile(t, bench{"Commit", "p99-ms", around(10)}, bench{"Get", "qps", around(100)}, bench{"Scan", "ns/op", around(7)}, bench{"Sum", "r-x", around(1)})
	code, out, errs := varve("bench", "diff", old,
		benchFile(t, bench{"Commit", "p99-ms", around(12)}, bench{"Get", "qps", around(200)}, bench{"New", "ns/op", around(1)}, bench{"Sum", "r-x", around(9)}))
	require.Equal(t, cli.ExitError, code)
	require.Equal(t, "varve: bench diff: 2 of 3 rows became worse, failed or are gone\n", errs)
	require.Equal(t, `p99-ms  old  new  change
Commit  10   12   +20.0% (p=0.002 n=6+6)  worse
qps     old  new  change
Get     100  200  +100.0% (p=0.002 n=6+6)  better
gone or failed: Scan
old and new are of different sittings: what else changed on the host between them counts too
2 compared, 1 worse, 1 better, 1 gone or failed (p ≤ 0.05)
`, out)

	code, out, errs = varve("bench", "diff", old, old)
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, "3 compared, 0 worse, 0 better, 0 gone or failed")

	code, _, errs = varve("bench", "diff", "--threshold=35", "--filter=.unit:p99-ms", old, benchFile(t,
		bench{"Commit", "p99-ms", around(12)}, bench{"Get", "qps", around(1)}, bench{"Scan", "ns/op", around(7)}, bench{"Sum", "r-x", around(1)}))
	require.Equal(t, cli.ExitOK, code, errs)
}

// A sitting in both sets is compared with itself, so that a faster host changes
// no result. Sittings at different hours of a host are compared by their
// medians, and sittings of different hosts are not.
func TestBenchDiffSittings(t *testing.T) {
	type sitting struct {
		id, host string
		center   float64
	}
	file := func(list ...sitting) string {
		text := ""
		for _, s := range list {
			text += "experiment: D1\nsitting: " + s.id + "\nhost: " + s.host + "\n"
			for _, v := range around(s.center) {
				text += fmt.Sprintf("BenchmarkCommit 1 %v ns/op\n", v)
			}
		}
		return resultFile(t, text)
	}
	for _, tt := range []struct {
		name     string
		old, now []sitting
		code     int
		want     string
	}{
		{"the same sittings", []sitting{{"1", "a", 10}, {"2", "a", 80}}, []sitting{{"1", "a", 11}, {"2", "a", 104}}, cli.ExitError, "+20.0% (p=0.000 n=12+12)  worse"},
		{"a slower host more", []sitting{{"1", "a", 10}}, []sitting{{"1", "a", 10}, {"2", "b", 80}}, cli.ExitOK, "+0.0% (p=1.000 n=6+6)"},
		{"another hour", []sitting{{"1", "a", 10}}, []sitting{{"2", "a", 12}}, cli.ExitError, "old and new are of different sittings"},
		{"other hours", []sitting{{"1", "a", 10}, {"2", "a", 11}}, []sitting{{"3", "a", 20}, {"4", "a", 21}}, cli.ExitNotChecked, "(p=0.333 n=2+2)  too few"},
		{"another host", []sitting{{"1", "a", 10}}, []sitting{{"2", "b", 80}}, cli.ExitUsage, "have no host in common, and times of two hosts are not compared"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, out, errs := varve("bench", "diff", file(tt.old...), file(tt.now...))
			require.Equal(t, tt.code, code, out+errs)
			require.Contains(t, out+errs, tt.want)
		})
	}
	both := resultFile(t, "host: a\nBenchmarkX 1 5 ns/op\nhost: b\nBenchmarkY 1 5 ns/op\n")
	_, out, _ := varve("bench", "diff", both, resultFile(t, "host: a\nBenchmarkX 1 5 ns/op\nhost: c\nBenchmarkY 1 5 ns/op\n"))
	require.Contains(t, out, "not compared, since it is of other hosts: ns/op Y\n")
}

// What failed is no longer there: its lines are excluded.
func TestBenchDiffFailed(t *testing.T) {
	old := benchFile(t, bench{"Commit", "ns/op", around(10)}, bench{"Get", "ns/op", around(10)})
	now := resultFile(t, "BenchmarkCommit 1 10 ns/op\nexcluded: error: out of memory\nBenchmarkGet 1 1 failed\n")
	code, out, _ := varve("bench", "diff", old, now)
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, out, "gone or failed: Get\n")
}

// Few samples cannot show a change, however far they are apart, and must not be
// taken for "no worse".
func TestBenchDiffFewSamples(t *testing.T) {
	old, now := benchFile(t, bench{"Get", "ns/op", []float64{10, 10.1, 9.9}}), benchFile(t, bench{"Get", "ns/op", []float64{100, 101, 99}})
	code, out, errs := varve("bench", "diff", old, now)
	require.Equal(t, cli.ExitNotChecked, code)
	require.Equal(t, "varve: bench diff: 1 of 1 rows have too few repetitions to tell, repeat both sides 4 times, or compare less\n", errs)
	require.Contains(t, out, "+900.0% (p=0.100 n=3+3)  too few")
}

// A file may declare which direction is better, and names have the parts that
// go test adds.
func TestBenchDiffUnits(t *testing.T) {
	file := func(values []float64) string {
		text := "Unit hits better=higher\npkg: example.com/x\n"
		for _, v := range values {
			text += fmt.Sprintf("BenchmarkGet/layout=arkiv-13-2 100 %v hits\n", v)
		}
		return resultFile(t, text)
	}
	code, out, _ := varve("bench", "diff", file(around(100)), file(around(50)))
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, out, "example.com/x Get/layout=arkiv-13-2")
}

func TestBenchDiffJSON(t *testing.T) {
	old, now := benchFile(t, bench{"Get", "qps", []float64{0, 0, 0, 0, 0, 0}}), benchFile(t, bench{"Get", "qps", around(100)})
	code, out, errs := varve("bench", "diff", "--json", old, now)
	require.Equal(t, cli.ExitOK, code, errs)
	var d struct {
		Level float64
		Rows  []struct {
			Name, Verdict string
			P             float64
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out), &d))
	require.Equal(t, "better", d.Rows[0].Verdict, "from 0 is a change as well")
	require.InDelta(t, 0.05, d.Level, 1e-12)
}

func TestBenchDiffUsage(t *testing.T) {
	set, other := benchFile(t, bench{"Get", "ns/op", around(1)}), benchFile(t, bench{"Put", "ns/op", around(1)})
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"one", []string{set}, "expected"},
		{"missing", []string{set, filepath.Join(filepath.Dir(set), "none")}, "no such file"},
		{"not a set", []string{t.TempDir(), set}, "no result files"},
		{"nothing in common", []string{set, other}, "nothing in common"},
		{"no such unit", []string{"--filter=.unit:p98-ms", set, set}, "nothing in common"},
		{"alpha", []string{"--alpha=1", set, set}, "--alpha: want above 0"},
		{"filter", []string{"--filter=/engine:", set, set}, "--filter"},
		{"threshold", []string{"--threshold=-1", set, set}, "--threshold: want from 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, _, errs := varve(append([]string{"bench", "diff"}, tt.args...)...)
			require.Equal(t, cli.ExitUsage, code)
			require.Contains(t, errs, tt.want)
		})
	}
}
