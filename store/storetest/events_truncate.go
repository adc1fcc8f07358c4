package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

func runEventTruncate(t *testing.T, h Harness) {
	t.Run("answers", func(t *testing.T) { truncateAnswers(t, h) })
	t.Run("readable first", func(t *testing.T) { truncateReadable(t, h) })
	t.Run("steps", func(t *testing.T) { truncateSteps(t, h) })
}

// truncateAnswers: what is truncated cannot be read, and everything else is as it was.
func truncateAnswers(t *testing.T, h Harness) {
	s := h.indexedEvents(t)
	var given []store.Event
	for i := range 10 {
		e := ev("T"+fmt.Sprint(i%2), strings.Repeat(fmt.Sprint(i), 100), "n:"+fmt.Sprint(i), "all:1")
		if e.Metadata = []byte("m"); i%3 != 0 {
			e.ID = idOf(i)
		}
		given = append(given, e)
		s.add(t, e)
	}
	sum := event.NewProjection(event.All(), 0, func(n int, e *store.SequencedEvent) int { return n + len(e.Data) })
	whole, err := s.Project(t.Context(), sum)
	require.NoError(t, err)
	before := s.all(t)
	horizon, err := s.Horizon(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, horizon)
	require.ErrorIs(t, s.Truncate(t.Context(), 12, nil), store.ErrInvalid, "beyond the end")
	require.NoError(t, s.Truncate(t.Context(), 9, nil)) // postings reach up to 8
	require.NoError(t, s.Truncate(t.Context(), 5, nil), "it is already")
	horizon, err = s.Horizon(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 9, horizon)
	other := s.another(t, h)
	truncatedReads(t, other, before)

	for i := range given {
		_, err := other.Append(t.Context(), []store.Event{ev("X", "")}, &store.Condition{FailIfEventsMatch: anyOf(item("T"+fmt.Sprint(i%2), "n:"+fmt.Sprint(i)))})
		var conflict *store.ConflictError
		require.ErrorAs(t, err, &conflict)
		require.EqualValues(t, i+1, conflict.Position)
		if given[i].ID.IsZero() {
			continue
		}
		positions, err := other.Append(t.Context(), given[i:i+1], whole)
		require.NoError(t, err, "a repetition is known")
		require.Equal(t, []uint64{uint64(i + 1)}, positions)
		for name, change := range map[string]func(e *store.Event){
			"data": func(e *store.Event) { e.Data = nil }, "metadata": func(e *store.Event) { e.Metadata = nil },
			"both": func(e *store.Event) { e.Data, e.Metadata = append(e.Data, 'm'), nil },
			"type": func(e *store.Event) { e.Type = "U" }, "tags": func(e *store.Event) { e.Tags = e.Tags[:1] },
		} {
			e := given[i]
			change(&e)
			_, err = other.Append(t.Context(), []store.Event{e}, nil)
			require.ErrorIs(t, err, store.ErrDuplicate, "event %d, other %s", i+1, name)
		}
	}
	_, err = other.Append(t.Context(), []store.Event{ev("X", strings.Repeat("x", 50))}, whole)
	require.NoError(t, err)
	_, err = other.Project(t.Context(), sum)
	require.NoError(t, err, "from a state that has what is truncated")
	require.Equal(t, 1050, sum.State)
	truncatedIsSound(t, h, s)
}

