package runs_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
)

// A high quantile needs operations of its own kind beyond it.
func TestQuantilesOfFew(t *testing.T) {
	for _, tt := range []struct {
		unit string
		n    int64
		ok   bool
	}{
		{"p50-ms", 1, true}, {"max-ms", 1, true}, {"p50-ms", 0, false},
		{"p99-ms", 99, false}, {"p99-ms", 100, true}, {"p999-ms", 999, false}, {"p999-ms", 1000, true}, {"rows/s", 5000, false},
	} {
		_, ok := runs.Quantile(&result.Distribution{Count: tt.n}, tt.unit)
		require.Equal(t, tt.ok, ok, "%s of %d", tt.unit, tt.n)
	}
	r := result.Record{
		Metrics:   []result.Metric{{Unit: "p99-ms", Value: 1}, {Unit: "p99-ms-A", Value: 2}, {Unit: "read-p99-ms", Value: 3}, {Unit: "rows/s", Value: 4}},
		Latencies: []result.Distribution{{Kind: "mix-A", Count: 48, Max: 7e6}, {Kind: "commit", Count: 200}, {Kind: "all", Count: 5}},
	}
	g := runs.Gather([]result.Record{r})[0]
	for unit, n := range map[string]int64{"p99-ms": 200, "p99-ms-A": 48, "read-p99-ms": 5, "rows/s": 0} {
		m := runs.Measure{Unit: unit}
		require.Equal(t, n, g.Count(m), unit)
		_, ok := g.Median(m)
		require.Equal(t, n == 0 || n >= 100, ok, unit)
	}
	longest, ok := g.Longest(runs.Measure{Unit: "p99-ms-A"})
	require.True(t, ok)
	require.InEpsilon(t, 7, longest, 1e-9)
}

// A run whose blocks ended within its warm-up has rates of zero, or over no time at all:
// they are no figures, alone or in a pair.
func TestNothingMeasured(t *testing.T) {
	run := func(n int64, rate float64, config ...result.Pair) result.Record {
		return result.Record{
			Experiment: "E2", Name: "DataCentreWrite", Config: config,
			Metrics:   []result.Metric{{Unit: "rows/s", Value: rate}, {Unit: "ent/s", Value: 1e13}},
			Latencies: []result.Distribution{{Kind: "all", Count: n}},
		}
	}
	again := result.Pair{Key: result.AAKey, Value: "2"}
	records := []result.Record{run(0, 0), run(0, 5, again), run(20, 100)}
	records[2].Repeat = 1
	of := func(unit string, records ...result.Record) (float64, bool) {
		return runs.Gather(records)[0].Median(runs.Measure{Unit: unit})
	}
	v, ok := of("rows/s", records...)
	require.True(t, ok)
	require.InEpsilon(t, 100, v, 1e-9)
	for _, unit := range []string{"rows/s", "ent/s", "p50-ms"} {
		_, ok = of(unit, records[0])
		require.False(t, ok, unit)
	}
	require.Empty(t, runs.Noise(records))
	require.NotEmpty(t, runs.Noise([]result.Record{run(20, 100), run(20, 120, again)}))
}

func TestBy(t *testing.T) {
	require.Equal(t, [][]int{{5, 3, 1}, {4, 2}}, runs.By([]int{5, 4, 3, 2, 1}, func(n int) bool { return n%2 == 0 }))
	require.Equal(t, []string{"b", "a"}, runs.AppendNew(runs.AppendNew([]string{"b"}, "a"), "b"))
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.012345: "0.0123", 1.5: "1.5", 12.34: "12.3", 99.96: "100", 100.4: "100", 1234567: "1,234,567", -4321: "-4,321", 1e-7: "1e-07",
	} {
		require.Equal(t, want, runs.Number(v))
	}
}

// pairs are measurements of the same, each with the second one by a factor from it.
func pairs(factors ...float64) []result.Record {
	var records []result.Record
	for i, f := range factors {
		r := result.Record{Experiment: "A5", Name: "Commit", Repeat: i, Metrics: []result.Metric{{Value: 100, Unit: "ent/s"}}}
		again := r
		again.Config, again.Metrics = result.Config{{Key: result.AAKey, Value: "2"}}, []result.Metric{{Value: 100 * f, Unit: "ent/s"}}
		records = append(records, again, r)
	}
	return records
}

