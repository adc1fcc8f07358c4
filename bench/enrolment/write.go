package enrolment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store/event"
)

// Writes configures clients that append new enrolments concurrently.
type Writes struct {
	Clients int
	Do      func(ctx context.Context, events event.Store, batch []event.Event) error

	batch  int  // events of an append; 0 is 1
	random bool // tags of new courses and students are in random order
}

// Operations returns the appends. Their events are generated outside of the
// measured time. Afterwards the log's head must equal the number of appended
// events.
func (w Writes) Operations(ctx context.Context, events event.Store) (*bench.Operations, error) {
	before, err := events.Head(ctx)
	if err != nil {
		return nil, err
	}
	batches := make([][]event.Event, max(w.Clients, 1))
	ops := &bench.Operations{Clients: w.Clients, Events: max(w.batch, 1)}
	ops.Prepare = func(client int) error {
		batches[client] = newEnrolments(ops.Events, w.random)
		return nil
	}
	ops.Do = func(ctx context.Context, client int) error { return w.Do(ctx, events, batches[client]) }
	ops.Check = func(ctx context.Context, n int64) error {
		after, err := events.Head(ctx)
		if by := uint64(n) * uint64(ops.Events); err == nil && after-before != by {
			err = fmt.Errorf("%w: head %d, was %d before %d events", bench.ErrMismatch, after, before, by)
		}
		return err
	}
	return ops, nil
}

// Run records the latency of each append.
func (w Writes) Run(ctx context.Context, events event.Store, loop pace.Config) (res bench.Result, err error) {
	ops, err := w.Operations(ctx, events)
	if err != nil {
		return res, err
	}
	return ops.Run(ctx, loop)
}

// newStudent numbers students, so that each new student of this process has a
// different tag.
var newStudent atomic.Uint64

// newEnrolments generates enrolments of new students in existing courses. It
// formats by hand, because time spent here delays the client's next append.
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

// Append appends without a condition.
func Append(ctx context.Context, evs event.Store, batch []event.Event) error {
	_, err := evs.Append(ctx, batch, nil)
	return err
}

// AppendIfNew appends on the condition that the first student is not enrolled.
func AppendIfNew(ctx context.Context, evs event.Store, batch []event.Event) error {
	_, err := evs.Append(ctx, batch, event.Unless(event.Typed(enrolled, batch[0].Tags[0])))
	return err
}

// Decide reads whether the first student is enrolled, and appends under the
// condition that this read returns.
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
