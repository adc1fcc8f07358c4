package latency

import (
	"time"

	"golang.org/x/perf/benchfmt"
)

// Metric is one figure with its unit, as lines of the Go benchmark format have them:
// "p99-ms", "rows/s".
type Metric = benchfmt.Value

// Milliseconds returns a time as a figure.
func Milliseconds(d time.Duration, unit string) Metric {
	return Metric{Value: float64(d) / float64(time.Millisecond), Unit: unit}
}

// Second is what happened in one second of a run.
type Second struct {
	At     float64 // seconds since the run began, at the end of the interval
	Count  int64   // operations that ended in it
	Max    time.Duration
	Errors int64

	Sampled map[string]float64 // by unit, what is known of engine and system
}
