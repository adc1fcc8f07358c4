package experiment

import (
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/bench/result"
)

// put adds a figure to a record.
func put(r *result.Record, value float64, unit string) {
	r.Metrics = append(r.Metrics, result.Metric{Value: value, Unit: unit})
}

// add adds a workload's latencies and figures.
func add(r *result.Record, kind string, res bench.Result) {
	r.Metrics = append(r.Metrics, res.Metrics()...)
	addLatency(r, kind, res.Latency)
}

// addLatency adds the latencies of a kind of operation.
func addLatency(r *result.Record, kind string, rec *latency.Recorder) result.Distribution {
	d := rec.Distribution(kind)
	r.Latencies = append(r.Latencies, d)
	return d
}

// addOutcome adds what a loop did.
func addOutcome(r *result.Record, out *pace.Outcome) {
	r.Metrics = append(r.Metrics, out.Metrics()...)
	all := addLatency(r, "all", out.All())
	r.Metrics = append(r.Metrics, all.Metrics("")...)
	put(r, out.Capacity(), "capacity-qps")
	r.Latencies = append(r.Latencies, out.Distributions()...)
}

// addSamples joins samples and latencies to the record's timeline, and sums
// them up.
func addSamples(r *result.Record, samples *probe.Samples, started time.Time, seconds []result.Second) {
	r.Timeline = samples.Fill(seconds, started)
	r.Marks = append(r.Marks, samples.Marks(started)...)
	for _, s := range summaries {
		if values := known(r.Timeline, s.of); len(values) > 0 {
			put(r, s.sum(values)/s.in, s.unit)
		}
	}
	if samples.Failures > 0 {
		r.Notes = append(r.Notes, "some samples are missing: "+samples.Err.Error())
	}
}

// summaries are what a timeline comes to: the highest sizes, the average use of
// processor and disk, and what was resident last.
var summaries = []struct {
	unit string
	in   float64
	sum  func([]float64) float64
	of   func(*result.Second) *float64
}{
	{"wal-MB", 1e6, slices.Max[[]float64], func(s *result.Second) *float64 { return float(s.WALBytes) }},
	{"rss-MB", 1e6, slices.Max[[]float64], func(s *result.Second) *float64 { return float(s.RSSBytes) }},
	{"db-MB", 1e6, slices.Max[[]float64], func(s *result.Second) *float64 { return float(s.DatabaseBytes) }},
	{"cores", 1, mean, func(s *result.Second) *float64 { return s.CPU }},
	{"disk-read-MB/s", 1e6, mean, func(s *result.Second) *float64 { return float(s.ReadBytes) }},
	{"disk-write-MB/s", 1e6, mean, func(s *result.Second) *float64 { return float(s.WriteBytes) }},
	{"stall-ms/s", 1e6, mean, func(s *result.Second) *float64 { return float(s.StallNS) }},
	{"resident", 1, last, func(s *result.Second) *float64 { return s.Resident }},
}

// known returns the values that the engine and the system told.
func known(line []result.Second, of func(*result.Second) *float64) (values []float64) {
	for i := range line {
		if v := of(&line[i]); v != nil {
			values = append(values, *v)
		}
	}
	return values
}

func float[T ~int64](v *T) *float64 {
	if v == nil {
		return nil
	}
	f := float64(*v)
	return &f
}

func mean(values []float64) float64 { return stat.Mean(values, nil) }

func last(values []float64) float64 { return values[len(values)-1] }
