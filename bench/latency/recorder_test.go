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
	s := r.Summary()
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
	s := r.Summary()
	require.Equal(t, int64(2), s.Count)
	require.Equal(t, time.Hour, s.Max)
	require.Equal(t, 30*time.Minute, s.Mean)
	require.InEpsilon(t, float64(10*time.Minute), float64(s.P99), 0.01)
	require.LessOrEqual(t, s.P50, 2*time.Microsecond)
}

func TestRecorderEmpty(t *testing.T) {
	require.Equal(t, Summary{}, NewRecorder().Summary())
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
	require.Equal(t, whole.Summary(), a.Summary())
	require.Equal(t, whole.Total(), a.Total())
}

func TestQuantilesDoNotPassTheMaximum(t *testing.T) {
	r := NewRecorder()
	r.Record(1_234_567_891)
	s := r.Summary()
	require.Equal(t, s.Max, s.P99)
}
