package result_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/bench/result"
)

// begun is when the records of these tests were made.
var begun = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func commit(repeat int, engine string, p50 float64) result.Record {
	return result.Record{
		Experiment: "A5", Name: "Commit", Repeat: repeat, Started: begun, Took: time.Minute, Manifest: described,
		Config: result.Config{{Key: "engine", Value: engine}, {Key: "layout", Value: "arkiv"}},
		Metrics: []result.Metric{
			{Value: p50, Unit: "p50-ms"}, {Value: 1000 / p50, Unit: "rows/s"}, {Value: 12.5, Unit: "wal-MB"},
		},
		Latencies: []result.Distribution{{Kind: "commit", Count: 100, P50: 12 * time.Millisecond}},
	}
}

func appendAll(t *testing.T, dir string, records ...result.Record) {
	t.Helper()
	w, err := result.Open(dir)
	require.NoError(t, err)
	describe(t, w)
	for i := range records {
		require.NoError(t, w.Append(&records[i]))
	}
	require.NoError(t, w.Close())
}

// described is the key of the manifest that the records of these tests have.
const described = "44136fa355b3678a"

func describe(t require.TestingT, w *result.Writer) {
	key, err := w.Manifest(struct{}{})
	require.NoError(t, err)
	require.Equal(t, described, key)
}

func TestSet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results", "new")
	first, second := commit(0, "sqlite", 10), commit(1, "sqlite", 12)
	second.Error = "crashed"
	w, err := result.Open(dir)
	require.NoError(t, err)
	first.Manifest, err = w.Manifest(map[string]any{"engine": "sqlite", "cores": 2})
	require.NoError(t, err)
	again, err := w.Manifest(map[string]any{"cores": 2, "engine": "sqlite"})
	require.NoError(t, err)
	require.Equal(t, first.Manifest, again)
	second.Manifest = again
	require.NoError(t, w.Append(&first))
	require.True(t, w.Has(first.Key(), 0))
	require.False(t, w.Has(first.Key(), 1))
	require.NoError(t, w.Close())

	w, err = result.Open(dir) // what a run does that goes on
	require.NoError(t, err)
	require.True(t, w.Has(first.Key(), 0))
	require.NoError(t, w.Append(&second))
	require.True(t, w.Has(second.Key(), 1))
	require.True(t, w.Failed(second.Key(), 1))
	require.False(t, w.Failed(first.Key(), 0))
	require.NoError(t, w.Close())

	r, err := result.Read(dir)
	require.NoError(t, err)
	require.Empty(t, r.Warnings)
	require.Equal(t, []result.Record{first, second}, r.Records)
	require.Len(t, r.Manifests, 1)
	require.JSONEq(t, fmt.Sprintf(`{"key":%q,"cores":2,"engine":"sqlite"}`, first.Manifest), string(r.Manifests[first.Manifest]))
	require.Equal(t, 1, bytes.Count(read(t, dir, result.ManifestsFile), []byte("\n")))
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return text
}

// TestPackedSet: what is packed, piece by piece as gzip does it, comes before what was
// added since, for readers and for the writer that goes on.
func TestPackedSet(t *testing.T) {
	dir := t.TempDir()
	pack := func(names ...string) {
		for _, name := range names {
			f, err := os.OpenFile(filepath.Join(dir, name+".gz"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
			require.NoError(t, err)
			out := gzip.NewWriter(f)
			_, err = out.Write(read(t, dir, name))
			require.NoError(t, errors.Join(err, out.Close(), f.Close(), os.Remove(filepath.Join(dir, name))))
		}
	}
	appendAll(t, dir, commit(0, "sqlite", 1))
	pack(result.RecordsFile, result.ManifestsFile)
	appendAll(t, dir, commit(0, "duckdb", 2))
	w, err := result.Open(dir)
	require.NoError(t, err)
	first := commit(0, "sqlite", 1)
	require.True(t, w.Has(first.Key(), 0))
	require.NoError(t, w.Close())
	pack(result.RecordsFile)
	for _, loose := range []bool{false, true} {
		if loose {
			appendAll(t, dir, commit(1, "duckdb", 3))
		}
		r, err := result.Read(dir)
		require.NoError(t, err)
		require.Empty(t, r.Warnings)
		want := []result.Record{commit(0, "sqlite", 1), commit(0, "duckdb", 2), commit(1, "duckdb", 3)}
		if !loose {
			want = want[:2]
		}
		require.Equal(t, want, r.Records)
		require.Len(t, r.Manifests, 1)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, result.RecordsFile+".gz"), []byte("torn"), 0o644))
	_, err = result.Read(dir)
	require.ErrorContains(t, err, "records.jsonl.gz")
}

