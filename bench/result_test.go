package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestResultMetrics(t *testing.T) {
	r := NewResult()
	for range 2 {
		r.Latency.Record(50 * time.Millisecond)
		r.Latency.Record(150 * time.Millisecond)
	}
	r.Entities, r.Rows = 200, 3400
	got := map[string]float64{}
	var units []string
	for _, m := range r.Metrics() {
		got[m.Unit] = m.Value
		units = append(units, m.Unit)
	}
	require.Equal(t, []string{"ns/op", "p50-ms", "p95-ms", "max-ms", "rows/s", "ent/s"}, units, "the 99th percentile of four would be the maximum")
	require.InEpsilon(t, 50, got["p50-ms"], 0.001)
	require.InEpsilon(t, 150, got["max-ms"], 0.001)
	require.InEpsilon(t, 3400/0.4, got["rows/s"], 1e-9, "over the time of operations")
	require.InEpsilon(t, 200/0.4, got["ent/s"], 1e-9)
}

func TestResultClients(t *testing.T) {
	r := NewResult()
	var done [12]atomic.Int32
	require.NoError(t, r.Clients(t.Context(), 4, 3, func(_ context.Context, i int) error {
		done[i].Add(1)
		return nil
	}))
	for i := range done {
		require.Equal(t, int32(1), done[i].Load(), i)
	}
	require.Equal(t, int64(12), r.Latency.Count())
	require.Positive(t, r.Elapsed)
	broken := errors.New("broken")
	require.ErrorIs(t, r.Clients(t.Context(), 2, 3, func(_ context.Context, i int) error {
		if i == 1 {
			return broken
		}
		return nil
	}), broken)
	for range 100 {
		require.NoError(t, r.Time(func() error { return nil }))
	}
	var units []string
	for _, m := range r.Metrics() {
		units = append(units, m.Unit)
	}
	require.Contains(t, units, "p99-ms")
	require.Contains(t, units, "op/s")
}

func TestLoops(t *testing.T) {
	n := 0
	for l := Times(3); l(); n++ {
	}
	require.Equal(t, 3, n)
	require.False(t, For(0)())
	require.True(t, For(time.Hour)())
}
