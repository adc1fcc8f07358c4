package latency

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/varvedb/varve/bench/result"
)

// The range of recorded latencies and their precision. Outside it the exact
// maximum and mean still hold, and quantiles are those of the nearest end.
const (
	shortest = time.Nanosecond // at a microsecond, a question of three would be 3.07 or 3.58
	longest  = 10 * time.Minute
	digits   = 3 // significant
)

// Recorder collects latencies. It is not safe for concurrent use: give each
// goroutine its own and merge them.
type Recorder struct {
	hist *hdrhistogram.Histogram // nanoseconds
	sum  time.Duration
	max  time.Duration
}

// NewRecorder returns an empty recorder, which takes about 250 KB.
func NewRecorder() *Recorder {
	return &Recorder{hist: hdrhistogram.New(int64(shortest), int64(longest), digits)}
}

// Record adds a latency.
func (r *Recorder) Record(d time.Duration) {
	r.sum += d
	r.max = max(r.max, d)
	// The only error is a value out of range, which cannot be here.
	_ = r.hist.RecordValue(int64(min(max(d, shortest), longest)))
}

// Merge adds what another recorder has collected.
func (r *Recorder) Merge(o *Recorder) {
	r.hist.Merge(o.hist)
	r.sum += o.sum
	r.max = max(r.max, o.max)
}

// Count returns the number of recorded latencies.
func (r *Recorder) Count() int64 { return r.hist.TotalCount() }

// Total returns the sum of the latencies.
func (r *Recorder) Total() time.Duration { return r.sum }

// Max returns the longest latency, exactly; 0 when nothing was recorded.
func (r *Recorder) Max() time.Duration { return r.max }

// Quantile returns the latency that a percentage (0…100) of the operations did
// not pass, to three significant digits; 0 when nothing was recorded.
func (r *Recorder) Quantile(percent float64) time.Duration {
	// The upper end of a bucket may pass the maximum.
	return min(time.Duration(r.hist.ValueAtPercentile(percent)), r.max)
}

// percentiles of a curve: even in the middle, and denser to the tail, which is
// what charts of quantiles stretch.
var percentiles = []float64{
	0, 1, 2.5, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 87.5,
	90, 91, 92, 93, 94, 95, 96, 97, 98, 98.5, 99, 99.25, 99.5, 99.75, 99.9, 99.95,
	99.99, 99.995, 99.999, 99.9999,
}

// Distribution returns the distribution of one kind of operation, of which mean and
// maximum are exact, with a curve of about 40 quantiles. The curve ends with the maximum
// at 100; before it are only percentiles that some operation lies above, so a run of
// 1,000 operations has no 99.99.
func (r *Recorder) Distribution(kind string) result.Distribution {
	d := result.Distribution{Kind: kind, Count: r.Count()}
	if d.Count == 0 {
		return d
	}
	d.Mean, d.Max = r.sum/time.Duration(d.Count), r.max
	d.P50, d.P95, d.P99, d.P999 = r.Quantile(50), r.Quantile(95), r.Quantile(99), r.Quantile(99.9)
	for _, p := range percentiles {
		if above := (100 - p) / 100 * float64(d.Count); above < 1 {
			break
		}
		d.Curve = append(d.Curve, result.Quantile{Percent: p, Value: r.Quantile(p)})
	}
	d.Curve = append(d.Curve, result.Quantile{Percent: 100, Value: d.Max})
	return d
}