// A record that is done again, as after a failure, replaces the earlier one.
func TestLaterRecordCounts(t *testing.T) {
	dir := t.TempDir()
	failed := commit(0, "duckdb", 1)
	failed.Error = "out of memory"
	appendAll(t, dir, failed, commit(0, "sqlite", 3), commit(0, "duckdb", 7))
	r, err := result.Read(dir)
	require.NoError(t, err)
	require.Equal(t, []result.Record{commit(0, "duckdb", 7), commit(0, "sqlite", 3)}, r.Records)
	require.Empty(t, r.Warnings)

	appendAll(t, dir, commit(0, "duckdb", 8))
	r, err = result.Read(dir)
	require.NoError(t, err)
	require.Equal(t, []result.Record{commit(0, "duckdb", 8), commit(0, "sqlite", 3)}, r.Records)
	require.Len(t, r.Warnings, 1)
	require.Contains(t, r.Warnings[0], "A5 Commit/engine=duckdb/layout=arkiv, repetition 0, is there more than once")
}

// Wherever a crash cuts the last line off, readers go on without it and the next
// writer begins a whole line.
func TestTornLine(t *testing.T) {
	whole := t.TempDir()
	appendAll(t, whole, commit(0, "sqlite", 10), commit(1, "sqlite", 11))
	text := read(t, whole, result.RecordsFile)
	second := bytes.IndexByte(text, '\n') + 1
	for _, end := range []int{second + 1, (second + len(text)) / 2, len(text) - 1} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, result.RecordsFile), text[:end], 0o600))
		r, err := result.Read(dir)
		require.NoError(t, err)
		require.Equal(t, []result.Record{commit(0, "sqlite", 10)}, r.Records)
		require.Len(t, r.Warnings, 1)
		require.Contains(t, r.Warnings[0], fmt.Sprintf("torn, %d bytes", end-second))

		appendAll(t, dir, commit(1, "sqlite", 11))
		require.Equal(t, string(text), string(read(t, dir, result.RecordsFile)))
	}
}

