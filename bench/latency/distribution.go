package latency

import (
	"github.com/varvedb/varve/bench/result"
)

// percentiles of a curve: even in the middle, and denser to the tail, which is
// what charts of quantiles stretch.
var percentiles = []float64{
	0, 1, 2.5, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 87.5,
	90, 91, 92, 93, 94, 95, 96, 97, 98, 98.5, 99, 99.25, 99.5, 99.75, 99.9, 99.95,
	99.99, 99.995, 99.999, 99.9999,
}

// Distribution returns the distribution of one kind of operation with a curve
// of about 40 quantiles. The curve ends with the maximum at 100; before it are
// only percentiles that some operation lies above, so a run of 1,000 operations
// has no 99.99.
func (r *Recorder) Distribution(kind string) result.Distribution {
	s := r.Summary()
	d := result.Distribution{
		Kind: kind, Count: s.Count, Mean: s.Mean,
		P50: s.P50, P95: s.P95, P99: s.P99, P999: r.Quantile(99.9), Max: s.Max,
	}
	if s.Count == 0 {
		return d
	}
	for _, p := range percentiles {
		if above := (100 - p) / 100 * float64(s.Count); above < 1 {
			break
		}
		d.Curve = append(d.Curve, result.Quantile{Percent: p, Value: r.Quantile(p)})
	}
	d.Curve = append(d.Curve, result.Quantile{Percent: 100, Value: s.Max})
	return d
}
