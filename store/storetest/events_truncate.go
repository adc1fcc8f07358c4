package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

func runEventTruncate(t *testing.T, h Harness) {
	t.Run("readable first", func(t *testing.T) { truncateReadable(t, h) })
	t.Run("steps", func(t *testing.T) { truncateSteps(t, h) })
}

// truncateReadable: a read that comes to a truncated event has yielded what is before it,
// wherever the store is.
func truncateReadable(t *testing.T, h Harness) {
	s := h.indexedEvents(t)
	for i := range 17 {
		s.add(t, ev("T", fmt.Sprint(i), "k:1"))
	}
	require.ErrorIs(t, s.Truncate(t.Context(), 19, nil), store.ErrInvalid, "beyond the end")
	require.NoError(t, s.Truncate(t.Context(), 2, nil))
	for name, q := range map[string]event.Query{"all": event.All(), "type": event.Of("T"), "tag": anyOf(item("", "k:1"))} {
		list, err := collect(s.Read(t.Context(), q, &event.ReadOptions{Backwards: true, Limit: 17}))
		require.ErrorIs(t, err, event.ErrTruncated, name)
		require.Len(t, list, 16, name)
		require.EqualValues(t, 2, list[15].Position, name)
		require.Len(t, s.read(t, q, &event.ReadOptions{Backwards: true, Limit: 16}), 16)
	}
	for _, err := range s.Subscribe(t.Context(), event.All(), 0) {
		require.ErrorIs(t, err, event.ErrTruncated)
	}
}

// truncateSteps: it goes on in steps, beside appends, and where it was interrupted.
func truncateSteps(t *testing.T, h Harness) {
	s := h.events(t)
	many := make([]event.Event, 3000)
	for i := range many {
		many[i] = ev("A", "data", "n:"+fmt.Sprint(i))
	}
	s.add(t, many...)
	ctx, cancel := context.WithCancel(t.Context())
	var reached []uint64
	err := s.Truncate(ctx, 2901, func(at uint64) { reached = append(reached, at); cancel() })
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []uint64{1025}, reached)
	require.Len(t, s.read(t, event.All(), &event.ReadOptions{From: 1025}), 3000-1024)
	reached = nil
	require.NoError(t, s.Truncate(t.Context(), 2901, func(at uint64) {
		reached = append(reached, at)
		s.add(t, ev("B", ""))
	}))
	require.Equal(t, []uint64{2049, 2901}, reached)
	require.Len(t, s.read(t, event.All(), &event.ReadOptions{From: 2901}), 102)
	_, err = collect(s.Read(t.Context(), event.All(), &event.ReadOptions{From: 2900}))
	require.True(t, errors.Is(err, event.ErrTruncated))
}
