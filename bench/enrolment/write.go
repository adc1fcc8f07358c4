package enrolment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
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
	random bool // tags of new things are in no order
}

// Run records the latency of each append, without the time to make its events. The head must
// be what the appends come to.
func (w Writes) Run(ctx context.Context, events event.Store, loop pace.Config) (res bench.Result, err error) {
	before, err := events.Head(ctx)
	if err != nil {
		return res, err
	}
	w.batch, loop.Workers = max(w.batch, 1), w.Clients
	res.Outcome, err = pace.Loop(ctx, loop, func(ctx context.Context, s *pace.Step) error {
		batch := newEnrolments(w.batch, w.random)
		s.Begin()
		return w.Do(ctx, events, batch)
	})
	if err != nil {
		return res, err
	}
	res.Events = uint64(res.Count) * uint64(w.batch)
	return res, w.moved(ctx, events, before, res.Events)
}

// moved fails unless the head is as many events beyond an earlier one.
func (w Writes) moved(ctx context.Context, events event.Store, before, by uint64) error {
	after, err := events.Head(ctx)
	if err == nil && after-before != by {
		err = fmt.Errorf("%w: head %d, was %d before %d events", bench.ErrMismatch, after, before, by)
	}
	return err
}

// each gives f the appends, one at a time. The events of one client are made
// while the clock stands.
func (w Writes) each(ctx context.Context, cp *bench.Copy, f func(*bench.Operations) error) error {
	before, err := cp.Events.Head(ctx)
	if err != nil {
		return err
	}
	w.batch = max(w.batch, 1)
	next := func() []event.Event { return newEnrolments(w.batch, w.random) }
	ops := &bench.Operations{
		Clients: w.Clients,
		Do:      func(ctx context.Context, _ int) error { return w.Do(ctx, cp.Events, next()) },
		Check: func(ctx context.Context, n int64) error {
			return w.moved(ctx, cp.Events, before, uint64(n)*uint64(w.batch))
		},
	}
	if w.Clients == 1 {
		var batch []event.Event
		ops.Prepare = func() error { batch = next(); return nil }
		ops.Do = func(ctx context.Context, _ int) error { return w.Do(ctx, cp.Events, batch) }
	}
	return f(ops)
}

// run is Run on the events of a copy, with how often a second the log was synced, where the engine tells.
func (w Writes) run(ctx context.Context, cp *bench.Copy, loop pace.Config) (res bench.Result, err error) {
	before, err := cp.DB.Engine().Stats(ctx)
	if err == nil {
		res, err = w.Run(ctx, cp.Events, loop)
	}
	after, noStats := cp.DB.Engine().Stats(ctx)
	if err = errors.Join(err, noStats); err == nil && before.Syncs != nil && after.Syncs != nil && res.Elapsed > 0 {
		res.More = append(res.More, bench.Metric{Value: float64(*after.Syncs-*before.Syncs) / res.Elapsed.Seconds(), Unit: "sync/s"})
	}
	return res, err
}

// newStudent numbers students so that no two of a process have the same tag.
var newStudent atomic.Uint64

// newEnrolments makes enrolments of new students in existing courses. It formats
// by hand, because what a client makes between two appends keeps it from the
// next one.
func newEnrolments(n int, random bool) []event.Event {
	id := newStudent.Add(1)
	batch := make([]event.Event, n)
	for i := range batch {
		name := "new-" + strconv.FormatUint(id, 10) + "-" + strconv.Itoa(i)
		if random {
			sum := sha256.Sum256([]byte(name))
			name = hex.EncodeToString(sum[:16])
		}
		course := int(id % 1000)
		batch[i] = event.Event{
			Type: enrolled,
			Tags: []event.Tag{event.NewTag("student_id", name), courseTag(course), event.NewTag("grade", grades[i%len(grades)])},
			Data: []byte(`{"studentId":"` + name + `","courseId":"course-` + strconv.Itoa(course) + `"}`),
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

// Decide projects whether the first student is enrolled, and appends under the condition that the projection returns.
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
