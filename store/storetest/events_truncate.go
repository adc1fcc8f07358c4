package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/event"
	"github.com/varvedb/varve/store/storetest/model"
)

// runEventTruncate: Truncate works in steps, concurrently with appends, and can
// be interrupted and repeated.
func runEventTruncate(t *testing.T, h Harness) {
	s := h.events(t)
	many := make([]event.Event, 3000)
	for i := range many {
		many[i] = ev("A", "data", "n:"+fmt.Sprint(i))
	}
	s.add(t, many...)
	ctx, cancel := context.WithCancel(t.Context())
	var reached []uint64
	err := s.own.Truncate(ctx, 2901, func(at uint64) { reached = append(reached, at); cancel() })
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []uint64{1025}, reached)
	require.Len(t, s.read(t, event.All(), &event.ReadOptions{From: 1025}), 3000-1024)
	reached = nil
	require.NoError(t, s.own.Truncate(t.Context(), 2901, func(at uint64) {
		reached = append(reached, at)
		s.add(t, ev("B", ""))
	}))
	require.Equal(t, []uint64{2049, 2901}, reached)
	require.Len(t, s.read(t, event.All(), &event.ReadOptions{From: 2901}), 102)
	_, err = model.Collect(s.Read(t.Context(), event.All(), &event.ReadOptions{From: 2900}))
	require.True(t, errors.Is(err, event.ErrTruncated))
}