func TestNoise(t *testing.T) {
	require.InEpsilon(t, 1.25, runs.Noise(pairs(0.8))["A5"].Of("ent/s"), 1e-9, "whichever is the larger one")
	require.InEpsilon(t, 1.1, runs.Noise(pairs(1.1, 50, 1/1.3))["A5"].Of("ent/s"), 1e-9, "of the medians over the blocks")
	require.InEpsilon(t, 1.5, runs.Noise(pairs(1.1, 1.5))["A5"].Of("ent/s"), 1e-9, "of single blocks where they are few")
	one := pairs(1.1, 1.5, 1.2)
	one = append(one, result.Record{Experiment: "A5", Name: "Single", Metrics: one[0].Metrics})
	require.InEpsilon(t, 1.5, runs.Noise(one)["A5"].Of("ent/s"), 1e-9, "and where those of another figure are")
	require.Empty(t, runs.Noise(pairs()[:0]))

	other := pairs(3)
	other[0].Repeat = 1 // of another block
	require.Empty(t, runs.Noise(other))
	failed := pairs(3)
	failed[1].Error = "killed"
	require.Empty(t, runs.Noise(failed))

	f := runs.Floor{"ms": 1.5}
	require.InEpsilon(t, runs.Unmeasured, f.Of("qps"), 1e-9)
	require.True(t, f.Inside("ms", 3, 2))
	require.True(t, f.Inside("ms", 0, 0))
	require.False(t, f.Inside("ms", 2, 3.1))
	require.False(t, f.Inside("ms", 0, 1))
}

// A second measurement of the same is no repetition.
func TestGatherLeavesOutSecondMeasurements(t *testing.T) {
	groups := runs.Gather(pairs(2, 3))
	require.Len(t, groups, 1)
	require.Equal(t, []float64{100, 100}, groups[0].Values(runs.Measure{Unit: "ent/s"}))
}

func TestOneRevision(t *testing.T) {
	manifests := map[string]json.RawMessage{
		"a": json.RawMessage(`{"varve":{"commit":"aaaaaaaaa"}}`), "b": json.RawMessage(`{"varve":{"commit":"bbbbbbbbb"}}`),
		"dirty": json.RawMessage(`{"varve":{"commit":"aaaaaaaaa","modified":true}}`), "empty": json.RawMessage(`{}`),
		"hash": json.RawMessage(`{"varve":{"commit":"ccccccccc","modified":true,"source":"5eed5eed5eed"}}`),
	}
	of := func(manifest, experiment, layout string, second int) result.Record {
		return result.Record{
			Experiment: experiment, Config: result.Config{{Key: "engine", Value: "e"}, {Key: "layout", Value: layout}},
			Manifest: manifest, Started: time.Unix(int64(second), 0),
		}
	}
	for _, tt := range []struct {
		name    string
		records []result.Record
		loose   bool
		want    string
		kept    int
		out     string
	}{
		{"most configurations, of experiments", []result.Record{of("a", "A", "x", 1), of("a", "B", "x", 2), of("b", "A", "x", 3)}, false, "aaaaaaaaa", 2, "1 records left out: another revision, bbbbbbb (1)"},
		{"most configurations", []result.Record{of("a", "A", "x", 1), of("a", "A", "y", 2), of("b", "A", "x", 3)}, false, "aaaaaaaaa", 2, "1 records left out: another revision, bbbbbbb (1)"},
		{"the newest", []result.Record{of("b", "A", "x", 1), of("a", "A", "x", 2)}, false, "aaaaaaaaa", 1, "1 records left out: another revision, bbbbbbb (1)"},
		{"a hash names what was changed", []result.Record{of("hash", "A", "x", 1)}, false, "5eed5eed5eed", 1, ""},
		{"none has a name", []result.Record{of("dirty", "A", "x", 1), of("", "A", "y", 2), of("empty", "A", "z", 2)}, false, "", 0,
			"3 records left out: dirty revision aaaaaaa (1), no manifest (1), no revision in the manifest (1)"},
		{"none has a name, loose", []result.Record{of("dirty", "A", "x", 1), of("", "A", "y", 2)}, true, "no manifest", 1, "1 records left out: dirty revision aaaaaaa (1)"},
		{"ends are kept", []result.Record{{Experiment: "A", Config: result.Config{{Key: "engine", Value: "e"}}, Error: "killed"}}, false, "", 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			kept, name, out := runs.OneRevision(tt.records, manifests, tt.loose)
			require.Equal(t, tt.want, name)
			require.Len(t, kept, tt.kept)
			require.Equal(t, tt.out, runs.Excluded(out))
		})
	}
}
