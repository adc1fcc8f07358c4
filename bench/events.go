package bench

import (
	"context"
	"errors"
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

// appendCall is one append, made before its round begins.
type appendCall struct {
	events []store.Event
	cond   *store.Condition
}

// AppendEvents appends new enrolments and records the latency of each append. The
// events of a round are made before it begins and are not part of its time. It
// fails with ErrMismatch when the head is not what the appends come to.
func AppendEvents(ctx context.Context, evs *store.Events, cfg AppendEventsConfig) (EventResult, error) {
	cfg.Clients, cfg.Each, cfg.Batch = max(cfg.Clients, 1), max(cfg.Each, 1), max(cfg.Batch, 1)
	res := EventResult{Latency: NewRecorder()}
	before, err := evs.Head(ctx)
	if err != nil {
		return res, fmt.Errorf("append events: %w", err)
	}
	calls := make([][]appendCall, cfg.Clients)
	for c := range calls {
		calls[c] = make([]appendCall, cfg.Each)
	}
	r := newRound(cfg.Clients)
	for loop := orOnce(cfg.Loop); loop.Loop(); {
		for c := range calls {
			for i := range calls[c] {
				calls[c][i] = cfg.next()
			}
		}
		err := r.run(&res, func(c int, latency *Recorder) error { return appendAll(ctx, evs, calls[c], latency) })
		if err != nil {
			return res, fmt.Errorf("append events: %w", err)
		}
		res.Operations += uint64(cfg.Clients * cfg.Each)
	}
	r.merge(&res)
	res.Events = res.Operations * uint64(cfg.Batch)
	after, err := evs.Head(ctx)
	if err == nil && after-before != res.Events {
		err = mismatch("head %d, was %d before %d events", after, before, res.Events)
	}
	return res, err
}

// round is a number of clients, each with its latencies, that work at once again
// and again.
type round struct {
	latency []*Recorder
	errs    []error
}

func newRound(clients int) *round {
	r := &round{latency: make([]*Recorder, clients), errs: make([]error, clients)}
	for i := range r.latency {
		r.latency[i] = NewRecorder()
	}
	return r
}

// run lets the clients work and adds the time that it took.
func (r *round) run(res *EventResult, f func(client int, latency *Recorder) error) error {
	start := time.Now()
	var wg sync.WaitGroup
	for c := 1; c < len(r.errs); c++ {
		wg.Go(func() { r.errs[c] = f(c, r.latency[c]) })
	}
	r.errs[0] = f(0, r.latency[0])
	wg.Wait()
	res.Elapsed += time.Since(start)
	return errors.Join(r.errs...)
}

// merge adds the latencies of all clients.
func (r *round) merge(res *EventResult) {
	for _, l := range r.latency {
		res.Latency.Merge(l)
	}
}

func appendAll(ctx context.Context, evs *store.Events, calls []appendCall, latency *Recorder) error {
	for _, call := range calls {
		start := time.Now()
		_, err := evs.Append(ctx, call.events, call.cond)
		latency.Record(time.Since(start))
		if err != nil {
			return err
		}
	}
	return nil
}

// next makes an append: enrolments of new students in existing courses.
func (cfg *AppendEventsConfig) next() appendCall {
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
		return appendCall{events: batch}
	}
	return appendCall{events: batch, cond: event.Unless(event.Typed(batch[0].Type, batch[0].Tags[0]))}
}

// DecideEventsConfig is a closed loop of rounds of decisions: each client reads
// what a decision is about and appends on the condition that it still holds.
type DecideEventsConfig struct {
	Clients int // zero means one
	Each    int // decisions of each client in a round; zero means one
	Loop    Loop
}

// DecideEvents enrols new students: it projects whether the student is enrolled,
// and appends under the condition that the projection returns. The latency is that
// of both. It fails with ErrMismatch when one is enrolled already.
func DecideEvents(ctx context.Context, evs *store.Events, cfg DecideEventsConfig) (EventResult, error) {
	cfg.Clients, cfg.Each = max(cfg.Clients, 1), max(cfg.Each, 1)
	res := EventResult{Latency: NewRecorder()}
	one := AppendEventsConfig{Batch: 1}
	r := newRound(cfg.Clients)
	for loop := orOnce(cfg.Loop); loop.Loop(); {
		err := r.run(&res, func(_ int, latency *Recorder) error {
			for range cfg.Each {
				call := one.next()
				start := time.Now()
				err := decide(ctx, evs, call.events)
				latency.Record(time.Since(start))
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return res, fmt.Errorf("decide: %w", err)
		}
		res.Operations += uint64(cfg.Clients * cfg.Each)
	}
	r.merge(&res)
	res.Events = res.Operations
	return res, nil
}

func decide(ctx context.Context, evs *store.Events, events []store.Event) error {
	enrolled := event.NewProjection(event.Typed(events[0].Type, events[0].Tags[0]), false,
		func(bool, *store.SequencedEvent) bool { return true })
	cond, err := evs.Project(ctx, enrolled)
	if err != nil {
		return err
	}
	if enrolled.State {
		return mismatch("%s is enrolled already", events[0].Tags[0])
	}
	_, err = evs.Append(ctx, events, cond)
	return err
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

// StreamEvents subscribes from the beginning, until as many events have come as the
// query selects, and records the latency of each pass.
func StreamEvents(ctx context.Context, evs *store.Events, cfg ReadEventsConfig) (EventResult, error) {
	return readLoop(cfg.Loop, cfg.Events, func() (n int, err error) {
		for _, err := range evs.Subscribe(ctx, cfg.Query, 0) {
			if err != nil {
				return n, err
			}
			if n++; n == cfg.Events {
				break
			}
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
