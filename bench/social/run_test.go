package social

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/store/driver"
)

func TestMissed(t *testing.T) {
	record := func(check, write time.Duration, success float64) *result.Record {
		return &result.Record{
			Experiment: Experiment, Name: RunName,
			Config:  result.Config{{Key: "engine", Value: "x"}, {Key: "relationships", Value: "1000"}, {Key: "qps", Value: "2500"}},
			Metrics: []result.Metric{{Value: 2490, Unit: "qps"}, {Value: success, Unit: successUnit}},
			Latencies: []result.Distribution{
				{Kind: "check-user", P95: time.Hour}, {Kind: "check", P50: 1, P95: check}, {Kind: "write", P50: 2, P95: write}, {Kind: "lookup", P50: 3, P95: time.Hour},
			},
		}
	}
	require.Empty(t, Missed(record(CheckLimit-1, WriteLimit-1, SuccessLimit)))
	require.Equal(t, []string{"check p95 25ms", "write p95 100ms", "success 99.00%"}, Missed(record(CheckLimit, WriteLimit, 0.99)))
	require.Empty(t, Missed(&result.Record{Name: LoadName}))
}

// Steps are chosen by their weights.
func TestChoose(t *testing.T) {
	s := &Script{Steps: []Step{{Weight: 594, Limit: 0}, {Weight: 297, Limit: 1}, {Weight: 99, Limit: 2}, {Weight: 10, Limit: 3}}}
	rand, n := rand.New(rand.NewPCG(1, 1)), [4]int{}
	for range 100_000 {
		n[s.choose(rand).Limit]++
	}
	for i, want := range []int{59_400, 29_700, 9_900, 1_000} {
		require.InEpsilon(t, want, n[i], 0.1)
	}
}

// A wrong answer ends a run; a request that the engine refuses counts as failed.
func TestTolerate(t *testing.T) {
	require.False(t, tolerate(errors.Join(errors.New("check"), bench.ErrMismatch)))
	require.False(t, tolerate(driver.ErrUnknownOutcome))
	require.True(t, tolerate(driver.ErrLocked))
	require.True(t, tolerate(driver.ErrDiskFull))
}

// What was skipped or failed is no success, and what was not asked has no latencies.
func TestFigures(t *testing.T) {
	metrics, latencies := Figures(&pace.Outcome{Scheduled: 1000, Count: 990, Errors: 4, Skipped: 6})
	require.Equal(t, []result.Metric{{Value: 0.99, Unit: successUnit}}, metrics)
	require.Empty(t, latencies)
	require.Zero(t, new(pace.Outcome).Success())
}
