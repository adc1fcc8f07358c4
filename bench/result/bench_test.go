package result_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/bench/result"
)

var update = flag.Bool("update", false, "write the golden files anew")

// requireGolden compares with a file of testdata.
func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// samples are records of two engines and two experiments: one with several kinds
// of operations, and one with a layout that looks like a GOMAXPROCS.
func samples() []result.Record {
	var records []result.Record
	for repeat, p50 := range []float64{10, 10.5, 11, 10.2, 10.1, 10.6} {
		records = append(records, commit(repeat, "sqlite", p50), commit(repeat, "duckdb", 3*p50))
	}
	failed := commit(6, "duckdb", 1)
	failed.Error = "signal: killed:\nout of memory"
	ablation := commit(0, "sqlite", 9)
	ablation.Experiment = "A11"
	ablation.Config = result.Config{{Key: "engine", Value: "sqlite"}, {Key: "layout", Value: "arkiv-13"}}
	mix := result.Record{
		Experiment: "C1", Name: "ReadMix", Manifest: described, Started: begun, Config: result.Config{{Key: "engine", Value: "sqlite"}, {Key: "mix", Value: "A"}},
		Metrics: []result.Metric{{Value: 5000, Unit: "qps"}, {Value: 0.2, Unit: "p50-ms"}, {Value: 99, Unit: "p50-ms"}, {Value: 0.9, Unit: "r-entities"}},
		Latencies: []result.Distribution{
			{Kind: "get", Count: 4000, P50: 200 * time.Microsecond, P95: 300 * time.Microsecond, P99: time.Millisecond, Max: 2 * time.Millisecond},
			{Kind: "status=pending, all", Count: 1000, P50: 3 * time.Millisecond, P95: 4 * time.Millisecond, P99: 5 * time.Millisecond, Max: 6 * time.Millisecond},
			{Kind: "none"},
		},
	}
	return append(records, failed, ablation, mix)
}

func TestWriteBench(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, result.WriteBench(&out, samples()))
	requireGolden(t, "bench.txt", out.String())

	bad := commit(0, "sql lite", 1)
	require.ErrorContains(t, result.WriteBench(&out, []result.Record{bad}), `"sql lite"`)
}

// benchstat puts the engines of the golden file side by side, knows the layout
// with a number for a layout, and has nothing to complain about.
func TestBenchstatReads(t *testing.T) {
	if testing.Short() {
		t.Skip("builds benchstat, which takes a while the first time")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "tool", "benchstat", "-col", "/engine", filepath.Join("testdata", "bench.txt"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	require.Empty(t, stderr.String())
	requireGolden(t, "benchstat.txt", trimLines(string(out)))
}

// trimLines cuts trailing spaces, which editors would not keep either.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func TestWriteBenchFile(t *testing.T) {
	dir := t.TempDir()
	appendAll(t, dir, samples()...)
	r, err := result.Load(dir)
	require.NoError(t, err)
	require.NoError(t, result.WriteBenchFile(dir, r))
	require.NoError(t, result.WriteBenchFile(dir, r)) // again, over the old one
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 3)

	bench, err := result.Load(filepath.Join(dir, result.BenchFile))
	require.NoError(t, err)
	require.Empty(t, bench.Warnings)
	require.Equal(t, result.Higher, bench.Units["qps"])
	require.Equal(t, result.Lower, bench.Units["wal-MB"])
	var lines, got []string
	for i := range r.Records {
		for _, l := range r.Records[i].Lines() {
			lines = append(lines, l.Key())
		}
	}
	for i := range bench.Records {
		got = append(got, bench.Records[i].Key())
	}
	require.Equal(t, lines, got)
	require.Contains(t, lines, "A11 Commit/engine=sqlite/layout=arkiv-13")
	require.Contains(t, lines, "C1 ReadMix/engine=sqlite/mix=A/kind=status:pending,_all")

	r.Records[0].Name = "not a name"
	require.Error(t, result.WriteBenchFile(dir, r))
	entries, err = os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 3)
}

