package storetest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// runEventRead: a loop over a read may append events and may end early.
func runEventRead(t *testing.T, h Harness) {
	s := h.indexedEvents(t)
	s.add(t, ev("A", "1"), ev("A", "2"), ev("A", "3"), ev("A", "4"), ev("A", "5"), ev("A", "6"))
	n := 0
	for e, err := range s.Read(t.Context(), event.All(), nil) {
		require.NoError(t, err)
		s.add(t, ev("Meanwhile", string(e.Data)))
		if n++; n == 5 {
			break
		}
	}
	require.Equal(t, 5, n)
	require.Len(t, s.all(t), 6+5)
}

func runEventProject(t *testing.T, h Harness) {
	s := h.events(t)
	s.add(t, ev("A", "1", "x:1"), ev("B", "2", "x:2"), ev("A", "3", "x:2"), ev("C", "4"))
	join := func(state string, e *event.Sequenced) string { return state + string(e.Data) }
	a := event.NewProjection(event.Of("A"), "", join)
	x2 := event.NewProjection(anyOf(item("", "x:2")), ">", join)
	none := event.NewProjection(event.Of("None"), 7, func(n int, _ *event.Sequenced) int { return n + 1 })
	cond := must(event.Project(t.Context(), s, a, x2, none))(t)
	require.Equal(t, []any{"13", ">23", 7}, []any{a.State, x2.State, none.State})
	require.Equal(t, uint64(4), cond.After, "the head that was seen, not the last event that matched")

	s.add(t, ev("C", "5"))
	_, err := s.Append(t.Context(), []event.Event{ev("None", "6")}, cond)
	require.NoError(t, err, "what no projector selects does not matter")
	_, err = s.Append(t.Context(), []event.Event{ev("C", "7")}, cond)
	require.ErrorIs(t, err, store.ErrConflict, "a state is outdated")

	a.State = "-" // not the state of the events, which are not read again
	cond = must(event.Project(t.Context(), s, a, none))(t)
	require.Equal(t, []any{"-", 8, uint64(6)}, []any{a.State, none.State, cond.After})
	all := event.NewProjection(event.All(), "", join)
	must(event.Project(t.Context(), s, all, none))(t)
	require.Equal(t, []any{"123456", 8}, []any{all.State, none.State}, "one from the beginning, one from where it was")

	t.Run("snapshot", func(t *testing.T) {
		p := &event.Projection[string]{Query: event.All(), State: "snapshot ", After: 4, Next: all.Next}
		must(event.Project(t.Context(), s, p))(t)
		require.Equal(t, "snapshot 56", p.State)
		require.EqualValues(t, 6, p.After)
		p.After = 7
		refuses(t, store.ErrInvalid, "of another store")(event.Project(t.Context(), s, p))
	})
	t.Run("error", func(t *testing.T) {
		cannot := errors.New("cannot")
		p := event.TryProjection(event.All(), "", func(state string, e *event.Sequenced) (string, error) {
			if string(e.Data) == "4" && cannot != nil {
				return "lost", cannot
			}
			return join(state, e), nil
		})
		refuses(t, cannot, "event 4")(event.Project(t.Context(), s, p))
		require.Equal(t, "123", p.State, "what came before stands")
		cannot = nil
		must(event.Project(t.Context(), s, p))(t)
		require.Equal(t, "123456", p.State)
	})
	t.Run("plain projector", func(t *testing.T) {
		p := &positions{}
		for range 2 {
			must(event.Project(t.Context(), s, p))(t)
		}
		require.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}, p.got, "it does not say where it is")
	})
}

// positions is a Projector that does not report its position.
type positions struct{ got []uint64 }

func (*positions) Selects() event.Query { return event.All() }

func (p *positions) Apply(e *event.Sequenced) error {
	p.got = append(p.got, e.Position)
	return nil
}
