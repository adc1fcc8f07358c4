package enrolment

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// writes is rounds in which clients append new enrolments at once.
type writes struct {
	clients, each int  // appends of each client in a round
	batch         int  // events of an append
	random        bool // tags of new things are in no order
	costly        bool // another client appends beside them on a costly condition
	do            func(ctx context.Context, evs *store.Events, batch []store.Event) error
}

// run records the latency of each append. The events of a round are made before it
// begins and are not part of its time. The head must be what the appends come to.
func (w writes) run(ctx context.Context, cp *bench.Copy, loop bench.Loop) (bench.Result, error) {
	res := bench.NewResult()
	before, err := cp.Events.Head(ctx)
	if err != nil {
		return res, err
	}
	stats, err := cp.DB.Stats(ctx)
	if err != nil {
		return res, err
	}
	batches := make([][]store.Event, w.clients*w.each)
	beside := uint64(0)
	for loop() {
		for i := range batches {
			batches[i] = newEnrolments(w.batch, w.random)
		}
		n, err := w.beside(ctx, cp.Events, func() error {
			return res.Clients(ctx, w.clients, w.each, func(ctx context.Context, i int) error { return w.do(ctx, cp.Events, batches[i]) })
		})
		if err != nil {
			return res, err
		}
		res.Events += uint64(len(batches) * w.batch)
		beside += n
	}
	after, err := cp.Events.Head(ctx)
	if err == nil && after-before != res.Events+beside {
		err = fmt.Errorf("%w: head %d, was %d before %d events", bench.ErrMismatch, after, before, res.Events+beside)
	}
	if err == nil {
		err = w.more(ctx, cp, &res, stats, beside)
	}
	return res, err
}

// more adds how often the log was synced, where the engine tells, and how many appends
// the client with the costly condition made: both a second.
func (w writes) more(ctx context.Context, cp *bench.Copy, res *bench.Result, before driver.Stats, beside uint64) error {
	after, err := cp.DB.Stats(ctx)
	seconds := res.Elapsed.Seconds()
	if err != nil || seconds == 0 {
		return err
	}
	if after.Syncs != nil && before.Syncs != nil {
		res.More = append(res.More, bench.Metric{Value: float64(*after.Syncs-*before.Syncs) / seconds, Unit: "sync/s"})
	}
	if w.costly {
		res.More = append(res.More, bench.Metric{Value: float64(beside) / seconds, Unit: "costly/s"})
	}
	return nil
}

// beside runs f beside a client with a costly condition, if one is wanted: that no event
// has two tags that many have. It returns how many events that client appended.
func (w writes) beside(ctx context.Context, evs *store.Events, f func() error) (n uint64, err error) {
	if !w.costly {
		return 0, f()
	}
	var done atomic.Bool
	client := make(chan error, 1)
	go func() {
		both := event.Unless(event.Tagged(event.NewTag("grade", grades[0]), event.NewTag("grade", grades[1])))
		var err error
		for ; err == nil && !done.Load(); n++ {
			_, err = evs.Append(ctx, []store.Event{{Type: "GradesChecked"}}, both)
		}
		client <- err
	}()
	err = f()
	done.Store(true)
	return n, errors.Join(err, <-client)
}

// newStudent numbers students so that no two of a process have the same tag.
var newStudent atomic.Uint64

// newEnrolments makes enrolments of new students in existing courses.
func newEnrolments(n int, random bool) []store.Event {
	id := newStudent.Add(1)
	batch := make([]store.Event, n)
	for i := range batch {
		name := fmt.Sprintf("new-%d-%d", id, i)
		if random {
			name = fmt.Sprintf("%x", sha256.Sum256([]byte(name)))[:32]
		}
		student := event.NewTag("student_id", name)
		batch[i] = store.Event{
			Type: enrolled,
			Tags: []store.Tag{student, courseTag(int(id) % 1000), event.NewTag("grade", grades[i%len(grades)])},
			Data: fmt.Appendf(nil, `{"studentId":%q,"courseId":"course-%d"}`, student.Value, id%1000),
		}
	}
	return batch
}

func appendAlways(ctx context.Context, evs *store.Events, batch []store.Event) error {
	_, err := evs.Append(ctx, batch, nil)
	return err
}

// appendIfNew appends unless the first student is enrolled.
func appendIfNew(ctx context.Context, evs *store.Events, batch []store.Event) error {
	_, err := evs.Append(ctx, batch, event.Unless(event.Typed(enrolled, batch[0].Tags[0])))
	return err
}

// decide projects whether the first student is enrolled, and appends under the
// condition that the projection returns.
func decide(ctx context.Context, evs *store.Events, batch []store.Event) error {
	before := event.NewProjection(event.Typed(enrolled, batch[0].Tags[0]), false,
		func(bool, *store.SequencedEvent) bool { return true })
	cond, err := evs.Project(ctx, before)
	if err != nil {
		return err
	}
	if before.State {
		return fmt.Errorf("%w: %s is enrolled already", bench.ErrMismatch, batch[0].Tags[0])
	}
	_, err = evs.Append(ctx, batch, cond)
	return err
}

// many is a query for a thousand students.
var many = func() (q store.EventQuery) {
	for n := range 1000 {
		q.Items = append(q.Items, store.EventItem{Types: []string{"StudentRegistered"}, Tags: []store.Tag{studentTag(n)}})
	}
	return q
}()

// decideMany counts which of a thousand students there are, and appends unless another
// one of them has come.
func decideMany(ctx context.Context, evs *store.Events, batch []store.Event) error {
	cond := &store.Condition{FailIfEventsMatch: many}
	if _, err := count(evs.Read(ctx, many, &store.EventReadOptions{Head: &cond.After}), -1); err != nil {
		return err
	}
	_, err := evs.Append(ctx, batch, cond)
	return err
}
