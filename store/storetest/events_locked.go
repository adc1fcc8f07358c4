package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// runEventLocked counts the rows that appends read while they hold the lock.
var runEventLocked = parts[Harness]{
	{"conditions", lockedConditions},
	{"views", lockedViews},
	{"repetition", lockedRepetition},
}.run

// lockedRows is small, so that few events make a condition costly.
const lockedRows = 8

// halves returns events with alternating tags. To find an event with both tags,
// all postings of one of them are read.
func halves() []event.Event {
	events := make([]event.Event, 5000)
	for i := range events {
		events[i] = ev("Half", "", fmt.Sprintf("half:%d", i%2))
	}
	return events
}

// both returns the costly condition.
func both() *event.Condition {
	return event.Unless(event.Tagged(tagList([]string{"half:0", "half:1"})...))
}

// lockedConditions: a costly condition reads few rows of postings under the
// lock, whatever its outcome, also if many are checked at once.
func lockedConditions(t *testing.T, h Harness) {
	s, w := h.watchedEvents(t, store.EventOptions{LockedRows: lockedRows})
	s.add(t, halves()...)
	append1 := func() error {
		_, err := s.Append(soon(t), []event.Event{ev("Guarded", "")}, both())
		return err
	}
	w.reset(nil)
	require.NoError(t, append1())
	require.LessOrEqual(t, w.postings.Load(), int64(2*lockedRows), "in two groups")

	s.add(t, ev("Whole", "", "half:0", "half:1"))
	s.add(t, halves()[:200]...) // writes the postings of the earlier events
	w.reset(nil)
	require.ErrorIs(t, append1(), store.ErrConflict)
	require.LessOrEqual(t, w.postings.Load(), int64(lockedRows))

	release := held(t, s)
	defer release()
	const n = 50
	w.reset(nil)
	before := w.begun.Load()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if err := append1(); !errors.Is(err, store.ErrConflict) {
				t.Error(err)
			}
		})
	}
	release()
	wait(t, &wg)
	const each = 32 * lockedRows // of a group
	require.LessOrEqual(t, w.postings.Load(), int64(n*lockedRows))
	require.LessOrEqual(t, w.postings.Load(), each*(w.begun.Load()-before))
}

// lockedViews: a caller that holds every view can append under a costly
// condition.
func lockedViews(t *testing.T, h Harness) {
	s := h.openEvents(t, withParams(t, h.quickURL(t), "readers", "1"), store.EventOptions{LockedRows: 1})
	s.add(t, halves()[:500]...)
	view := call(t, s.db.Engine().Snapshot)
	must(s.Append(t.Context(), []event.Event{ev("Guarded", "")}, both()))(t)
	require.NoError(t, view.Close())
}

// lockedRepetition: a large append that is repeated is compared without the
// lock.
func lockedRepetition(t *testing.T, h Harness) {
	s, w := h.watchedEvents(t, store.EventOptions{IndexEvery: 1})
	batch := make([]event.Event, 20)
	for i := range batch {
		batch[i] = ev("Large", strings.Repeat("x", 100_000))
		batch[i].ID = idOf(i)
	}
	positions := s.add(t, batch...)
	w.reset(nil)
	require.Equal(t, positions, s.add(t, batch...))
	require.Zero(t, w.events.Load())

	batch[7].Data = []byte("other")
	refuses(t, event.ErrDuplicate)(s.Append(t.Context(), batch, nil))
	require.Zero(t, w.events.Load())
}
