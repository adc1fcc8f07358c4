package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/cli/clitest"
	"github.com/varvedb/varve/internal/lab"
	"github.com/varvedb/varve/internal/report"
)

// tiny are options with which an experiment takes a moment.
func tiny(t *testing.T) string {
	t.Helper()
	text, err := json.Marshal(lab.Options{
		Scale: 0.0005, Phase: 50 * time.Millisecond, Seed: 1, Durability: "durable", Memory: 128 << 20, Sitting: "now",
		Layouts: []string{"compact"},
	})
	require.NoError(t, err)
	return string(text)
}

// lines returns the results of a directory, but for the results of single kinds
// of operations. No result may be a failure. Each has a manifest.
func lines(t *testing.T, dir string) (list []*benchfmt.Result) {
	t.Helper()
	set, err := report.Load(dir)
	require.NoError(t, err)
	require.Empty(t, set.Excluded)
	for _, r := range set.Lines {
		for _, key := range []string{"experiment", "sitting", "host", "repeat", "fsync-us", "memory-kept-by"} {
			require.NotEmpty(t, r.GetConfig(key), "%s of %s", key, r.Name)
		}
		require.NotEmpty(t, r.Values, string(r.Name))
		if report.Key(r, "kind") == "" {
			list = append(list, r)
		}
	}
	require.NotEmpty(t, list)
	return list
}

// TestLab runs an experiment of each kind on one engine in this process: each
// verifies its answers, and a wrong one would leave its line out.
func TestLab(t *testing.T) {
	t.Setenv(bench.CacheEnv, t.TempDir())
	// Experiments that no other test runs.
	for _, id := range []string{"A8", "C3", "D2", "D5", "E3", "F3", "F6", "H1", "H3", "Q2", "Q3"} {
		t.Run(id, func(t *testing.T) {
			out := t.TempDir()
			must(t, "lab", "--experiment="+id, "--engine=sqlite", "--out="+out, "--options="+tiny(t))
			for _, r := range lines(t, out) {
				require.Equal(t, id, r.GetConfig("experiment"))
				require.Contains(t, string(r.Name), "/engine=sqlite")
				require.NotEmpty(t, r.GetConfig("setting-synchronous"), "%s: as read back", r.Name)
			}
		})
	}
}

// TestLabKeepsBlocksAndSeconds: single blocks and seconds are in separate
// files, and reads during writes have their latencies next to the latencies of
// the commits.
func TestLabKeepsBlocksAndSeconds(t *testing.T) {
	t.Setenv(bench.CacheEnv, t.TempDir())
	out := t.TempDir()
	must(t, "lab", "--experiment=A14", "--engine=sqlite", "--out="+out, "--options="+tiny(t))
	text, err := os.ReadFile(filepath.Join(out, "A14-sqlite-now-blocks.txt"))
	require.NoError(t, err)
	require.Regexp(t, `BenchmarkBlock/engine=sqlite/\S+/block=108 1 \d+ entities \d+ strings \d+ numbers [\d.e+]+ payload_bytes [\d.e+]+ ns`, string(text))
	must(t, "lab", "--experiment=D4", "--engine=sqlite", "--out="+out, "--options="+strings.Replace(tiny(t), `"phase":50000000`, `"phase":300000000`, 1))
	text, err = os.ReadFile(filepath.Join(out, "D4-sqlite-now-timeline.txt"))
	require.NoError(t, err)
	require.Regexp(t, `BenchmarkTimeline/engine=sqlite/\S+/second=[\d.]+ \d+ \d+ ops`, string(text))
	for _, r := range lines(t, out) {
		if strings.Contains(string(r.Name), "qps=1000") {
			for _, unit := range []string{"p50-ms", "read-p50-ms", "read-p99-ms", "late", "skipped", "commit-late", "commit-skipped", "resident-before", "qps", "rows/s"} {
				_, has := r.Value(unit)
				require.True(t, has, "%s of %s", unit, r.Name)
			}
		}
	}
}

// TestLabInPlace: what only reads uses the data sets themselves and gives them back; what writes
// has copies. Nothing else is left.
func TestLabInPlace(t *testing.T) {
	cache := t.TempDir()
	t.Setenv(bench.CacheEnv, cache)
	for _, id := range []string{"E1", "E2"} {
		must(t, "lab", "--experiment="+id, "--engine=sqlite", "--out="+t.TempDir(), "--options="+tiny(t))
		whole, err := filepath.Glob(filepath.Join(cache, "*", "ready.json"))
		require.NoError(t, err)
		require.Len(t, whole, 1, id)
		runs, err := filepath.Glob(filepath.Join(cache, "run-*"))
		require.NoError(t, err)
		require.Empty(t, runs)
	}
}