func TestReadGoTest(t *testing.T) {
	const text = `goos: linux
goarch: amd64
pkg: github.com/varvedb/varve/bench/sqlite
cpu: none in particular
Unit rows/s better=higher
Unit odd-figure better=higher
BenchmarkCommit
BenchmarkCommit/engine=sqlite/layout=arkiv-13-2         	     100	  12345678 ns/op	        10.50 p50-ms	     250.0 rows/s	 1024 B/op
BenchmarkCommit/engine=sqlite/layout=arkiv-13-2         	     100	  12345679 ns/op	         0 wal-MB	 3 odd-figure
BenchmarkGet/warm/twice     	     100	  77 ns/op
BenchmarkBroken   	     many	  77 ns/op
PASS
ok  	github.com/varvedb/varve/bench/sqlite	3.2s
`
	r, err := result.ReadBench(strings.NewReader(text), "new.txt")
	require.NoError(t, err)
	require.Len(t, r.Records, 3)
	first := r.Records[0]
	require.Equal(t, result.Config{{Key: "engine", Value: "sqlite"}, {Key: "layout", Value: "arkiv-13"}, {Key: "gomaxprocs", Value: "2"}}, first.Config)
	require.Equal(t, "github.com/varvedb/varve/bench/sqlite", first.Experiment)
	require.Equal(t, []result.Metric{{Value: 12345678, Unit: "ns/op"}, {Value: 10.5, Unit: "p50-ms"}, {Value: 250, Unit: "rows/s"}, {Value: 1024, Unit: "B/op"}}, first.Metrics)
	require.Equal(t, first.Key(), r.Records[1].Key())
	require.Equal(t, 1, r.Records[1].Repeat)
	require.Equal(t, result.Metric{Value: 0, Unit: "wal-MB"}, r.Records[1].Metrics[1])
	require.Equal(t, result.Config{{Key: "sub", Value: "warm"}, {Key: "sub2", Value: "twice"}}, r.Records[2].Config)
	require.Len(t, r.Warnings, 1)
	require.Contains(t, r.Warnings[0], "new.txt:11")
	require.Equal(t, result.Higher, r.Direction("odd-figure"))
	require.Equal(t, result.Lower, r.Direction("ns/op"))
}

// Names, configurations and figures come back from the benchmark format as they
// went into it.
func TestBenchRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want []result.Record
		repeats := map[string]int{}
		for _, r := range rapid.SliceOfN(drawRecord(), 1, 6).Draw(t, "records") {
			r.Error, r.Started, r.Manifest = "", time.Time{}, ""
			r.Repeat = repeats[r.Key()]
			repeats[r.Key()]++
			want = append(want, r)
		}
		var out bytes.Buffer
		require.NoError(t, result.WriteBench(&out, want))
		got, err := result.ReadBench(&out, "x")
		require.NoError(t, err)
		require.Empty(t, got.Warnings)
		require.Equal(t, want, got.Records)
	})
}

func TestBetter(t *testing.T) {
	for unit, want := range map[string]result.Direction{
		"p99-ms": result.Lower, "B/ent": result.Lower, "ns/op": result.Lower, "late": result.Lower,
		"rows/s": result.Higher, "qps": result.Higher, "r-payload": result.Neutral, "resident": result.Neutral,
	} {
		require.Equal(t, want, result.Better(unit), unit)
	}
}

// TestPeers: figures of other programs, as the document shows them, are read with their
// set-up, and each says what it says only as long as it holds.
func TestPeers(t *testing.T) {
	document, err := os.ReadFile("../../docs/benchmarking.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(document), "```text\nexperiment: ")
	require.True(t, found)
	example, _, _ := strings.Cut("experiment: "+after, "```")
	path := filepath.Join(t.TempDir(), "peers.txt")
	require.NoError(t, os.WriteFile(path, []byte(example+"note:\nBenchmarkPeer/peer=other 1 7 ev/s\n"), 0o600))
	r, err := result.Load(path)
	require.NoError(t, err)
	require.Empty(t, r.Warnings)
	require.Len(t, r.Records, 3)
	require.Equal(t, result.Higher, r.Direction("ev/s"))
	for i, rec := range r.Records[:2] {
		require.Equal(t, "F3", rec.Experiment)
		require.Equal(t, "Peer", rec.Name)
		require.Equal(t, i, rec.Repeat)
		require.Equal(t, "umadb", rec.Config.Get("peer"))
		rate, _ := rec.Metric("ev/s")
		require.Greater(t, rate, 3000.)
		require.Len(t, rec.Notes, 4)
		require.Contains(t, rec.Notes[0], "peer: UmaDB 0.7.8")
		require.Contains(t, rec.Notes[3], "note: each append is durable")
	}
	require.Len(t, r.Records[2].Notes, 3)
}
