// Package latency records how long operations took, as a distribution, and
// formats figures. It does no I/O.
//
// Distributions are HDR histograms, see http://hdrhistogram.org: memory does
// not grow with the number of operations, and quantiles stay precise far into
// the tail. Averages of quantiles would be meaningless.
package latency

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/perf/benchfmt"
)

// The range of recorded latencies and their precision. Outside of it the
// maximum and mean are still exact, and quantiles are clamped to the range.
const (
	shortest = time.Nanosecond // with a microsecond, a value of three would be recorded as 3.07 or 3.58
	longest  = 10 * time.Minute
	digits   = 3 // significant
)

// Recorder collects latencies. It is not safe for concurrent use: give each goroutine its own and merge them.
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
	// The only possible error is a value out of range, which min and max
	// exclude.
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

// Max returns the longest latency, exactly; 0 when nothing was recorded.
func (r *Recorder) Max() time.Duration { return r.max }

// Quantile returns the latency that a percentage (0…100) of the operations did
// not exceed, to three significant digits; 0 when nothing was recorded.
func (r *Recorder) Quantile(percent float64) time.Duration {
	// The upper end of a bucket may pass the maximum.
	return min(time.Duration(r.hist.ValueAtPercentile(percent)), r.max)
}

// needsP99 is the number of operations from which the 99th percentile differs
// from the maximum.
const needsP99 = 100

// Metrics returns the figures, with a prefix to their units: the mean in
// nanoseconds (only without a prefix), the median, the percentiles that there
// are enough operations for, and the maximum.
func (r *Recorder) Metrics(prefix string) (list []Metric) {
	n := r.Count()
	if n == 0 {
		return nil
	}
	if prefix == "" {
		list = append(list, Metric{Value: float64(r.sum) / float64(n), Unit: "ns/op"})
	}
	list = append(list, Milliseconds(r.Quantile(50), prefix+"p50-ms"), Milliseconds(r.Quantile(95), prefix+"p95-ms"))
	if n >= needsP99 {
		list = append(list, Milliseconds(r.Quantile(99), prefix+"p99-ms"))
	}
	return append(list, Milliseconds(r.max, prefix+"max-ms"))
}

// Metric is one figure with its unit in the Go benchmark format, such as
// "p99-ms" or "rows/s".
type Metric = benchfmt.Value

// Milliseconds returns a duration as a figure in milliseconds.
func Milliseconds(d time.Duration, unit string) Metric {
	return Metric{Value: float64(d) / float64(time.Millisecond), Unit: unit}
}

// Second is what happened in one second of a run.
type Second struct {
	At     float64 // seconds since the run began, at the end of the interval
	Count  int64   // operations that ended in it
	Max    time.Duration
	Errors int64

	Sampled map[string]float64 // by unit: figures of engine and system
}
