package bench

import (
	"context"
	"errors"

	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Result has the figures of a workload, all of whose operations were verified.
type Result struct {
	*pace.Outcome
	Entities uint64 // written or read
	Rows     uint64 // of these entities, as Profile.Rows counts them; 0 for reads of unknown entities
	Events   uint64 // appended or read

	// More are figures specific to the workload.
	More []Metric

	// Check compares the store with the workload's expected effects. It is nil
	// if the workload has compared everything itself. Call it after the
	// measurement, because it takes about as long.
	Check func(ctx context.Context) error
}

// Checked calls Check, unless the workload has failed.
func (r *Result) Checked(ctx context.Context, failed error) error {
	if failed != nil || r.Check == nil {
		return failed
	}
	return r.Check(ctx)
}

// Metric is one figure with its unit, as in benchfmt; see [latency.Metric].
type Metric = latency.Metric

// Metrics returns the figures in a fixed order: latencies, then operations,
// events, rows and entities a second of elapsed time, and the share of that
// time spent in operations (busy).
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

// RowRate returns the rows a second of the whole run, pauses included.
func (r *Result) RowRate() float64 { return float64(r.Rows) / max(r.Elapsed.Seconds(), 1e-9) }

// FoldLog checkpoints the write-ahead log and empties it, if the engine
// supports that.
func FoldLog(ctx context.Context, db *store.DB) error {
	_, err := driver.Checkpoint(ctx, db.Engine(), true)
	if errors.Is(err, store.ErrUnsupported) {
		err = nil
	}
	return err
}
