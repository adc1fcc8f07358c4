package rebac

import (
	"strconv"
	"time"

	"github.com/varvedb/varve/bench/result"
)

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Experiment is the id of the records of a report.
const Experiment = "G1"

// Records returns a report as records of a result set: one of ingest and closure,
// and one of each measurement.
func (r *Report) Records(started time.Time, manifest string) []result.Record {
	base := result.Config{
		{Key: "engine", Value: r.Engine.Name}, {Key: "layout", Value: "rebac"}, {Key: "profile", Value: r.Size.Name},
	}
	in := &r.Ingest
	metrics := []result.Metric{
		{Value: in.Took.Seconds(), Unit: "ingest-s"}, {Value: in.Rate(), Unit: "rows/s"}, {Value: ms(in.Batches.P95), Unit: "batch-p95-ms"},
		{Value: in.Indexes.Seconds(), Unit: "index-s"}, {Value: r.Closure.Seconds(), Unit: "closure-s"},
	}
	if n := r.StorageBytes(); n > 0 {
		metrics = append(metrics, result.Metric{Value: float64(n) / 1e6, Unit: "db-MB"})
	}
	list := []result.Record{{
		Experiment: Experiment, Name: "RebacIngest", Config: base, Started: started, Took: in.Took + r.Closure,
		Metrics: metrics, Latencies: []result.Distribution{in.Batches.distribution("batch")}, Manifest: manifest,
	}}
	for i := range r.Measurements {
		list = append(list, r.Measurements[i].record(base, started, manifest))
	}
	return list
}

func (m *Measurement) record(base result.Config, started time.Time, manifest string) result.Record {
	config := base.With("op", m.Scenario).With("closure", string(m.Closure)).With("clients", strconv.Itoa(m.Clients))
	metrics := []result.Metric{
		{Value: ms(m.Latency.Mean), Unit: "mean-ms"}, {Value: ms(m.Latency.P50), Unit: "p50-ms"}, {Value: ms(m.Latency.P95), Unit: "p95-ms"},
		{Value: ms(m.Latency.P99), Unit: "p99-ms"}, {Value: ms(m.Latency.Max), Unit: "max-ms"}, {Value: m.Rate, Unit: "op/s"},
		{Value: m.Latency.CV, Unit: "cv"}, {Value: m.Latency.RunsCV, Unit: "runs-cv"}, {Value: 100 * m.ErrorRate(), Unit: "errors-percent"},
	}
	if m.CPU > 0 {
		metrics = append(metrics, result.Metric{Value: ms(m.CPU), Unit: "cpu-ms/1k"})
	}
	return result.Record{
		Experiment: Experiment, Name: "Rebac", Config: config, Started: started, Took: m.Took, Metrics: metrics,
		Latencies: []result.Distribution{m.Latency.distribution(m.Scenario)}, Manifest: manifest,
	}
}
