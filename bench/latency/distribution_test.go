package latency

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/result"
)

func TestDistribution(t *testing.T) {
	r := NewRecorder()
	for i := range 10_000 {
		r.Record(time.Duration(i+1) * time.Microsecond)
	}
	d := r.Distribution("get")
	s := r.Summary()
	require.Equal(t, "get", d.Kind)
	require.Equal(t, int64(10_000), d.Count)
	require.Equal(t, []time.Duration{s.Mean, s.P50, s.P95, s.P99, s.Max}, []time.Duration{d.Mean, d.P50, d.P95, d.P99, d.Max})
	require.InEpsilon(t, float64(9990*time.Microsecond), float64(d.P999), 0.002)

	require.Equal(t, result.Quantile{Percent: 0, Value: r.Quantile(0)}, d.Curve[0])
	require.Equal(t, result.Quantile{Percent: 100, Value: 10 * time.Millisecond}, d.Curve[len(d.Curve)-1])
	require.Equal(t, 99.99, d.Curve[len(d.Curve)-2].Percent, "one of 10,000 is above it")
	for i, q := range d.Curve {
		require.Equal(t, r.Quantile(q.Percent), q.Value, "%v", q.Percent)
		if i > 0 {
			require.Greater(t, q.Percent, d.Curve[i-1].Percent)
			require.GreaterOrEqual(t, q.Value, d.Curve[i-1].Value)
		}
	}
}

func TestDistributionSmall(t *testing.T) {
	require.Equal(t, result.Distribution{Kind: "none"}, NewRecorder().Distribution("none"))
	r := NewRecorder()
	r.Record(5 * time.Millisecond)
	d := r.Distribution("one")
	require.Equal(t, 5*time.Millisecond, d.P999)
	require.Len(t, d.Curve, 2, "the least and the most")
}
