package bench

import (
	"time"

	"github.com/varvedb/varve/store/driver"
)

// Result is what a workload did, every operation of it verified.
type Result struct {
	Latency  *Recorder // of each operation
	Entities uint64    // written or read
	Rows     uint64    // of these entities, as Profile.Rows counts them; 0 for reads of unknown entities
}

func newResult() Result { return Result{Latency: NewRecorder()} }

// Merge adds the result of the same workload in another goroutine or run.
func (r *Result) Merge(o Result) {
	r.Latency.Merge(o.Latency)
	r.Entities += o.Entities
	r.Rows += o.Rows
}

// Metric is one figure with its unit in benchfmt's way.
type Metric struct {
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

const mega = 1e6

// Metrics returns the figures in a fixed order: p50-ms, p95-ms, p99-ms, max-ms,
// and rows/s and ent/s over the time that operations took, so without pauses.
func (r *Result) Metrics() []Metric {
	s := r.Latency.Summary()
	list := []Metric{
		{milliseconds(s.P50), "p50-ms"}, {milliseconds(s.P95), "p95-ms"},
		{milliseconds(s.P99), "p99-ms"}, {milliseconds(s.Max), "max-ms"},
	}
	seconds := r.Latency.Total().Seconds()
	if seconds == 0 {
		return list
	}
	if r.Rows > 0 {
		list = append(list, Metric{float64(r.Rows) / seconds, "rows/s"})
	}
	if r.Entities > 0 {
		list = append(list, Metric{float64(r.Entities) / seconds, "ent/s"})
	}
	return list
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Sizes are an engine's statistics around a run.
type Sizes struct {
	Before, After driver.Stats // at its beginning and end
	Folded        driver.Stats // after the log was moved into the database
	Operations    int64        // commits of the run
	Live          uint64       // entities visible at the end
}

// Metrics returns those of wal-MB (the log at the end, in 10⁶ bytes), stall-ms
// (time that commits waited for checkpoints, a commit), db-MB (the database
// without a log, in 10⁶ bytes) and B/ent (its bytes a visible entity) that the
// engine tells.
func (s *Sizes) Metrics() []Metric {
	var list []Metric
	if wal := s.After.WALBytes; wal != nil {
		list = append(list, Metric{float64(*wal) / mega, "wal-MB"})
	}
	if from, to := s.Before.CheckpointStall, s.After.CheckpointStall; from != nil && to != nil && s.Operations > 0 {
		list = append(list, Metric{milliseconds(*to-*from) / float64(s.Operations), "stall-ms"})
	}
	if size := s.Folded.DatabaseBytes; size != nil {
		list = append(list, Metric{float64(*size) / mega, "db-MB"})
		if s.Live > 0 {
			list = append(list, Metric{float64(*size) / float64(s.Live), "B/ent"})
		}
	}
	return list
}
