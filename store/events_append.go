package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// Append adds events at consecutive positions, all or none, unless an event
// matches the condition; nil is no condition. It returns their positions once
// they are durable, as the durability level promises.
//
// Appends from several goroutines share commits: each is judged by its own
// condition, against everything committed and against the appends before it in
// the same commit. When many wait, further ones wait for a place in the queue.
// When ctx is done before the append's commit has begun, it leaves no trace;
// after that it takes its course, and Append tells the outcome.
//
// Repeating an append whose events all have IDs that are stored already, with the
// same content, returns the old positions, whatever the condition. The events are
// not changed and not kept after Append returns.
//
// It fails with ErrConflict (an *event.ConflictError) by the condition, with event.ErrDuplicate
// when some of the IDs are stored or belong to other content, with ErrInvalid, and
// as driver.Engine.Begin and driver.Tx.Commit do.
func (e *Events) Append(ctx context.Context, events []event.Event, cond *event.Condition) ([]uint64, error) {
	r, err := validRequest(events, cond)
	if err == nil {
		r.cancelled = ctx.Err
		err = e.append(ctx, r)
	}
	if err != nil {
		return nil, fmt.Errorf("append: %w", err)
	}
	return r.positions, nil
}

// append submits a request to the writer, until the writer no longer puts it back
// to be judged apart.
func (e *Events) append(ctx context.Context, r *appendRequest) error {
	if r.ids > 0 && r.bytes > maxCompared {
		if err := e.compareApart(ctx, r); err != nil {
			return err
		}
	}
	for {
		err := e.submit(ctx, r)
		if !errors.Is(err, errPutBack) {
			return err
		}
		if err := e.judgeApart(ctx, r); err != nil {
			return err
		}
	}
}

func (e *Events) submit(ctx context.Context, r *appendRequest) error {
	leader, err := e.commit.enter(ctx, r)
	if err != nil {
		return err
	}
	defer e.commit.leave()
	if !leader {
		if leader, err = e.commit.await(ctx, r); err != nil {
			return err
		}
	}
	if leader {
		e.lead(ctx, r)
	}
	return r.err
}

// appendRequest is one append on its way.
type appendRequest struct {
	records []eventlog.Record
	bytes   int
	ids     int // events with an ID

	guard eventlog.Guard // the condition that remains to be judged; no items: none
	after uint64         // the condition's own
	apart int            // how often it was judged apart

	known map[*event.Event]stored // the stored events of the given IDs, as judged on a view

	// within, unless it is nil, may refuse a request that passes, and writes its
	// rows in other tables. Known reports that the events are stored already.
	within func(ctx context.Context, tx driver.Tx, known bool) (verdict, err error)
	alone  bool  // no other request shares its commit
	now    int64 // the time of its events, if it is alone; zero is the clock's

	cancelled func() error // why the caller has given up; nil if it has not

	wake    chan struct{} // receives when the request has a verdict or leads
	leading bool          // guarded by the queue

	positions []uint64 // the verdict, with err
	err       error
}

func validRequest(events []event.Event, cond *event.Condition) (*appendRequest, error) {
	if err := event.Validate(events); err != nil {
		return nil, err
	}
	return newAppendRequest(events, cond)
}

// newAppendRequest returns the request of events that are valid, or of none.
func newAppendRequest(events []event.Event, cond *event.Condition) (*appendRequest, error) {
	r := &appendRequest{wake: make(chan struct{}, 1)}
	if cond != nil {
		if err := cond.FailIfEventsMatch.Validate(); err != nil {
			return nil, fmt.Errorf("condition: %w", err)
		}
		r.guard = eventlog.Guard{Items: eventlog.Compile(cond.FailIfEventsMatch), After: cond.After}
		r.after = cond.After
	}
	for i := range events {
		r.bytes += len(events[i].Data) + len(events[i].Metadata)
		if !events[i].ID.IsZero() {
			r.ids++
		}
	}
	r.records = eventlog.Prepare(events)
	return r, nil
}

// givenUp reports whether the caller has given up, which is then the verdict.
func (r *appendRequest) givenUp() bool {
	if r.err == nil {
		r.err = r.cancelled()
	}
	return r.err != nil
}
