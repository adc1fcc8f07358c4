package event_test

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// scripted is a store whose appends have results that the test gives: nil
// stores the events. The stored events are in order and begin at position 1.
type scripted struct {
	stored  []event.Event
	appends []func(s *scripted) error
	reads   []uint64 // where each read began
}

func (s *scripted) Head(context.Context) (uint64, error) { return uint64(len(s.stored)), nil }

func (s *scripted) Read(_ context.Context, q event.Query, opts *event.ReadOptions) iter.Seq2[event.Sequenced, error] {
	return func(yield func(event.Sequenced, error) bool) {
		s.reads = append(s.reads, opts.From)
		for i := int(opts.From) - 1; i < len(s.stored); i++ {
			if q.Matches(&s.stored[i]) && !yield(event.Sequenced{Position: uint64(i + 1), Event: s.stored[i]}, nil) {
				return
			}
		}
		*opts.Head = uint64(len(s.stored))
	}
}

func (s *scripted) Append(_ context.Context, events []event.Event, cond *event.Condition) ([]uint64, error) {
	for i := range s.stored { // a repetition, of one event
		if !events[0].ID.IsZero() && s.stored[i].Equal(&events[0]) {
			return []uint64{uint64(i + 1)}, nil
		}
	}
	if len(s.appends) > 0 {
		next := s.appends[0]
		s.appends = s.appends[1:]
		if err := next(s); err != nil {
			return nil, err
		}
	}
	for i := cond.After; i < uint64(len(s.stored)); i++ {
		if cond.FailIfEventsMatch.Matches(&s.stored[i]) {
			return nil, &event.ConflictError{Position: i + 1, After: cond.After}
		}
	}
	s.stored = append(s.stored, events...)
	return []uint64{uint64(len(s.stored))}, nil
}

func (s *scripted) Subscribe(context.Context, event.Query, uint64) iter.Seq2[event.Sequenced, error] {
	return nil
}

// overtaken stores an event before the one that is appended.
func overtaken(typ string) func(*scripted) error {
	return func(s *scripted) error {
		s.stored = append(s.stored, event.Event{Type: typ})
		return nil
	}
}

func fails(err error) func(*scripted) error { return func(*scripted) error { return err } }

// counting decides to add an event that tells how many of type A there are.
func counting(id event.ID) (d event.Decision, calls *int) {
	n := event.NewProjection(event.Of("A"), 0, func(n int, _ *event.Sequenced) int { return n + 1 })
	calls = new(int)
	return event.Decision{Reads: []event.Projector{n}, Choose: func() ([]event.Event, error) {
		*calls++
		return []event.Event{{Type: "Counted", Data: []byte(strconv.Itoa(n.State)), ID: id}}, nil
	}}, calls
}

func TestDecide(t *testing.T) {
	t.Run("retry", func(t *testing.T) {
		s := &scripted{stored: []event.Event{{Type: "A"}}, appends: []func(*scripted) error{overtaken("A"), overtaken("B")}}
		d, calls := counting(event.ID{})
		positions, err := event.Decide(t.Context(), s, d)
		require.NoError(t, err)
		require.Equal(t, []uint64{4}, positions)
		require.Equal(t, "2", string(s.stored[3].Data), "of what was there in the end")
		require.Equal(t, 2, *calls, "what was not selected overtakes nothing")
		require.Equal(t, []uint64{1, 2}, s.reads, "only what came since is read again")
	})
	t.Run("bound", func(t *testing.T) {
		s := &scripted{appends: []func(*scripted) error{overtaken("A"), overtaken("A"), overtaken("A"), overtaken("A")}}
		d, calls := counting(event.ID{})
		d.Attempts = 3
		_, err := event.Decide(t.Context(), s, d)
		require.ErrorIs(t, err, driver.ErrConflict)
		require.ErrorContains(t, err, "attempt 3 of 3: conflict: event 3, after 2")
		require.Equal(t, 3, *calls)
	})
	t.Run("refusal", func(t *testing.T) {
		refused := errors.New("refused")
		d, _ := counting(event.ID{})
		d.Choose = func() ([]event.Event, error) { return nil, refused }
		_, err := event.Decide(t.Context(), &scripted{}, d)
		require.Equal(t, refused, err, "as it is")
		d.Choose = func() ([]event.Event, error) { return nil, nil }
		positions, err := event.Decide(t.Context(), &scripted{}, d)
		require.NoError(t, err)
		require.Empty(t, positions, "nothing to do")
		_, err = event.Decide(t.Context(), &scripted{}, event.Decision{Choose: d.Choose})
		require.ErrorIs(t, err, event.ErrInvalid)
	})
	t.Run("given up", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		d, _ := counting(event.ID{})
		_, err := event.Decide(ctx, &scripted{appends: []func(*scripted) error{func(*scripted) error { cancel(); return driver.ErrConflict }}}, d)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// TestDecideUnknown: an append whose outcome is unknown is repeated when the
// store recognises it by its IDs, and no new decision is made before the
// outcome is known.
func TestDecideUnknown(t *testing.T) {
	lost, stored := fails(driver.ErrUnknownOutcome), func(s *scripted) error {
		s.stored = append(s.stored, event.Event{Type: "Counted", Data: []byte("0"), ID: event.ID{1}})
		return driver.ErrUnknownOutcome
	}
	for name, c := range map[string]struct {
		id      event.ID
		appends []func(*scripted) error
		calls   int
		at      uint64
		err     error
	}{
		"no ID":                      {event.ID{}, []func(*scripted) error{lost}, 1, 0, driver.ErrUnknownOutcome},
		"was not stored":             {event.ID{1}, []func(*scripted) error{lost}, 1, 1, nil},
		"was stored":                 {event.ID{1}, []func(*scripted) error{stored}, 1, 1, nil},
		"unknown twice":              {event.ID{1}, []func(*scripted) error{lost, lost}, 1, 1, nil},
		"unavailable then":           {event.ID{1}, []func(*scripted) error{stored, fails(driver.ErrUnavailable)}, 1, 1, nil},
		"overtaken then":             {event.ID{1}, []func(*scripted) error{lost, overtaken("A")}, 2, 2, nil},
		"a conflict of transactions": {event.ID{1}, []func(*scripted) error{lost, fails(driver.ErrConflict)}, 1, 1, nil},
		"refused then":               {event.ID{1}, []func(*scripted) error{lost, fails(driver.ErrDiskFull)}, 1, 0, driver.ErrUnknownOutcome},
	} {
		t.Run(name, func(t *testing.T) {
			d, calls := counting(c.id)
			positions, err := event.Decide(t.Context(), &scripted{appends: c.appends}, d)
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.calls, *calls)
			if c.at > 0 {
				require.Equal(t, []uint64{c.at}, positions)
			}
		})
	}
}
