package crashtest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/varvedb/varve/store/event"
)

// compare compares the store with the journal.
func (w *eventWorker) compare(ctx context.Context) (r record, found, lost int, err error) {
	all, err := w.readAll(ctx)
	if err != nil {
		return r, 0, 0, err
	}
	if err := w.wereRead(all); err != nil {
		return r, 0, 0, err
	}
	stored, err := w.group(all)
	if err != nil {
		return r, 0, 0, err
	}
	if r, err = w.outcomes(stored); err != nil {
		return r, 0, 0, err
	}
	if err := w.claims(stored); err != nil {
		return r, 0, 0, err
	}
	if err := w.indexes(ctx, all); err != nil {
		return r, 0, 0, err
	}
	w.stored = stored
	return r, len(r.Found), len(r.Lost), nil
}

// resume records the outcome of the appends that a crash left open. It repeats
// the appends that were found without an acknowledgement, as a client without
// an answer would: because of their IDs it must get the old positions.
func (w *eventWorker) resume(ctx context.Context, r record) error {
	for _, name := range r.Found {
		a := w.ledger.appends[name]
		if a.events[0].ID.IsZero() {
			continue
		}
		positions, err := w.evs.Append(ctx, a.events, a.cond)
		if err != nil {
			return violation("append %q is there; appending it again: %v", name, err)
		}
		if !slices.Equal(positions, w.stored[name]) {
			return violation("append %q is at %v; appending it again gave %v", name, w.stored[name], positions)
		}
	}
	w.ledger.resume(r)
	if err := w.journal.acknowledge(r); err != nil {
		return err
	}
	for _, name := range r.Found {
		found := record{Ack: true, Name: name, Positions: w.stored[name]}
		w.ledger.acknowledge(found)
		if err := w.journal.acknowledge(found); err != nil {
			return err
		}
	}
	return nil
}

// readAll reads all events and checks positions and times.
func (w *eventWorker) readAll(ctx context.Context) (all []event.Sequenced, err error) {
	var last uint64
	var at time.Time
	for e, err := range w.evs.Read(ctx, event.All(), nil) {
		if err != nil {
			return nil, err
		}
		if e.Position <= last || e.Time.Before(at) {
			return nil, violation("position %d at %s comes after %d at %s", e.Position, e.Time, last, at)
		}
		if n := len(all); w.known != nil && (n >= len(w.known) || !e.Time.Equal(w.known[n].Time)) {
			return nil, violation("event %d is of %s, which it was not", e.Position, e.Time)
		}
		last, at = e.Position, e.Time
		all = append(all, e)
	}
	head, err := w.evs.Head(ctx)
	if err == nil && head != last {
		err = violation("the head is %d, the last event is %d", head, last)
	}
	return all, err
}

// wereRead checks that all events that a reader has seen are still there,
// acknowledged or not.
func (w *eventWorker) wereRead(all []event.Sequenced) error {
	if w.Lossy {
		return nil
	}
	at := map[uint64]string{}
	for i := range all {
		at[all[i].Position] = appendOf(&all[i].Event)
	}
	for position, name := range w.ledger.reads {
		if at[position] != name {
			return violation("event %d was read, of append %q, and is lost: now it is of %q", position, name, at[position])
		}
	}
	return nil
}

// group returns the positions of each stored append. Each append must be known
// and complete, at positions without a gap.
func (w *eventWorker) group(all []event.Sequenced) (map[string][]uint64, error) {
	stored := map[string][]uint64{}
	for i := range all {
		e := &all[i]
		name := appendOf(&e.Event)
		a, n := w.ledger.appends[name], len(stored[name])
		switch {
		case a == nil:
			return nil, violation("event %d is of append %q, which was never announced or was not there before", e.Position, name)
		case n >= len(a.events) || !a.events[n].Equal(&e.Event):
			return nil, violation("event %d differs from event %d of append %q", e.Position, n, name)
		case n > 0 && e.Position != stored[name][n-1]+1:
			return nil, violation("append %q is torn apart at position %d", name, e.Position)
		}
		stored[name] = append(stored[name], e.Position)
	}
	for name, positions := range stored {
		if want := len(w.ledger.appends[name].events); len(positions) != want {
			return nil, violation("append %q has %d of its %d events", name, len(positions), want)
		}
	}
	return stored, nil
}