// quickRun is a run of an experiment on two engines, twice.
func quickRun(out string, more ...string) []string {
	return append([]string{"run", "A4", "--engines=sqlite,duckdb", "--repeats=2", "--scale=0.0005", "--phase=50ms", "--out=" + out}, more...)
}

// TestRunRepeats kills a run several times, and resumes it: no result is
// missing, none is measured twice, and orders and seeds differ from repeat to
// repeat. Then a complete run measures nothing again, and one with more repeats
// only these.
func TestRunRepeats(t *testing.T) {
	out, cache := t.TempDir(), t.TempDir()
	args := quickRun(out, "--no-probe")
	for _, when := range []string{"part 1 of 4", "part 3 of 4"} {
		p := newGroupIn(t, t.TempDir(), cache, args...)
		require.Eventually(t, func() bool { return strings.Contains(p.errs.String(), when) }, time.Minute, time.Millisecond, &p.errs)
		require.NoError(t, syscall.Kill(p.cmd.Process.Pid, syscall.SIGKILL))
		require.Equal(t, -1, p.wait(), "it ended before it was killed")
		p.lastChild(t)
	}
	t.Setenv(bench.CacheEnv, cache)
	t.Setenv(clitest.AsCommand, "1") // for the processes that it starts
	count := func() (names map[string]int, seeds map[string]string) {
		names, seeds = map[string]int{}, map[string]string{}
		for _, r := range lines(t, out) {
			names[fmt.Sprint(string(r.Name), " ", r.GetConfig("repeat"))]++
			seeds[r.GetConfig("repeat")] = r.GetConfig("seed")
		}
		return names, seeds
	}
	must(t, args...)
	names, seeds := count()
	require.Len(t, names, 2*2*3, "engines, repeats and modes")
	require.NotEqual(t, seeds["1"], seeds["2"])
	must(t, args...)
	must(t, append(args, "--repeats=3")...)
	names, _ = count()
	require.Len(t, names, 2*3*3)
	for name, n := range names {
		require.Equal(t, 1, n, name)
	}
}

// TestRunKeepsFailures: a process that does not end well is a line that says why, in the exit code
// too, and what others measured is kept.
func TestRunKeepsFailures(t *testing.T) {
	t.Setenv(bench.CacheEnv, t.TempDir())
	t.Setenv(clitest.AsCommand, "1")
	// With 1 ns the time is over before the process has started.
	for _, limit := range []string{"1ms", "1ns"} {
		out := t.TempDir()
		_, errs, code := varve(t, "run", "A4", "--engines=sqlite", "--repeats=1", "--no-probe", "--scale=0.0005", "--phase=10s", "--timeout="+limit, "--out="+out)
		require.Equal(t, cli.ExitError, code)
		require.Contains(t, errs, "ended after "+limit+"; varve run has --timeout")
		found, err := report.Load(out)
		require.NoError(t, err)
		require.Empty(t, found.Lines)
		require.Contains(t, found.Excluded[0].GetConfig("excluded"), "error: ended after "+limit)
		set, err := lab.OpenSet(out)
		require.NoError(t, err)
		require.Equal(t, []string{"A4 Run/engine=sqlite, repeat 1"}, set.Failed())
	}
}

func TestRunUsage(t *testing.T) {
	out := must(t, "run", "--list", "D")
	require.Regexp(t, `D2   Checkpoint stalls +\d+[mh]\n`, out)
	require.NotContains(t, out, "A5")
	for line := range strings.Lines(must(t, "run", "--list")) {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 101, line)
		require.NotRegexp(t, `^[A-Z]\d.*\?\n$`, line, "of the user's own data alone")
	}
	require.Regexp(t, `D3   Reorganisations +5h\d+m\n`, must(t, "run", "--list", "D3", "--engines=sqlite", "--repeats=1", "--phase=1h"), "five layouts, an hour each")
	require.Regexp(t, `D3   Reorganisations +\?\n`, must(t, "run", "--list", "D3", "--source=x"))
	for _, args := range [][]string{
		{"run", "Z9"}, {"run", "A1", "--engines", "mysql"}, {"run", "A1", "--layouts", "none"}, {"run", "A1", "--scale", "0"},
	} {
		_, errs, code := varve(t, args...)
		require.Equal(t, cli.ExitUsage, code, "%v: %s", args, errs)
	}
}
