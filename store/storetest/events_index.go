package storetest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// runEventIndex checks that an event is found whatever transactions come between its append
// and that of its postings. Each way into a store with more events without postings than
// IndexEvery is a case, and each transaction that writes no event.
func runEventIndex(t *testing.T, h Harness) {
	ways := map[string]func(*testing.T, eventStream) string{
		"reopened": func(t *testing.T, s eventStream) string { require.NoError(t, s.db.Close()); return s.url },
		"restored": func(t *testing.T, s eventStream) string { return h.restored(t, s.db) },
	}
	moves := map[string]func(t *testing.T, s eventStream){
		"checkpoint": func(t *testing.T, s eventStream) {
			_, err := s.Advance(t.Context(), store.EventCheckpoint{Consumer: "a", To: 1}, nil, nil)
			require.NoError(t, err)
		},
		"refused checkpoint": func(t *testing.T, s eventStream) {
			_, err := s.Advance(t.Context(), store.EventCheckpoint{Consumer: "a", From: 7, To: 8}, nil, nil)
			require.ErrorIs(t, err, store.ErrCheckpoint)
		},
		"refused append": func(t *testing.T, s eventStream) {
			_, err := s.Append(t.Context(), []store.Event{ev("B", "")}, event.Unless(event.Of("A")))
			require.ErrorIs(t, err, store.ErrConflict)
		},
		"truncation": func(t *testing.T, s eventStream) { require.NoError(t, s.Truncate(t.Context(), 2, nil)) },
		"nothing":    func(*testing.T, eventStream) {},
	}
	for name, way := range ways {
		for between, move := range moves {
			t.Run(name+", "+between, func(t *testing.T) { findAll(t, h, way, move) })
		}
	}
	t.Run("failed", func(t *testing.T) { indexAfterFailure(t, h) })
}

// restored returns the URL of a new database, restored from a backup of one.
func (h Harness) restored(t *testing.T, db *store.DB) string {
	t.Helper()
	var file bytes.Buffer
	_, err := db.Backup(t.Context(), &file, nil)
	require.NoError(t, err)
	to := h.quickURL(t)
	other := mustOpen(t, to, nil)
	_, err = other.Restore(t.Context(), &file, nil, nil)
	require.NoError(t, err)
	require.NoError(t, other.Close())
	return to
}

// findAll: a store is opened with more events without postings than its IndexEvery; then
// come a transaction without events and a few appends.
func findAll(t *testing.T, h Harness, way func(*testing.T, eventStream) string, move func(*testing.T, eventStream)) {
	tag := "k:1"
	s := h.openEvents(t, h.quickURL(t), store.EventOptions{IndexEvery: 1000})
	for n := range 30 {
		e := ev("A", fmt.Sprint(n), tag)
		e.ID = idOf(n)
		s.add(t, e)
	}
	s = h.openEvents(t, way(t, s), store.EventOptions{IndexEvery: 8})
	conflict := func(n int) {
		t.Helper()
		_, err := s.Append(t.Context(), []store.Event{ev("B", "lost")}, event.Unless(anyOf(item("", tag))))
		require.ErrorIs(t, err, store.ErrConflict, "after %d appends", n)
	}
	move(t, s)
	for n := range 10 {
		conflict(n)
		s.add(t, ev("A", fmt.Sprint(30+n), tag))
	}
	conflict(10)
	require.Len(t, s.read(t, anyOf(item("", tag)), &store.EventReadOptions{From: 2}), 39)
	known := ev("A", "5", tag)
	known.ID = idOf(5)
	require.Equal(t, []uint64{6}, s.add(t, known), "a repetition")
	report := checkOf(t, s.db)
	require.NoError(t, report.Err())
}

// indexAfterFailure: a transaction that fails leaves nothing behind that the next one
// stores or judges by.
func indexAfterFailure(t *testing.T, h Harness) {
	s := h.openEvents(t, wrapped(t, h.quickURL(t), "broken", breakable), store.EventOptions{IndexEvery: 3})
	var want []string
	for n := range 12 {
		for _, at := range []string{"insert", "commit"} {
			breaker(s.db.Engine()).fail(at)
			_, err := s.Append(t.Context(), []store.Event{ev("A", "lost", "k:1")}, nil)
			require.ErrorIs(t, err, errBroken)
			breaker(s.db.Engine()).fail("")
			_, err = s.Append(t.Context(), []store.Event{ev("A", fmt.Sprint(n), "k:1")}, &store.Condition{FailIfEventsMatch: event.All(), After: uint64(len(want))})
			require.NoError(t, err)
			want = append(want, fmt.Sprint(n))
		}
	}
	var got []string
	for _, e := range s.read(t, anyOf(item("", "k:1")), nil) {
		got = append(got, string(e.Data))
	}
	require.Equal(t, want, got)
	report := checkOf(t, s.db)
	require.NoError(t, report.Err())
}