func TestBrokenLine(t *testing.T) {
	dir := t.TempDir()
	appendAll(t, dir, commit(0, "sqlite", 10))
	text := append([]byte("{\"experiment\":\n"), read(t, dir, result.RecordsFile)...)
	require.NoError(t, os.WriteFile(filepath.Join(dir, result.RecordsFile), text, 0o600))
	_, err := result.Read(dir)
	require.ErrorContains(t, err, "records.jsonl:1: ")
	_, err = result.Open(dir)
	require.ErrorContains(t, err, "open result set")
	_, err = result.Read(t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestOneWriter: what two processes measure at a time is of neither, so a set has one
// writer; a process that ends, however it does, gives it back.
func TestOneWriter(t *testing.T) {
	dir := t.TempDir()
	w, err := result.Open(dir)
	require.NoError(t, err)
	_, err = result.Open(dir)
	require.ErrorContains(t, err, "another process adds to it")
	require.NoError(t, w.Close())
	w, err = result.Open(dir)
	require.NoError(t, err)
	require.NoError(t, w.Close())
}

func TestAppendChecks(t *testing.T) {
	dir := t.TempDir()
	w, err := result.Open(dir)
	require.NoError(t, err)
	defer w.Close()
	describe(t, w)
	tests := []struct {
		name   string
		change func(*result.Record)
		want   string
	}{
		{"experiment", func(r *result.Record) { r.Experiment = "A 5" }, `experiment "A 5": leave out spaces`},
		{"name", func(r *result.Record) { r.Name = "" }, "name is empty"},
		{"lower", func(r *result.Record) { r.Name = "commit" }, "begin with a capital"},
		{"procs", func(r *result.Record) { r.Name = "Commit-8" }, "read as GOMAXPROCS"},
		{"slash", func(r *result.Record) { r.Config = r.Config.With("rate", "6000rows/s") }, `rate has the value "6000rows/s"`},
		{"equals", func(r *result.Record) { r.Config = r.Config.With("a=b", "c") }, `key "a=b"`},
		{"twice", func(r *result.Record) { r.Config = append(r.Config, r.Config[0]) }, `"engine" is there twice`},
		{"repeat", func(r *result.Record) { r.Repeat = -1 }, "count from 0"},
		{"no manifest", func(r *result.Record) { r.Manifest = "" }, "store it first"},
		{"unknown manifest", func(r *result.Record) { r.Manifest = "1234" }, `manifest "1234" is not in the set`},
		{"unit", func(r *result.Record) { r.Metrics[0].Unit = "p50 ms" }, `unit "p50 ms"`},
		{"NaN", func(r *result.Record) { r.Metrics[0].Value = math.NaN() }, "p50-ms is NaN"},
		{"kind", func(r *result.Record) { r.Latencies[0].Kind = "" }, "name the kind"},
		{"row", func(r *result.Record) {
			r.Table = &result.Table{Columns: []string{"a", "b"}, Rows: [][]float64{{1, 2}, {3}}}
		}, "row 1 has 1 values for 2"},
		{"cell", func(r *result.Record) {
			r.Table = &result.Table{Columns: []string{"a"}, Rows: [][]float64{{math.Inf(1)}}}
		}, "row 0: a is +Inf"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := commit(0, "sqlite", 1)
			tt.change(&r)
			require.ErrorContains(t, w.Append(&r), tt.want)
		})
	}
	require.Empty(t, read(t, dir, result.RecordsFile))
	_, err = w.Manifest([]int{1})
	require.ErrorContains(t, err, "no object")
	_, err = w.Manifest(json.RawMessage("{}"))
	require.NoError(t, err)
}

// What is appended is what is read.
func TestSetRoundTrip(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		set := filepath.Join(dir, fmt.Sprint(n))
		w, err := result.Open(set)
		require.NoError(t, err)
		describe(t, w)
		want := rapid.SliceOfNDistinct(drawRecord(), 1, 4, func(r result.Record) string { return fmt.Sprint(r.Key(), r.Repeat) }).Draw(t, "records")
		for i := range want {
			require.NoError(t, w.Append(&want[i]))
			require.True(t, w.Has(want[i].Key(), want[i].Repeat))
		}
		require.NoError(t, w.Close())
		got, err := result.Read(set)
		require.NoError(t, err)
		require.Equal(t, want, got.Records)
	})
}

func drawRecord() *rapid.Generator[result.Record] {
	word := rapid.StringMatching(`[a-zA-Z0-9_.,%+é-]{1,8}`)
	return rapid.Custom(func(t *rapid.T) result.Record {
		r := result.Record{
			Experiment: rapid.StringMatching(`[A-E][0-9]{1,2}`).Draw(t, "experiment"),
			Name:       rapid.StringMatching(`[A-Z][A-Za-z]{0,8}`).Draw(t, "name"),
			Repeat:     rapid.IntRange(0, 9).Draw(t, "repeat"),
			Started:    begun,
			Manifest:   described,
			Error:      rapid.SampledFrom([]string{"", "", "", "crashed:\n\"x\""}).Draw(t, "error"),
		}
		for _, key := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,6}`), 0, 4, rapid.ID[string]).Draw(t, "keys") {
			r.Config = append(r.Config, result.Pair{Key: key, Value: word.Draw(t, "value")})
		}
		units := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"p50-ms", "rows/s", "wal-MB", "r-entities", "ns/op", "B/ent"}), 1, 5, rapid.ID[string])
		for _, unit := range units.Draw(t, "units") {
			r.Metrics = append(r.Metrics, result.Metric{Value: rapid.Float64Range(-1e9, 1e9).Draw(t, "metric"), Unit: unit})
		}
		return r
	})
}
