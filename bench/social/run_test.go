package social

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store/driver"
)

// A wrong answer ends a run; a request that the engine refuses counts as failed.
func TestTolerate(t *testing.T) {
	require.False(t, tolerate(errors.Join(errors.New("check"), bench.ErrMismatch)))
	require.False(t, tolerate(driver.ErrUnknownOutcome))
	require.True(t, tolerate(driver.ErrLocked))
	require.True(t, tolerate(driver.ErrDiskFull))
}

// TestMetrics: what was skipped or failed is no success, what was not asked has no latencies,
// and each service level counts that is not met.
func TestMetrics(t *testing.T) {
	metrics := Metrics(&pace.Outcome{Scheduled: 1000, Count: 990, Errors: 4, Skipped: 6})
	require.Equal(t, []latency.Metric{{Value: 0.99, Unit: "share-success"}, {Value: 1, Unit: "levels-missed"}}, metrics)
	require.Zero(t, new(pace.Outcome).Success())
	missed := func(check, write time.Duration) float64 {
		out := &pace.Outcome{Scheduled: 2, Count: 2}
		for name, took := range map[string]time.Duration{"check-user": check, "write-visibility": write} {
			rec := latency.NewRecorder()
			rec.Record(took)
			out.Kinds = append(out.Kinds, pace.Kind{Name: name, Latency: rec})
		}
		list := Metrics(out)
		return list[len(list)-1].Value
	}
	require.InDelta(t, 0, missed(CheckLimit/2, WriteLimit/2), 0)
	require.InDelta(t, 1, missed(CheckLimit, WriteLimit/2), 0)
	require.InDelta(t, 2, missed(CheckLimit, WriteLimit), 0)
}