// outcomes decides for each append whether it is stored. Acknowledged appends
// must be, at their positions, and refused ones must not. If the store may lose
// appends, only the last ones may be missing.
func (w *eventWorker) outcomes(stored map[string][]uint64) (record, error) {
	r := record{Resumed: true}
	var last, lost uint64 // highest position kept, lowest position lost
	for _, name := range w.ledger.order {
		a, positions := w.ledger.appends[name], stored[name]
		switch {
		case positions == nil && (!a.acked || a.refused):
		case a.refused:
			return r, violation("append %q was refused, but its events are there", name)
		case !a.acked:
			r.Found = append(r.Found, name)
		case positions == nil:
			if !w.Lossy {
				return r, violation("append %q was acknowledged at %v and is lost", name, a.positions)
			}
			r.Lost = append(r.Lost, name)
			if len(a.positions) > 0 && (lost == 0 || a.positions[0] < lost) {
				lost = a.positions[0]
			}
		case len(a.positions) > 0 && !slices.Equal(a.positions, positions):
			return r, violation("append %q was acknowledged at %v and is at %v", name, a.positions, positions)
		default:
			last = max(last, positions[len(positions)-1])
		}
	}
	if lost > 0 && last > lost {
		return r, violation("the append at position %d is lost, but one at %d is there", lost, last)
	}
	return r, nil
}

// claims checks that no slot was claimed twice, and that an append was refused
// only for a slot that another append has.
func (w *eventWorker) claims(stored map[string][]uint64) error {
	owner := map[event.Tag]string{}
	for name := range stored {
		claim := w.ledger.appends[name].claim
		if claim == nil {
			continue
		}
		if other := owner[*claim]; other != "" {
			return violation("%s is claimed by append %q and by %q", claim, other, name)
		}
		owner[*claim] = name
	}
	if w.Lossy {
		return nil // the owner may be among the lost
	}
	for _, name := range w.ledger.order {
		if a := w.ledger.appends[name]; a.refused && owner[*a.claim] == "" {
			return violation("append %q was refused for %s, which no append has claimed", name, a.claim)
		}
	}
	return nil
}

// indexes compares the results of queries with a scan of all events.
func (w *eventWorker) indexes(ctx context.Context, all []event.Sequenced) error {
	queries := []event.Query{
		event.Of(eventTypes[0]), event.Of(eventTypes[1:]...),
		event.Typed(eventTypes[2], event.NewTag(tagGroup, "1")),
		event.Tagged(event.NewTag(tagGroup, "0")).Or(event.Typed(eventTypes[0], event.NewTag(tagGroup, "2"))),
	}
	for i := range eventGroups {
		queries = append(queries, event.Tagged(event.NewTag(tagGroup, fmt.Sprint(i))))
	}
	for range min(len(all), 8) {
		queries = append(queries, event.Tagged(all[w.rng.IntN(len(all))].Tags...))
	}
	for _, q := range queries {
		backwards := w.rng.IntN(2) == 0
		var want []uint64
		for i := range all {
			if q.Matches(&all[i].Event) {
				want = append(want, all[i].Position)
			}
		}
		if backwards {
			slices.Reverse(want)
		}
		var got []uint64
		for e, err := range w.evs.Read(ctx, q, &event.ReadOptions{Backwards: backwards}) {
			if err != nil {
				return err
			}
			got = append(got, e.Position)
		}
		if !slices.Equal(want, got) {
			return violation("query %+v selects %d events, should be %d", q, len(got), len(want))
		}
	}
	return nil
}
