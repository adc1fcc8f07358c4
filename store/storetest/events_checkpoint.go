package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

var runEventCheckpoint = parts[Harness]{
	{"advance", checkpointAdvance},
	{"group", checkpointGroup},
	{"consume", checkpointConsume},
	{"live", checkpointLive},
	{"consumers of one name", checkpointRivals},
}.run

// checkpointAdvance tests cases that random histories do not reach.
func checkpointAdvance(t *testing.T, h Harness) {
	s := h.events(t)
	other := s.another(t, h)
	advance := func(name string, from, to uint64, events ...event.Event) error {
		_, err := s.Advance(t.Context(), event.Checkpoint{Consumer: name, From: from, To: to}, events, nil)
		return err
	}
	list := call(t, s.own.Checkpoints)
	require.Empty(t, list)
	for range 9 {
		s.add(t, ev("N", ""))
	}
	for _, to := range []uint64{10, math.MaxInt64, math.MaxUint64} {
		require.ErrorContains(t, advance("a", 0, to), "the last event is 9")
	}
	require.ErrorIs(t, advance("a", 1, 8), event.ErrCheckpoint, "one that is not known is at zero")
	require.ErrorIs(t, advance("a", 1, 8), store.ErrConflict)
	require.NoError(t, advance("a", 0, 3))
	require.NoError(t, advance("ä b\n", 0, 1))
	list = call(t, other.own.Checkpoints)
	require.Equal(t, []event.Checkpoint{{Consumer: "a", To: 3}, {Consumer: "ä b\n", To: 1}}, list)
	for _, name := range []string{"", "\x00", "\xff", strings.Repeat("n", 257)} {
		require.ErrorIs(t, advance(name, 0, 1), store.ErrInvalid, "%q", name)
		refuses(t, store.ErrInvalid)(s.Checkpoint(t.Context(), name))
	}
	if s.db != other.db {
		_, err := other.Advance(t.Context(), event.Checkpoint{Consumer: "c", To: 1}, nil, nil)
		require.NoError(t, err, "another process finds the table made")
	}
	known := ev("A", "3")
	known.ID = idOf(1)
	require.NoError(t, advance("k", 0, 5, known))
	require.NoError(t, advance("k", 0, 5, known), "a repetition")
	require.NoError(t, advance("k", 5, 6, known), "events that are stored, and a checkpoint that is not")
	require.ErrorIs(t, advance("k", 0, 7, known), event.ErrCheckpoint)
	require.ErrorIs(t, advance("k", 0, 5, known), event.ErrCheckpoint, "a repetition after the consumer has moved on")
	require.Equal(t, "3", s.names(t, event.Of("A"), nil))
}

// checkpointGroup: several callers move one consumer from the same position at
// once. One of them succeeds.
func checkpointGroup(t *testing.T, h Harness) {
	s := h.events(t)
	errs := make([]error, 12)
	for range errs {
		s.add(t, ev("N", ""))
	}
	release := held(t, s)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			c := event.Checkpoint{Consumer: "c" + fmt.Sprint(i%3), To: uint64(i + 1)}
			_, errs[i] = s.Advance(soon(t), c, []event.Event{ev("A", fmt.Sprint(i))}, nil)
		})
	}
	release()
	wait(t, &wg)
	moved := map[string]int{}
	for i, err := range errs {
		if err == nil {
			moved["c"+fmt.Sprint(i%3)]++
			continue
		}
		require.ErrorIs(t, err, event.ErrCheckpoint)
	}
	require.Equal(t, map[string]int{"c0": 1, "c1": 1, "c2": 1}, moved)
	require.Len(t, s.read(t, event.Of("A"), nil), 3)
}

// consumer returns the consumer "c" of events "N", which makes an event
// "Handled" of every second one.
func consumer(each func(*event.Sequenced) error) event.Consumer {
	return event.Consumer{Name: "c", Query: event.Of("N"), Every: 5, Handle: func(_ context.Context, e *event.Sequenced) ([]event.Event, *event.Condition, error) {
		if err := each(e); err != nil || e.Position%2 == 1 {
			return nil, nil, err
		}
		return []event.Event{ev("Handled", string(e.Data))}, nil, nil
	}}
}

// unreliable is an event store whose Advance sometimes fails: before the commit,
// after it, or with an unknown outcome.
type unreliable struct {
	*store.Events
	rnd *rand.Rand
}

var errDied = errors.New("died")

