package latency

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	require.Equal(t, int64(len(all)), r.Count())
	for _, q := range []struct {
		got   time.Duration
		share float64
	}{{r.Quantile(50), 0.50}, {r.Quantile(95), 0.95}, {r.Quantile(99), 0.99}} {
		require.InEpsilon(t, float64(all[int(q.share*float64(len(all)))-1]), float64(q.got), 0.002)
	}
	require.Equal(t, all[len(all)-1], r.Max(), "exact")
}

func TestRecorderOutOfRange(t *testing.T) {
	r := NewRecorder()
	r.Record(0)
	r.Record(time.Hour)
	require.Equal(t, int64(2), r.Count())
	require.Equal(t, time.Hour, r.Max())
	require.Equal(t, time.Hour, r.sum)
	require.InEpsilon(t, float64(10*time.Minute), float64(r.Quantile(99)), 0.01)
	require.LessOrEqual(t, r.Quantile(50), 2*time.Microsecond)
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
	require.Equal(t, whole.Metrics(""), a.Metrics(""))
	require.Equal(t, whole.sum, a.sum)
}

// TestMetrics: percentiles are told of as many operations as they need, the time of one is that
// of the mean, and nothing is told of none.
func TestMetrics(t *testing.T) {
	units := func(n int, prefix string) (list []string) {
		r := NewRecorder()
		for i := range n {
			r.Record(time.Duration(i+1) * time.Microsecond)
		}
		for _, m := range r.Metrics(prefix) {
			list = append(list, m.Unit)
		}
		return list
	}
	require.Empty(t, units(0, ""))
	require.Equal(t, []string{"ns/op", "p50-ms", "p95-ms", "max-ms"}, units(99, ""))
	require.Equal(t, []string{"ns/op", "p50-ms", "p95-ms", "p99-ms", "max-ms"}, units(100, ""))
	require.Equal(t, []string{"read-p50-ms", "read-p95-ms", "read-p99-ms", "read-max-ms"}, units(1000, "read-"))
	r := NewRecorder()
	r.Record(time.Millisecond)
	r.Record(3 * time.Millisecond)
	require.Equal(t, Metric{Value: 2e6, Unit: "ns/op"}, r.Metrics("")[0])
}
