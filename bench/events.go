package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// EventResult is what a workload over events did, every operation of it verified.
type EventResult struct {
	Latency    *Recorder     // of each operation
	Elapsed    time.Duration // of all rounds; operations of several clients overlap
	Operations uint64
	Events     uint64 // appended or read
}

// Metrics returns p50-ms, p95-ms, p99-ms, max-ms, op/s and ev/s in this order.
func (r *EventResult) Metrics() []Metric {
	s := r.Latency.Summary()
	list := []Metric{
		metric(milliseconds(s.P50), "p50-ms"), metric(milliseconds(s.P95), "p95-ms"),
		metric(milliseconds(s.P99), "p99-ms"), metric(milliseconds(s.Max), "max-ms"),
	}
	if seconds := r.Elapsed.Seconds(); seconds > 0 {
		list = append(list, metric(float64(r.Operations)/seconds, "op/s"), metric(float64(r.Events)/seconds, "ev/s"))
	}
	return list
}

// AppendEventsConfig is a closed loop of rounds in which clients append at once.
type AppendEventsConfig struct {
	Clients     int  // zero means one
	Each        int  // appends of each client in a round; zero means one
	Batch       int  // events of an append; zero means one
	Conditional bool // no event may have the append's own tag, which none has
	Loop        Loop // how many rounds; nil means one
}

// appendRun numbers appends so that no two have the same tags, in a process.
var appendRun atomic.Uint64

// AppendEvents appends new enrolments and records the latency of each append. It
// fails with ErrMismatch when the head is not what the appends come to.
func AppendEvents(ctx context.Context, evs *store.Events, cfg AppendEventsConfig) (EventResult, error) {
	cfg.Clients, cfg.Each, cfg.Batch = max(cfg.Clients, 1), max(cfg.Each, 1), max(cfg.Batch, 1)
	res := EventResult{Latency: NewRecorder()}
	before, err := evs.Head(ctx)
	if err != nil {
		return res, fmt.Errorf("append events: %w", err)
	}
	recorders := make([]*Recorder, cfg.Clients)
	errs := make([]error, cfg.Clients)
	for i := range recorders {
		recorders[i] = NewRecorder()
	}
	for loop := orOnce(cfg.Loop); loop.Loop(); {
		start := time.Now()
		var wg sync.WaitGroup
		for c := 1; c < cfg.Clients; c++ {
			wg.Go(func() { errs[c] = cfg.client(ctx, evs, recorders[c]) })
		}
		errs[0] = cfg.client(ctx, evs, recorders[0])
		wg.Wait()
		res.Elapsed += time.Since(start)
		for _, err := range errs {
			if err != nil {
				return res, fmt.Errorf("append events: %w", err)
			}
		}
		res.Operations += uint64(cfg.Clients * cfg.Each)
	}
	for _, r := range recorders {
		res.Latency.Merge(r)
	}
	res.Events = res.Operations * uint64(cfg.Batch)
	after, err := evs.Head(ctx)
	if err == nil && after-before != res.Events {
		err = mismatch("head %d, was %d before %d events", after, before, res.Events)
	}
	return res, err
}

func (cfg *AppendEventsConfig) client(ctx context.Context, evs *store.Events, latency *Recorder) error {
	for range cfg.Each {
		batch, cond := cfg.next()
		start := time.Now()
		_, err := evs.Append(ctx, batch, cond)
		latency.Record(time.Since(start))
		if err != nil {
			return err
		}
	}
	return nil
}

// next makes an append: enrolments of new students in existing courses.
func (cfg *AppendEventsConfig) next() ([]store.Event, *store.Condition) {
	n := appendRun.Add(1)
	batch := make([]store.Event, cfg.Batch)
	for i := range batch {
		student := event.NewTag("student_id", fmt.Sprintf("new-%d-%d", n, i))
		batch[i] = store.Event{
			Type: "StudentEnrolledInCourse",
			Tags: []store.Tag{student, courseTag(int(n) % 1000), event.NewTag("grade", eventGrades[i%len(eventGrades)])},
			Data: fmt.Appendf(nil, `{"studentId":%q,"courseId":"course-%d"}`, student.Value, n%1000),
		}
	}
	if !cfg.Conditional {
		return batch, nil
	}
	return batch, event.Unless(event.Typed(batch[0].Type, batch[0].Tags[0]))
}

// ReadEventsConfig is a closed loop of reads.
type ReadEventsConfig struct {
	Query  store.EventQuery
	Events int  // that the query selects
	Loop   Loop // how many reads; nil means one
}

// ReadEvents reads what a query selects and records the latency of each read to
// its end. It fails with ErrMismatch when the number of events is another.
func ReadEvents(ctx context.Context, evs *store.Events, cfg ReadEventsConfig) (EventResult, error) {
	return readLoop(cfg.Loop, cfg.Events, func() (n int, err error) {
		for _, err := range evs.Read(ctx, cfg.Query, nil) {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	})
}

// ProjectEventsConfig is a closed loop of projections that count.
type ProjectEventsConfig struct {
	Queries []store.EventQuery
	Events  int // that the queries select, an event counted for each that does
	Loop    Loop
}

// ProjectEvents projects counts of what the queries select and records the latency
// of each pass. It fails with ErrMismatch when they come to another number.
func ProjectEvents(ctx context.Context, evs *store.Events, cfg ProjectEventsConfig) (EventResult, error) {
	return readLoop(cfg.Loop, cfg.Events, func() (total int, err error) {
		projectors := make([]store.Projector, len(cfg.Queries))
		counts := make([]*event.Projection[int], len(cfg.Queries))
		for i, q := range cfg.Queries {
			counts[i] = event.NewProjection(q, 0, func(n int, _ *store.SequencedEvent) int { return n + 1 })
			projectors[i] = counts[i]
		}
		_, err = evs.Project(ctx, projectors...)
		for _, c := range counts {
			total += c.State
		}
		return total, err
	})
}

func readLoop(l Loop, want int, once func() (int, error)) (EventResult, error) {
	res := EventResult{Latency: NewRecorder()}
	for loop := orOnce(l); loop.Loop(); {
		start := time.Now()
		n, err := once()
		took := time.Since(start)
		res.Latency.Record(took)
		res.Elapsed += took
		if err == nil && n != want {
			err = mismatch("%d events, want %d", n, want)
		}
		if err != nil {
			return res, fmt.Errorf("read events: %w", err)
		}
		res.Operations++
		res.Events += uint64(n)
	}
	return res, nil
}
