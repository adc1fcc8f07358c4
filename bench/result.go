package bench

import (
	"context"
	"errors"

	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Result is what a workload did, every operation of it verified.
type Result struct {
	*pace.Outcome
	Entities uint64 // written or read
	Rows     uint64 // of these entities, as Profile.Rows counts them; 0 for reads of unknown entities
	Events   uint64 // appended or read

	// More are figures of the workload's own.
	More []Metric

	// Check compares the store with what the workload must have made. It is nil
	// where the workload has compared everything. Call it after the measurement,
	// because it takes about as long.
	Check func(ctx context.Context) error
}

// Checked calls Check, unless the workload has failed.
func (r *Result) Checked(ctx context.Context, failed error) error {
	if failed != nil || r.Check == nil {
		return failed
	}
	return r.Check(ctx)
}

// Metric is one figure with its unit in benchfmt's way; see [latency.Metric].
type Metric = latency.Metric

// Metrics returns the figures in a fixed order: those of the latencies, then
// the rates of operations, events, rows and entities over the elapsed time, and
// which part of that the operations were (busy).
func (r *Result) Metrics() []Metric {
	list := r.All().Metrics("")
	add := func(n float64, unit string) {
		if n > 0 && r.Elapsed > 0 {
			list = append(list, Metric{Value: n / r.Elapsed.Seconds(), Unit: unit})
		}
	}
	add(float64(r.Count), "op/s")
	add(float64(r.Events), "ev/s")
	add(float64(r.Rows), "rows/s")
	add(float64(r.Entities), "ent/s")
	if busy := r.Busy(); busy > 0 {
		list = append(list, Metric{Value: busy, Unit: "busy"})
	}
	return append(list, r.More...)
}

// RowRate returns the rows a second of the whole run, with its pauses.
func (r *Result) RowRate() float64 { return float64(r.Rows) / max(r.Elapsed.Seconds(), 1e-9) }

// FoldLog moves the write-ahead log into the database and empties it, where the engine has one that can be asked to.
func FoldLog(ctx context.Context, db *store.DB) error {
	_, err := driver.Checkpoint(ctx, db.Engine(), true)
	if errors.Is(err, store.ErrUnsupported) {
		err = nil
	}
	return err
}
