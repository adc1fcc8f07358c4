package lab

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/internal/report"
)

// record is one of a repeat, with a latency of each of two kinds.
func record(repeat string, err error) *Record {
	r := &Record{Name: "Commit", Keys: Keys{{"engine", "sqlite"}, {"layout", "arkiv-13"}}, Err: err}
	r.Manifest.Set("host", "12345678-abcd")
	r.Manifest.Set(sittingKey, "now")
	r.Manifest.Set(repeatKey, repeat)
	rec := latency.NewRecorder()
	rec.Record(time.Millisecond)
	r.Result(bench.Result{Outcome: &pace.Outcome{Count: 1, Kinds: []pace.Kind{{Latency: rec}}}})
	r.Put(4371, "qps")
	r.Kind("status=pending", rec)
	other := latency.NewRecorder()
	other.Record(2 * time.Millisecond)
	r.Kind("get", other)
	return r
}

// lines are the successful results of a set, with their repeat, and the failed
// ones with their errors.
func lines(t *testing.T, dir string) (list []string) {
	t.Helper()
	s, err := report.Load(dir)
	require.NoError(t, err)
	for _, r := range slices.Concat(s.Lines, s.Excluded) {
		require.Equal(t, "A5", r.GetConfig(experimentKey))
		require.Equal(t, "12345678-abcd", r.GetConfig("host"))
		list = append(list, strings.TrimSpace(string(r.Name)+" "+r.GetConfig(repeatKey)+" "+r.GetConfig(excludedKey)))
	}
	return list
}

// TestSet: added results are read again, are found, and are in a file that
// continues where a killed process left it.
func TestSet(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenSet(dir)
	require.NoError(t, err)
	require.NoError(t, s.Add("A5", "sqlite", "now", record("1", nil)))
	path := filepath.Join(dir, "A5-sqlite-now.txt")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "experiment: A5\n")
	require.Contains(t, string(text), "Unit qps better=higher\n")
	require.Contains(t, string(text), "Unit p50-ns better=lower\n")
	require.Contains(t, string(text), "BenchmarkCommit/engine=sqlite/layout=arkiv-13-1 1 1e+06 ns/op 1e+06 p50-ns 1e+06 p95-ns 1e+06 max-ns 4371 qps\n")
	require.NoError(t, os.WriteFile(path, append(text, "BenchmarkCommit/engine=sqlite 1 1e"...), 0o600))

	s, err = OpenSet(dir)
	require.NoError(t, err, "what is torn is cut off")
	require.NoError(t, s.Add("A5", "sqlite", "now", record("2", errors.New("too\nslow"))))
	s, err = OpenSet(dir)
	require.NoError(t, err)
	require.NoError(t, s.Add("A5", "sqlite", "now", record("3", nil)))
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), "Unit qps"))
	require.Equal(t, 1, strings.Count(string(text), "host:"))

	s, err = OpenSet(dir)
	require.NoError(t, err)
	const host, name, kind, get = "12345678-abcd", "Commit/engine=sqlite/layout=arkiv-13-1", "Commit/engine=sqlite/layout=arkiv-13/kind=status:pending", "Commit/engine=sqlite/layout=arkiv-13/kind=get"
	const failed = " 2 error: too slow"
	require.Equal(t, []string{name + " 1", kind + " 1", get + " 1", name + " 3", kind + " 3", get + " 3", name + failed, kind + failed, get + failed}, lines(t, dir))
	for repeat, want := range map[int][2]bool{0: {true, true}, 1: {true, false}, 2: {true, true}, 3: {false, false}} {
		done := func(host, sitting string) bool {
			return s.Done("A5", "Commit/engine=sqlite/layout=arkiv-13", repeat, host, sitting)
		}
		require.Equal(t, want, [2]bool{done(host, "now"), done(host, "later")}, "repeat %d", repeat)
		require.False(t, done("another", "now"), "figures of two hosts are not comparable")
	}
	require.False(t, s.Done("A6", "Commit/engine=sqlite/layout=arkiv-13", 0, host, "now"))
}

// TestLean: figures that say nothing new are left out unless a table shows them,
// and errors unless there were some.
func TestLean(t *testing.T) {
	units := func(id string, errors float64) (list []string) {
		r, e := new(Record), find(t, id)
		for _, unit := range []string{"errors", "op/s", "ev/s", "rows/s", "ent/s", "resident-before", "resident-after"} {
			r.Put(errors, unit)
		}
		r.dropSpare(&e)
		for _, m := range r.Metrics {
			list = append(list, m.Unit)
		}
		return list
	}
	require.Equal(t, []string{"ev/s", "rows/s", "resident-before"}, units("D1", 0))
	require.Equal(t, []string{"errors", "ev/s", "rows/s", "resident-before"}, units("D1", 1))
	require.Equal(t, []string{"op/s", "ev/s", "rows/s", "resident-before"}, units("F3", 0))
	require.Equal(t, []string{"ev/s", "rows/s", "ent/s", "resident-before"}, units("A5", 0))
	require.Equal(t, []string{"ev/s", "rows/s", "resident-before", "resident-after"}, units("C3", 0))
}

// TestSetOfNothing: what failed before anything was measured is a line too.
func TestSetOfNothing(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenSet(dir)
	require.NoError(t, err)
	r := &Record{Name: "Run", Keys: Keys{{"engine", "sqlite"}}, Err: errors.New("killed")}
	r.Manifest.Set("host", "12345678-abcd")
	r.Manifest.Set(repeatKey, "1")
	require.NoError(t, s.Add("A5", "sqlite", "now", r))
	require.Equal(t, []string{"Run/engine=sqlite 1 error: killed"}, lines(t, dir))
}

// TestSetOfSeconds: seconds and blocks have files of their own, which are no runs.
func TestSetOfSeconds(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenSet(dir)
	require.NoError(t, err)
	r := record("1", nil)
	r.Timeline = []latency.Second{{At: 1, Count: 7, Max: time.Second, Sampled: map[string]float64{"wal-MB": 2, "checkpoints": 1}}}
	for at := 2.0; at <= 10; at++ {
		r.Timeline = append(r.Timeline, latency.Second{At: at, Count: 1, Max: time.Millisecond, Sampled: map[string]float64{"wal-MB": 1, "checkpoints": 2}})
	}
	r.Timeline = append(r.Timeline, latency.Second{At: 10.5})
	r.Columns, r.Rows = []string{"entities", "ms"}, [][]float64{{10, 3.5}}
	require.NoError(t, s.Add("A5", "sqlite", "now", r))
	require.Len(t, lines(t, dir), 3)
	text, err := os.ReadFile(filepath.Join(dir, "A5-sqlite-now-timeline.txt"))
	require.NoError(t, err)
	require.Contains(t, string(text), "BenchmarkTimeline/engine=sqlite/layout=arkiv-13/second=10 16 16 ops 1e+09 max-ns 19 checkpoints 2 wal-MB\n")
	require.Contains(t, string(text), "second=10.5 1 0 ops\n")
	text, err = os.ReadFile(filepath.Join(dir, "A5-sqlite-now-blocks.txt"))
	require.NoError(t, err)
	require.Contains(t, string(text), "BenchmarkBlock/engine=sqlite/layout=arkiv-13/block=1 1 10 entities 3.5e+06 ns\n")
}
