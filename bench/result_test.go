package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/pace"
)

// TestResultMetrics: rates are over the whole time.
func TestResultMetrics(t *testing.T) {
	rec := latency.NewRecorder()
	for range 2 {
		rec.Record(50 * time.Millisecond)
		rec.Record(150 * time.Millisecond)
	}
	out := &pace.Outcome{Count: 4, Elapsed: time.Second, Kinds: []pace.Kind{{Latency: rec}}}
	r := Result{Outcome: out, Entities: 200, Rows: 3400}
	got := map[string]float64{}
	var units []string
	for _, m := range r.Metrics() {
		got[m.Unit] = m.Value
		units = append(units, m.Unit)
	}
	require.Equal(t, []string{"ns/op", "p50-ms", "p95-ms", "max-ms", "op/s", "rows/s", "ent/s"}, units, "the 99th percentile of four would be the maximum")
	require.InEpsilon(t, 50, got["p50-ms"], 0.001)
	require.InEpsilon(t, 150, got["max-ms"], 0.001)
	require.InEpsilon(t, 3400, got["rows/s"], 1e-9)
	require.InEpsilon(t, 200, got["ent/s"], 1e-9)
	require.InEpsilon(t, 3400, r.RowRate(), 1e-9)
}
