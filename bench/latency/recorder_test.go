package latency

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/result"
)

func TestRecorderQuantiles(t *testing.T) {
	r, random := NewRecorder(), rand.New(rand.NewPCG(1, 2))
	var all []time.Duration
	for range 10_000 {
		d := time.Duration(math.Exp(random.Float64()*12) * float64(2*time.Microsecond))
		all = append(all, d)
		r.Record(d)
	}
	slices.Sort(all)
	s := r.Distribution("")
	require.Equal(t, int64(len(all)), s.Count)
	for _, q := range []struct {
		got   time.Duration
		share float64
	}{{s.P50, 0.50}, {s.P95, 0.95}, {s.P99, 0.99}} {
		require.InEpsilon(t, float64(all[int(q.share*float64(len(all)))-1]), float64(q.got), 0.002)
	}
	require.Equal(t, all[len(all)-1], s.Max, "exact")
	require.Equal(t, r.Total()/10_000, s.Mean, "exact")
}

func TestRecorderOutOfRange(t *testing.T) {
	r := NewRecorder()
	r.Record(0)
	r.Record(time.Hour)
	s := r.Distribution("")
	require.Equal(t, int64(2), s.Count)
	require.Equal(t, time.Hour, s.Max)
	require.Equal(t, 30*time.Minute, s.Mean)
	require.InEpsilon(t, float64(10*time.Minute), float64(s.P99), 0.01)
	require.LessOrEqual(t, s.P50, 2*time.Microsecond)
}

func TestRecorderMerge(t *testing.T) {
	whole, a, b := NewRecorder(), NewRecorder(), NewRecorder()
	for i := range 1000 {
		d := time.Duration(i*i) * time.Microsecond
		whole.Record(d)
		if i%3 == 0 {
			a.Record(d)
		} else {
			b.Record(d)
		}
	}
	a.Merge(b)
	require.Equal(t, whole.Distribution(""), a.Distribution(""))
	require.Equal(t, whole.Total(), a.Total())
}

func TestQuantilesDoNotPassTheMaximum(t *testing.T) {
	r := NewRecorder()
	r.Record(1_234_567_891)
	s := r.Distribution("")
	require.Equal(t, s.Max, s.P99)
}

func TestDistribution(t *testing.T) {
	r := NewRecorder()
	for i := range 10_000 {
		r.Record(time.Duration(i+1) * time.Microsecond)
	}
	d := r.Distribution("get")
	require.Equal(t, "get", d.Kind)
	require.Equal(t, int64(10_000), d.Count)
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
