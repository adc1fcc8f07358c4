package latency

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
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

// Summary is the distribution of latencies, in nanoseconds. Quantiles have
// three significant digits; Max and Mean are exact.
type Summary struct {
	Count int64         `json:"count"`
	P50   time.Duration `json:"p50_ns"`
	P95   time.Duration `json:"p95_ns"`
	P99   time.Duration `json:"p99_ns"`
	Max   time.Duration `json:"max_ns"`
	Mean  time.Duration `json:"mean_ns"`
}

// Summary returns the distribution so far; it is zero when nothing was
// recorded.
func (r *Recorder) Summary() Summary {
	s := Summary{Count: r.Count(), Max: r.max}
	if s.Count == 0 {
		return s
	}
	s.Mean = r.sum / time.Duration(s.Count)
	s.P50, s.P95, s.P99 = r.Quantile(50), r.Quantile(95), r.Quantile(99)
	return s
}
