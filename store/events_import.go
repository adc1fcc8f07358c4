package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// EventImportOptions configure an import of events.
type EventImportOptions struct {
	// Renumber gives the events the next free positions instead of their own.
	Renumber bool

	// Batch is the number of events in one transaction. Zero means 4,096.
	Batch int

	// Progress, unless nil, is called after each transaction.
	Progress func(EventsImported)
}

// EventsImported counts the work of an import.
type EventsImported struct {
	Events  int    `json:"events"`  // that were stored
	Skipped int    `json:"skipped"` // that the store had before
	Head    uint64 `json:"head"`    // the last position of the store
}

// Import appends events of another store with their times. An event without a
// time gets the current one. The events are stored in transactions of bounded
// size, which no other append shares.
//
// Positions are kept: the events must continue the store without a gap. Events
// that the store has already are skipped, so that an interrupted import can be
// repeated; the last skipped event is compared with the stored one, and must be
// the same. An event without a position takes the next one, as all events do
// with Renumber.
//
// It fails with ErrHistory when the events do not continue the store, with
// ErrInvalid when a time is before the previous event's or more than an hour
// ahead of the clock, with the error of the source, and as Append does. The
// events that were imported by then stay.
func (e *Events) Import(ctx context.Context, events iter.Seq2[event.Sequenced, error], opts *EventImportOptions) (_ EventsImported, err error) {
	defer wrap(&err, "import events")
	in := importing{events: e}
	if opts != nil {
		in.opts = *opts
	}
	in.opts.Batch = cmp.Or(in.opts.Batch, groupEvents)
	err = in.run(ctx, events)
	return in.done, err
}

// importing is a running import.
type importing struct {
	events *Events
	opts   EventImportOptions
	done   EventsImported

	batch   []event.Sequenced
	bytes   int
	skipped *event.Sequenced // the last one
}

func (in *importing) run(ctx context.Context, events iter.Seq2[event.Sequenced, error]) (err error) {
	if in.opts.Batch < 0 {
		return fmt.Errorf("%w: a batch of %d events", ErrInvalid, in.opts.Batch)
	}
	if in.done.Head, err = in.events.Head(ctx); err != nil {
		return err
	}
	for ev, err := range events {
		if err != nil {
			return errors.Join(err, in.flush(ctx))
		}
		if err := in.take(ctx, ev); err != nil {
			return err
		}
	}
	if err := in.checkSkipped(ctx); err != nil {
		return err
	}
	return in.flush(ctx)
}

// take adds an event to the batch, or skips it.
func (in *importing) take(ctx context.Context, ev event.Sequenced) error {
	next := in.done.Head + uint64(len(in.batch)) + 1
	if !in.opts.Renumber && ev.Position > 0 {
		if ev.Position < next && len(in.batch) == 0 {
			in.skipped = &ev
			in.done.Skipped++
			return nil
		}
		if ev.Position != next {
			return fmt.Errorf("%w: event %d comes where the store goes on with %d; import what is between them first, or number the events anew", ErrHistory, ev.Position, next)
		}
	}
	if err := in.checkSkipped(ctx); err != nil {
		return err
	}
	in.batch = append(in.batch, ev)
	if in.bytes += len(ev.Data) + len(ev.Metadata); len(in.batch) >= in.opts.Batch || in.bytes >= groupBytes {
		return in.flush(ctx)
	}
	return nil
}

// checkSkipped compares the last skipped event with the stored one.
func (in *importing) checkSkipped(ctx context.Context) error {
	want := in.skipped
	if in.skipped = nil; want == nil {
		return nil
	}
	for has, err := range in.events.Read(ctx, event.All(), &event.ReadOptions{From: want.Position, Limit: 1}) {
		switch {
		case err != nil:
			return err
		case has.Position != want.Position || !has.Equal(&want.Event) || !want.Time.IsZero() && !has.Time.Equal(want.Time):
			return fmt.Errorf("%w: the store has another event %d", ErrHistory, want.Position)
		}
	}
	return nil
}

