package enrolment

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store/event"
)

// Writes is clients that append new enrolments at once.
type Writes struct {
	Clients int
	Do      func(ctx context.Context, events event.Store, batch []event.Event) error

	batch  int  // events of an append; 0 is 1
	costly bool // another client appends beside them on a costly condition
}

// Run records the latency of each append, without the time to make its events. The head must
// be what the appends come to.
func (w Writes) Run(ctx context.Context, events event.Store, loop pace.Config) (res bench.Result, err error) {
	before, err := events.Head(ctx)
	if err != nil {
		return res, err
	}
	w.batch, loop.Workers = max(w.batch, 1), w.Clients
	beside, err := w.beside(ctx, events, func() (err error) {
		res.Outcome, err = pace.Loop(ctx, loop, func(ctx context.Context, s *pace.Step) error {
			batch := newEnrolments(w.batch)
			s.Begin()
			return w.Do(ctx, events, batch)
		})
		return err
	})
	if err != nil {
		return res, err
	}
	res.Events = uint64(res.Count) * uint64(w.batch)
	after, err := events.Head(ctx)
	if err == nil && after-before != res.Events+beside {
		err = fmt.Errorf("%w: head %d, was %d before %d events", bench.ErrMismatch, after, before, res.Events+beside)
	}
	return res, err
}

// on is Run on the events of a copy.
func (w Writes) on(ctx context.Context, cp *bench.Copy, loop pace.Config) (bench.Result, error) {
	return w.Run(ctx, cp.Events, loop)
}

// beside runs f beside a client with a costly condition, if one is wanted: that no event
// has two tags that many have. It returns how many events that client appended.
func (w Writes) beside(ctx context.Context, evs event.Store, f func() error) (n uint64, err error) {
	if !w.costly {
		return 0, f()
	}
	var done atomic.Bool
	client := make(chan error, 1)
	go func() {
		both := event.Unless(event.Tagged(event.NewTag("grade", grades[0]), event.NewTag("grade", grades[1])))
		var err error
		for ; err == nil && !done.Load(); n++ {
			_, err = evs.Append(ctx, []event.Event{{Type: "GradesChecked"}}, both)
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
func newEnrolments(n int) []event.Event {
	id := newStudent.Add(1)
	batch := make([]event.Event, n)
	for i := range batch {
		student := event.NewTag("student_id", fmt.Sprintf("new-%d-%d", id, i))
		batch[i] = event.Event{
			Type: enrolled,
			Tags: []event.Tag{student, courseTag(int(id) % 1000), event.NewTag("grade", grades[i%len(grades)])},
			Data: fmt.Appendf(nil, `{"studentId":%q,"courseId":"course-%d"}`, student.Value, id%1000),
		}
	}
	return batch
}

// Append appends.
func Append(ctx context.Context, evs event.Store, batch []event.Event) error {
	_, err := evs.Append(ctx, batch, nil)
	return err
}

// AppendIfNew appends unless the first student is enrolled.
func AppendIfNew(ctx context.Context, evs event.Store, batch []event.Event) error {
	_, err := evs.Append(ctx, batch, event.Unless(event.Typed(enrolled, batch[0].Tags[0])))
	return err
}

// Decide projects whether the first student is enrolled, and appends under the
// condition that the projection returns.
func Decide(ctx context.Context, evs event.Store, batch []event.Event) error {
	before := event.NewProjection(event.Typed(enrolled, batch[0].Tags[0]), false,
		func(bool, *event.Sequenced) bool { return true })
	cond, err := event.Project(ctx, evs, before)
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
var many = func() (q event.Query) {
	for n := range 1000 {
		q.Items = append(q.Items, event.Item{Types: []string{"StudentRegistered"}, Tags: []event.Tag{studentTag(n)}})
	}
	return q
}()

// decideMany counts which of a thousand students there are, and appends unless another
// one of them has come.
func decideMany(ctx context.Context, evs event.Store, batch []event.Event) error {
	cond := &event.Condition{FailIfEventsMatch: many}
	if _, err := count(evs.Read(ctx, many, &event.ReadOptions{Head: &cond.After}), -1); err != nil {
		return err
	}
	_, err := evs.Append(ctx, batch, cond)
	return err
}
