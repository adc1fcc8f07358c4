package bench

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/store"
)

// Result is what a workload did, every operation of it verified.
type Result struct {
	Latency  *latency.Recorder // of each operation
	Entities uint64            // written or read
	Rows     uint64            // of these entities, as Profile.Rows counts them; 0 for reads of unknown entities
	Events   uint64            // appended or read

	// Elapsed is how long the operations of several clients took, which overlap.
	Elapsed time.Duration

	// Settle is how long it took afterwards to do what the layout had put off.
	Settle time.Duration

	// More are figures of the workload's own.
	More []Metric
}

// NewResult returns the result of a workload that begins.
func NewResult() Result { return Result{Latency: latency.NewRecorder()} }

// Time runs an operation and records how long it took, also when it fails.
func (r *Result) Time(op func() error) error {
	start := time.Now()
	err := op()
	r.Latency.Record(time.Since(start))
	return err
}

// Clients runs each client's operations one after another, beside those of the
// others, and records their latencies and the time of all. Client c has the numbers
// c, c+clients, c+2*clients and so on. The first error ends all.
func (r *Result) Clients(ctx context.Context, clients, each int, op func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	var recording sync.Mutex
	start := time.Now()
	for c := range clients {
		group.Go(func() error {
			for i := range each {
				begun := time.Now()
				err := op(ctx, i*clients+c)
				took := time.Since(begun)
				recording.Lock()
				r.Latency.Record(took)
				recording.Unlock()
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	r.Elapsed += time.Since(start)
	return err
}

// Metric is one figure with its unit in benchfmt's way; see [latency.Metric].
type Metric = latency.Metric

// Metrics returns the figures in a fixed order: those of the latencies, then op/s and ev/s
// over the time that the operations of all clients took, and rows/s and ent/s over
// that of each operation, so without pauses. Where the layout put something off,
// settled-ent/s counts the time for that as well.
func (r *Result) Metrics() []Metric {
	list := r.Latency.Metrics("")
	add := func(value float64, unit string) { list = append(list, Metric{Value: value, Unit: unit}) }
	if seconds := r.Elapsed.Seconds(); seconds > 0 {
		add(float64(r.Latency.Count())/seconds, "op/s")
		if r.Events > 0 {
			add(float64(r.Events)/seconds, "ev/s")
		}
	}
	if seconds := r.Latency.Total().Seconds(); seconds > 0 {
		if r.Rows > 0 {
			add(float64(r.Rows)/seconds, "rows/s")
		}
		if r.Entities > 0 {
			add(float64(r.Entities)/seconds, "ent/s")
		}
		if r.Settle > 0 {
			add(float64(r.Entities)/(seconds+r.Settle.Seconds()), "settled-ent/s")
		}
	}
	return append(list, r.More...)
}

// FoldLog moves the write-ahead log into the database and empties it, where the
// engine has one that can be asked to.
func FoldLog(ctx context.Context, db *store.DB) error {
	_, err := db.Checkpoint(ctx, true)
	if errors.Is(err, store.ErrUnsupported) {
		err = nil
	}
	return err
}
