package experiment

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/result"
)

// TestTrend: a run whose commits get slower and whose log grows says so; seconds
// without operations, and what the engine does not tell, are left out.
func TestTrend(t *testing.T) {
	r := &result.Record{}
	for i := range 9 {
		log := int64(i+1) * 1e6
		s := result.Second{Count: 5, P50: time.Duration(i+1) * time.Millisecond, Max: 10 * time.Millisecond, WALBytes: &log}
		if i == 0 {
			s.Count, s.P50 = 0, 0
		}
		r.Timeline = append(r.Timeline, s)
	}
	addTrend(r)
	require.InDelta(t, 8/2.5, figure(t, r, "trend-p50"), 1e-9)
	require.InDelta(t, 1, figure(t, r, "trend-slowest"), 1e-9)
	require.InDelta(t, 8/2.0, figure(t, r, "trend-log"), 1e-9)
	_, known := r.Metric("trend-database")
	require.False(t, known)
	require.Len(t, r.Notes, 3)

	short := &result.Record{Timeline: r.Timeline[:2]}
	addTrend(short)
	require.Empty(t, short.Metrics, "two seconds have no thirds")
}