// flush stores the batch.
func (in *importing) flush(ctx context.Context) error {
	if len(in.batch) == 0 {
		return nil
	}
	positions, known, err := in.events.appendTimed(ctx, in.batch, in.done.Head, in.opts.Renumber)
	switch {
	case err != nil:
		return err
	case known && !in.opts.Renumber:
		return fmt.Errorf("%w: event %d has an ID that event %d of the store has", event.ErrDuplicate, in.done.Head+1, positions[0])
	case known:
		in.done.Skipped += len(in.batch)
	default:
		in.done.Events += len(in.batch)
		in.done.Head = positions[len(positions)-1]
	}
	in.batch, in.bytes = in.batch[:0], 0
	if in.opts.Progress != nil {
		in.opts.Progress(in.done)
	}
	return nil
}

// AppendTimed appends events with their times, all or none, and returns their
// new positions; positions in the events are ignored. An event without a time
// gets the current one. It fails with ErrInvalid when a time is before the
// previous event's or more than an hour ahead of the clock, and otherwise as
// Append without a condition.
func (e *Events) AppendTimed(ctx context.Context, events []event.Sequenced) (positions []uint64, err error) {
	defer wrap(&err, "append")
	positions, _, err = e.appendTimed(ctx, events, 0, true)
	return positions, err
}

// appendTimed appends events with given times in a transaction of their own,
// after the given head, or at any position. Known reports that their IDs were
// stored before.
func (e *Events) appendTimed(ctx context.Context, timed []event.Sequenced, head uint64, anywhere bool) (positions []uint64, known bool, err error) {
	events := make([]event.Event, len(timed))
	for i := range timed {
		events[i] = timed[i].Event
	}
	if err := event.Validate(events); err != nil {
		return nil, false, err
	}
	r, err := newAppendRequest(ctx, events, nil)
	if err != nil {
		return nil, false, err
	}
	r.exclusive = true
	r.within = func(_ context.Context, _ driver.Tx, stored bool) (verdict, _ error) {
		if known = stored; known {
			return nil, nil
		}
		if has := e.tail.Head(); has != head && !anywhere {
			return fmt.Errorf("%w: the store ends with event %d and not with %d any more: nobody else may append meanwhile", ErrHistory, has, head), nil
		}
		r.now, verdict = stamp(r.records, timed, e.tail.Micros(), e.opts.Now().UnixMicro())
		return verdict, nil
	}
	positions, err = e.append(ctx, r)
	return positions, known, err
}

// maxAhead is how far the time of an event may be ahead of the clock. Times do
// not decrease, so every later event has at least this time until the clock has
// reached it.
const maxAhead = time.Hour

// stamp sets the times of records, in microseconds: the given time, or now. It
// returns the last one. A time before the previous one is an error.
func stamp(records []eventlog.Record, timed []event.Sequenced, last, now int64) (int64, error) {
	for i := range timed {
		t, at := timed[i].Time, max(last, now)
		if !t.IsZero() {
			at = t.UnixMicro()
		}
		switch {
		case t.After(time.UnixMicro(max(last, now+maxAhead.Microseconds()))):
			return 0, fmt.Errorf("%w: an event of %s, more than %s ahead of the clock: all later ones would have its time; correct it, or give no times, so that it is of now",
				ErrInvalid, t.UTC().Format(time.RFC3339Nano), maxAhead)
		case at <= 0:
			return 0, fmt.Errorf("%w: an event of %s, which is not after 1970, where times begin; correct it, or give no times, so that it is of now",
				ErrInvalid, t.UTC().Format(time.RFC3339Nano))
		case at < last:
			return 0, fmt.Errorf("%w: an event of %s behind one of %s: times do not fall; import it into a store of its own, or give no times, so that it is of now",
				ErrInvalid, t.UTC().Format(time.RFC3339Nano), time.UnixMicro(last).UTC().Format(time.RFC3339Nano))
		}
		records[i].Micros, last = at, at
	}
	return last, nil
}
