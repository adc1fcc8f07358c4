package runs_test

import (
	"testing"

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
