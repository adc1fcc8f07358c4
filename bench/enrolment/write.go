package enrolment

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// writes is rounds in which clients append new enrolments at once.
type writes struct {
	clients, each int // appends of each client in a round
	batch         int // events of an append
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
	batches := make([][]store.Event, w.clients*w.each)
	for loop.Loop() {
		for i := range batches {
			batches[i] = newEnrolments(w.batch)
		}
		err := res.Clients(ctx, w.clients, w.each, func(ctx context.Context, i int) error { return w.do(ctx, cp.Events, batches[i]) })
		if err != nil {
			return res, err
		}
		res.Events += uint64(len(batches) * w.batch)
	}
	after, err := cp.Events.Head(ctx)
	if err == nil && after-before != res.Events {
		err = fmt.Errorf("%w: head %d, was %d before %d events", bench.ErrMismatch, after, before, res.Events)
	}
	return res, err
}

// newStudent numbers students so that no two of a process have the same tag.
var newStudent atomic.Uint64

// newEnrolments makes enrolments of new students in existing courses.
func newEnrolments(n int) []store.Event {
	id := newStudent.Add(1)
	batch := make([]store.Event, n)
	for i := range batch {
		student := event.NewTag("student_id", fmt.Sprintf("new-%d-%d", id, i))
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
