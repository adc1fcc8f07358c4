package bench

import (
	"context"
	"errors"
	"time"

	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store"
)

// Result is what a workload did, every operation of it verified.
type Result struct {
	*pace.Outcome
	Entities uint64 // written or read
	Rows     uint64 // of these entities, as Profile.Rows counts them; 0 for reads of unknown entities
	Events   uint64 // appended or read

	// More are figures of the workload's own.
	More []Metric
}

// Metric is one figure with its unit in benchfmt's way; see [latency.Metric].
type Metric = latency.Metric

// Metrics returns the figures in a fixed order: those of the latencies, then the rates of
// operations, events, rows and entities without pauses.
func (r *Result) Metrics() []Metric {
	list, busy := r.All().Metrics(""), r.Busy()
	add := func(n float64, over time.Duration, unit string) {
		if n > 0 && over > 0 {
			list = append(list, Metric{Value: n / over.Seconds(), Unit: unit})
		}
	}
	add(float64(r.Count), busy, "op/s")
	add(float64(r.Events), busy, "ev/s")
	add(float64(r.Rows), busy, "rows/s")
	add(float64(r.Entities), busy, "ent/s")
	return append(list, r.More...)
}

// RowRate returns the rows a second of the whole run, with its pauses.
func (r *Result) RowRate() float64 { return float64(r.Rows) / max(r.Elapsed.Seconds(), 1e-9) }

// FoldLog moves the write-ahead log into the database and empties it, where the engine has one that can be asked to.
func FoldLog(ctx context.Context, db *store.DB) error {
	_, err := db.Engine().Checkpoint(ctx, true)
	if errors.Is(err, store.ErrUnsupported) {
		err = nil
	}
	return err
}
