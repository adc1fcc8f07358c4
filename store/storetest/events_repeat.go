package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// repeatedEvents returns events with IDs and with data of a size.
func repeatedEvents(n, size int) []event.Event {
	list := make([]event.Event, n)
	for i := range list {
		list[i] = ev("M", fmt.Sprintf("%d %0*d", i, size, 0), "k:v")
		list[i].ID = idOf(i)
	}
	return list
}

// runEventRepeatPass tests repetitions of many events.
var runEventRepeatPass = parts[Harness]{
	{"few statements", repeatInFewStatements},
	{"group", repeatInGroup},
}.run

// repeatInFewStatements: a repetition is recognized in fewer statements than it
// has events. If it is cancelled, it ends at the next statement.
func repeatInFewStatements(t *testing.T, h Harness) {
	s, w := h.watchedEvents(t, store.EventOptions{})
	many := repeatedEvents(2000, 20) // compared under the lock
	first := s.add(t, many...)
	tail := s.add(t, ev("After", "")) // without postings
	w.reset(nil)
	require.Equal(t, first, s.add(t, many...))
	all := int(w.queries.Load())
	require.Less(t, all, len(many)/40)

	for n := 1; n <= all; n++ {
		ctx, cancel := context.WithCancel(t.Context())
		w.reset(func(at int) {
			if at == n {
				cancel()
			}
		})
		_, err := s.Append(ctx, many, nil)
		require.ErrorIs(t, err, context.Canceled, "given up at query %d of %d", n, all)
		require.LessOrEqual(t, int(w.queries.Load()), n+2, "queries until a repetition ended that was given up at query %d of %d", n, all)
	}
	w.reset(nil)
	require.Equal(t, first, s.add(t, many...), "as if nobody had tried")
	require.Equal(t, []uint64{tail[0] + 1}, s.add(t, ev("Next", "")))

	many[len(many)-1].Data = []byte("other")
	refuses(t, event.ErrDuplicate, fmt.Sprintf("event %d ", first[len(first)-1]))(s.Append(t.Context(), many, nil))
}

// repeatInGroup: appends, the group's leader among them, are cancelled while
// their group is checked. No other append fails, and the cancelled ones leave
// no trace.
func repeatInGroup(t *testing.T, h Harness) {
	s, w := h.watchedEvents(t, store.EventOptions{})
	many := repeatedEvents(1000, 30) // compared under the lock
	positions := s.add(t, many...)
	for n, last := 1, false; !last; n++ {
		last = giveUpInGroup(t, s, w, n, many, positions)
	}
	require.Len(t, s.read(t, event.Of("GivenUp"), nil), 1, "of the last group, in which nobody gave up")
}

// giveUpInGroup cancels the leader of a group and other appends in it at the
// n-th query of the group. It reports whether the group has fewer queries.
func giveUpInGroup(t *testing.T, s eventStream, w *watch, n int, many []event.Event, positions []uint64) (last bool) {
	head := call(t, s.Head)
	release := held(t, s)
	defer release()
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	w.reset(func(at int) {
		if at == n {
			giveUp()
		}
	})
	again, old := slices.Clone(many[300:]), slices.Clone(positions[300:])
	slices.Reverse(again) // so that events that are looked up with the leader's are read later
	slices.Reverse(old)
	var wg sync.WaitGroup
	call := func(ctx context.Context, events ...event.Event) *appended {
		a := &appended{}
		wg.Go(func() { a.positions, a.err = s.Append(ctx, events, nil) })
		return a
	}
	queue := func(ctx context.Context, events ...event.Event) *appended {
		q := &queuedContext{Context: ctx, waits: make(chan struct{})}
		a := call(q, events...)
		<-q.waits
		return a
	}
	begun := w.begun.Load()
	leader := call(ctx, many...)
	eventually(t, "the leader waits for the writer", func() bool { return w.begun.Load() > begun })
	some := queue(ctx, many[:10]...)
	unique := queue(ctx, ev("GivenUp", ""))
	repeated := queue(soon(t), again...)
	added := queue(soon(t), ev("Added", ""))
	release()
	wait(t, &wg)

	require.Equal(t, &appended{positions: old}, repeated, "given up at query %d", n)
	if ctx.Err() == nil {
		require.NoError(t, leader.err)
		return true
	}
	require.Equal(t, &appended{positions: []uint64{head + 1}}, added, "given up at query %d", n)
	for _, a := range []*appended{leader, some, unique} {
		require.ErrorIs(t, a.err, context.Canceled)
	}
	return false
}

// appended is the outcome of an append.
type appended struct {
	positions []uint64
	err       error
}