func (f *unreliable) Advance(ctx context.Context, c event.Checkpoint, events []event.Event, cond *event.Condition) ([]uint64, error) {
	fate := f.rnd.IntN(12)
	if fate == 0 {
		return nil, errDied
	}
	positions, err := f.Events.Advance(ctx, c, events, cond)
	switch {
	case err == nil && fate == 1:
		return nil, errDied
	case err == nil && fate == 2:
		return nil, store.ErrUnknownOutcome
	}
	return positions, err
}

// checkpointConsume: a consumer dies at any moment. Each event leads to exactly
// one other event.
func checkpointConsume(t *testing.T, h Harness) {
	const total = 120
	s := h.events(t)
	f := &unreliable{Events: s.own, rnd: randomSource(t, 0)}
	var want []string
	for i := range total {
		s.add(t, ev("N", fmt.Sprint(i)), ev("Other", "", "odd:1"))
		if i%3 == 0 {
			s.add(t, ev("Other", ""))
		}
	}
	last := s.add(t, ev("N", "last"))[0]
	for _, e := range s.read(t, event.Of("N"), nil) {
		if e.Position%2 == 0 {
			want = append(want, string(e.Data))
		}
	}
	finished := errors.New("finished")
	handled := map[string]bool{}
	c := consumer(func(e *event.Sequenced) error {
		if e.Position > last {
			return finished
		}
		if handled[string(e.Data)] = true; f.rnd.IntN(15) == 0 {
			return errDied
		}
		return nil
	})
	s.add(t, ev("N", ""))
	var err error
	for deaths := 0; !errors.Is(err, finished); deaths++ {
		err = event.Consume(t.Context(), f, c)
		require.ErrorContains(t, err, `consumer "c"`)
		require.NotErrorIs(t, err, event.ErrCheckpoint, "after %d deaths", deaths)
	}
	require.Equal(t, strings.Join(want, " "), s.names(t, event.Of("Handled"), nil))
	require.Len(t, handled, total+1)
}

// checkpointLive: a consumer handles new events, decides again when its
// condition fails, and stores its checkpoint when it ends.
func checkpointLive(t *testing.T, h Harness) {
	s := h.events(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	calls := 0
	c := event.Consumer{Name: "c", Query: event.Of("N"), Handle: func(_ context.Context, e *event.Sequenced) ([]event.Event, *event.Condition, error) {
		calls++
		cond := &event.Condition{FailIfEventsMatch: event.Of("Rival"), After: e.Position}
		if string(e.Data) == "2" && calls == 2 {
			s.add(t, ev("Rival", ""))
		} else if calls > 2 {
			cond = nil
		}
		return []event.Event{ev("Handled", string(e.Data))}, cond, nil
	}}
	done := make(chan error)
	go func() { done <- event.Consume(ctx, s, c) }()
	s.add(t, ev("N", "1"))
	n := 0
	for e, err := range s.Subscribe(t.Context(), event.Of("Handled"), 0) {
		require.NoError(t, err)
		if n++; n == 3 {
			break
		}
		require.Equal(t, fmt.Sprint(n), string(e.Data))
		s.add(t, ev("N", fmt.Sprint(n+1)))
	}
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Equal(t, 4, calls, "again when a rival came between")
	require.Equal(t, "1 2 3", s.names(t, event.Of("Handled"), nil))
}

// checkpointRivals: two consumers have one name. Each event leads to one other
// event, and one of the consumers gets an error.
func checkpointRivals(t *testing.T, h Harness) {
	s := h.events(t)
	var events []event.Event
	for i := range 60 {
		events = append(events, ev("N", fmt.Sprint(i)))
	}
	s.add(t, events...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	other := s.another(t, h)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, evs := range []event.Checkpointer{s, other} {
		wg.Go(func() {
			errs[i] = event.Consume(ctx, evs, consumer(func(e *event.Sequenced) error {
				if e.Position == 60 {
					cancel()
				}
				return nil
			}))
		})
	}
	wait(t, &wg)
	for _, err := range errs {
		require.True(t, errors.Is(err, event.ErrCheckpoint) || errors.Is(err, context.Canceled), "%v", err)
	}
	seen := map[string]bool{}
	for _, e := range s.read(t, event.Of("Handled"), nil) {
		require.False(t, seen[string(e.Data)], "event %s is handled twice", e.Data)
		seen[string(e.Data)] = true
	}
}
