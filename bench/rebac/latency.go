package rebac

import (
	"math"
	"slices"
	"time"

	"github.com/varvedb/varve/bench/result"
)

// Latency is a distribution, from all samples: quantiles are samples, not ends of
// buckets, since checks take a few microseconds.
type Latency struct {
	Count int           `json:"count"`
	Mean  time.Duration `json:"mean_ns"`
	P50   time.Duration `json:"p50_ns"`
	P95   time.Duration `json:"p95_ns"`
	P99   time.Duration `json:"p99_ns"`
	P999  time.Duration `json:"p999_ns"`
	Max   time.Duration `json:"max_ns"`

	// CV is the standard deviation over the mean: of all samples, and of the means
	// of the rounds that a measurement is cut into (0 when it was not).
	CV     float64 `json:"cv"`
	RunsCV float64 `json:"runs_cv"`
}

// summarise sorts the samples. Rounds are the means of rounds, in nanoseconds.
func summarise(samples []time.Duration, rounds []float64) Latency {
	l := Latency{Count: len(samples)}
	if l.Count == 0 {
		return l
	}
	slices.Sort(samples)
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = float64(s)
	}
	mean, cv := meanAndCV(values)
	at := func(share float64) time.Duration {
		return samples[min(int(math.Ceil(share*float64(l.Count)))-1, l.Count-1)]
	}
	l.Mean, l.CV = time.Duration(mean), cv
	l.P50, l.P95, l.P99, l.P999, l.Max = at(0.5), at(0.95), at(0.99), at(0.999), samples[l.Count-1]
	_, l.RunsCV = meanAndCV(rounds)
	return l
}

// meanAndCV returns the mean and the sample standard deviation over it.
func meanAndCV(values []float64) (mean, cv float64) {
	if len(values) == 0 {
		return 0, 0
	}
	for _, v := range values {
		mean += v
	}
	mean /= float64(len(values))
	if len(values) < 2 || mean == 0 {
		return mean, 0
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(squares/float64(len(values)-1)) / mean
}

// distribution returns it for a result set.
func (l Latency) distribution(kind string) result.Distribution {
	return result.Distribution{
		Kind: kind, Count: int64(l.Count), Mean: l.Mean,
		P50: l.P50, P95: l.P95, P99: l.P99, P999: l.P999, Max: l.Max,
	}
}