// truncatedReads compares reads of a store whose first eight events of ten are truncated.
func truncatedReads(t *testing.T, s eventStream, before []store.SequencedEvent) {
	fails := func(q store.EventQuery, opts *store.EventReadOptions, at uint64, readable ...uint64) {
		t.Helper()
		list, err := collect(s.Read(t.Context(), q, opts))
		require.Equal(t, readable, positionsOf(list), "what can be read comes before the error")
		var gone *store.TruncatedError
		require.ErrorAs(t, err, &gone)
		require.ErrorIs(t, err, store.ErrTruncated)
		require.Equal(t, store.TruncatedError{Position: at, Before: 9}, *gone)
		require.ErrorContains(t, err, "before 9: read from there on")
	}
	fails(event.All(), nil, 1)
	fails(event.Of("T1"), nil, 2)
	fails(anyOf(item("", "n:4")), nil, 5)
	fails(event.All(), &store.EventReadOptions{From: 8}, 8)
	fails(event.All(), &store.EventReadOptions{Backwards: true, Limit: 3}, 8, 10, 9)
	fails(event.All(), &store.EventReadOptions{Backwards: true}, 8, 10, 9)
	fails(event.Of("T1"), &store.EventReadOptions{Backwards: true}, 8, 10)
	fails(anyOf(item("", "n:1"), item("", "n:9"), item("", "n:8")), &store.EventReadOptions{Backwards: true, OnlyLast: true}, 2, 10, 9)
	require.Equal(t, before[8:], s.read(t, event.All(), &store.EventReadOptions{From: 9}))
	require.Equal(t, before[8:], s.read(t, anyOf(item("", "all:1")), &store.EventReadOptions{From: 9}))
	require.Equal(t, before[9:], s.read(t, event.Of("T1"), &store.EventReadOptions{Backwards: true, Limit: 1}))
	require.Empty(t, s.read(t, event.Of("T3"), nil), "what matches nothing yields nothing")
	for _, err := range s.Subscribe(t.Context(), event.All(), 0) {
		require.ErrorIs(t, err, store.ErrTruncated)
	}
	summary := summaryOf(t, s)
	require.EqualValues(t, 10, summary.Events)
}

// truncatedIsSound: a check finds nothing, what finds events is made anew from truncated
// ones, and a backup has them.
func truncatedIsSound(t *testing.T, h Harness, s eventStream) {
	report := checkOf(t, s.db)
	require.NoError(t, report.Err())
	var file bytes.Buffer
	_, err := s.db.Backup(t.Context(), &file, nil)
	require.NoError(t, err)
	restored := h.open(t, h.quickURL(t), nil)
	_, err = restored.Restore(t.Context(), &file, nil, nil)
	require.NoError(t, err)
	_, err = restored.Repair(t.Context(), store.CheckOptions{})
	require.NoError(t, err)
	evs := eventsOf(t, restored, store.EventOptions{})
	horizon, err := evs.Horizon(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 9, horizon)
	_, err = evs.Append(t.Context(), []store.Event{ev("X", "")}, event.Unless(anyOf(item("", "n:4"))))
	require.ErrorIs(t, err, store.ErrConflict)
	report = checkOf(t, restored)
	require.NoError(t, report.Err())
}

// truncateReadable: a read that comes to a truncated event has yielded what is before it,
// wherever the store is.
func truncateReadable(t *testing.T, h Harness) {
	s := h.indexedEvents(t)
	for i := range 17 {
		s.add(t, ev("T", fmt.Sprint(i), "k:1"))
	}
	require.NoError(t, s.Truncate(t.Context(), 2, nil))
	for name, q := range map[string]store.EventQuery{"all": event.All(), "type": event.Of("T"), "tag": anyOf(item("", "k:1"))} {
		list, err := collect(s.Read(t.Context(), q, &store.EventReadOptions{Backwards: true, Limit: 17}))
		require.ErrorIs(t, err, store.ErrTruncated, name)
		require.Len(t, list, 16, name)
		require.EqualValues(t, 2, list[15].Position, name)
		require.Len(t, s.read(t, q, &store.EventReadOptions{Backwards: true, Limit: 16}), 16)
	}
}

// truncateSteps: it goes on in steps, beside appends, and where it was interrupted.
func truncateSteps(t *testing.T, h Harness) {
	s := h.events(t)
	many := make([]store.Event, 3000)
	for i := range many {
		many[i] = ev("A", "data", "n:"+fmt.Sprint(i))
	}
	s.add(t, many...)
	ctx, cancel := context.WithCancel(t.Context())
	var reached []uint64
	err := s.Truncate(ctx, 2901, func(at uint64) { reached = append(reached, at); cancel() })
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []uint64{1025}, reached)
	require.Len(t, s.read(t, event.All(), &store.EventReadOptions{From: 1025}), 3000-1024)
	reached = nil
	require.NoError(t, s.Truncate(t.Context(), 2901, func(at uint64) {
		reached = append(reached, at)
		s.add(t, ev("B", ""))
	}))
	require.Equal(t, []uint64{2049, 2901}, reached)
	require.Len(t, s.read(t, event.All(), &store.EventReadOptions{From: 2901}), 102)
	_, err = collect(s.Read(t.Context(), event.All(), &store.EventReadOptions{From: 2900}))
	require.True(t, errors.Is(err, store.ErrTruncated))
}
