package storetest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// runEventRead: what random reads do not come to.
func runEventRead(t *testing.T, h Harness) {
	s := h.indexedEvents(t)
	s.add(t, ev("A", "1", "x:1"), ev("A", "2", "x:11"), ev("B", "3", "x1:1"))
	for _, c := range []struct {
		q    event.Query
		opts event.ReadOptions
		want string
	}{
		{event.All(), event.ReadOptions{From: math.MaxUint64}, ""},
		{event.All(), event.ReadOptions{From: math.MaxUint64, Backwards: true, Limit: 1}, "3"},
		{event.Of("a"), event.ReadOptions{}, ""},
		{anyOf(item("", "x:1")), event.ReadOptions{}, "1"},
		{anyOf(item("A|A", "x:1"), item("A", "x:1")), event.ReadOptions{}, "1"},
	} {
		require.Equal(t, c.want, s.names(t, c.q, &c.opts))
	}
	_, err := s.Append(t.Context(), []event.Event{ev("A", "4")}, &event.Condition{FailIfEventsMatch: anyOf(item("C"), item("B")), After: 1})
	var conflict *event.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, event.ConflictError{Position: 3, Item: 1, After: 1}, *conflict)
	_, err = s.Append(t.Context(), []event.Event{ev("A", "4"), ev("D", "5")}, &event.Condition{FailIfEventsMatch: event.All(), After: math.MaxUint64})
	require.NoError(t, err)
	_, err = s.Append(t.Context(), []event.Event{ev("E", "6"), ev("E", "7")}, event.Unless(event.Of("E")))
	require.NoError(t, err, "an append does not conflict with itself")

	n := 0
	for e, err := range s.Read(t.Context(), event.All(), nil) { // a loop may append, and end early
		require.NoError(t, err)
		s.add(t, ev("Meanwhile", string(e.Data)))
		if n++; n == 5 {
			break
		}
	}
	require.Equal(t, 5, n)
	require.Len(t, s.all(t), 12)
}

func runEventProject(t *testing.T, h Harness) {
	s := h.events(t)
	s.add(t, ev("A", "1", "x:1"), ev("B", "2", "x:2"), ev("A", "3", "x:2"), ev("C", "4"))
	join := func(state string, e *event.Sequenced) string { return state + string(e.Data) }
	a := event.NewProjection(event.Of("A"), "", join)
	x2 := event.NewProjection(anyOf(item("", "x:2")), ">", join)
	none := event.NewProjection(event.Of("None"), 7, func(n int, _ *event.Sequenced) int { return n + 1 })
	cond, err := event.Project(t.Context(), s, a, x2, none)
	require.NoError(t, err)
	require.Equal(t, []any{"13", ">23", 7}, []any{a.State, x2.State, none.State})
	require.Equal(t, uint64(4), cond.After, "the head that was seen, not the last event that matched")

	s.add(t, ev("C", "5"))
	_, err = s.Append(t.Context(), []event.Event{ev("None", "6")}, cond)
	require.NoError(t, err, "what no projector selects does not matter")
	_, err = s.Append(t.Context(), []event.Event{ev("C", "7")}, cond)
	require.ErrorIs(t, err, store.ErrConflict, "a state is outdated")

	a.State = "-" // another state than the events make: they are not read again
	cond, err = event.Project(t.Context(), s, a, none)
	require.NoError(t, err)
	require.Equal(t, []any{"-", 8, uint64(6)}, []any{a.State, none.State, cond.After})
	all := event.NewProjection(event.All(), "", join)
	_, err = event.Project(t.Context(), s, all, none)
	require.NoError(t, err)
	require.Equal(t, []any{"123456", 8}, []any{all.State, none.State}, "one from the beginning, one from where it was")

	t.Run("snapshot", func(t *testing.T) {
		p := &event.Projection[string]{Query: event.All(), State: "snapshot ", After: 4, Next: all.Next}
		_, err := event.Project(t.Context(), s, p)
		require.NoError(t, err)
		require.Equal(t, "snapshot 56", p.State)
		require.EqualValues(t, 6, p.After)
		p.After = 7
		_, err = event.Project(t.Context(), s, p)
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, "of another store")
	})
	t.Run("error", func(t *testing.T) {
		cannot := errors.New("cannot")
		p := event.TryProjection(event.All(), "", func(state string, e *event.Sequenced) (string, error) {
			if string(e.Data) == "4" && cannot != nil {
				return "lost", cannot
			}
			return join(state, e), nil
		})
		_, err := event.Project(t.Context(), s, p)
		require.ErrorIs(t, err, cannot)
		require.ErrorContains(t, err, "event 4")
		require.Equal(t, "123", p.State, "what came before stands")
		cannot = nil
		_, err = event.Project(t.Context(), s, p)
		require.NoError(t, err)
		require.Equal(t, "123456", p.State)
	})
	t.Run("plain projector", func(t *testing.T) {
		p := &positions{}
		for range 2 {
			_, err := event.Project(t.Context(), s, p)
			require.NoError(t, err)
		}
		require.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}, p.got, "it does not say where it is")
	})
}

// positions is a Projector that says nothing of where it is.
type positions struct{ got []uint64 }

func (*positions) Selects() event.Query { return event.All() }

func (p *positions) Apply(e *event.Sequenced) error {
	p.got = append(p.got, e.Position)
	return nil
}

// runEventPostings compares reads and conditions on a store whose lists of events by
// tag are long: beyond what a row of them holds, and cut at random places.
func runEventPostings(t *testing.T, h Harness) {
	s := h.indexedEvents(t)
	rnd := rand.New(rand.NewPCG(7, 7))
	var model []event.Sequenced
	for len(model) < 3000 {
		batch := make([]event.Event, 1+rnd.IntN(900))
		for i := range batch {
			batch[i] = ev([]string{"A", "A", "A", "B", "C"}[rnd.IntN(5)], "", "all:x", fmt.Sprintf("many:%d", rnd.IntN(3)), fmt.Sprintf("few:%d", rnd.IntN(300)))
		}
		for i, p := range s.add(t, batch...) {
			model = append(model, event.Sequenced{Position: p, Event: batch[i]})
		}
	}
	queries := []event.Query{
		anyOf(item("", "all:x")), event.Of("A"), event.Of("B", "C"), anyOf(item("B", "all:x")), anyOf(item("B|C", "many:1")),
		anyOf(item("", "few:7", "all:x")), anyOf(item("", "all:x", "many:2", "few:8")), anyOf(item("C", "many:0", "few:9")),
		anyOf(item("", "few:1"), item("C", "many:1"), item("", "few:2")), anyOf(item("", "none:1"), item("D")), anyOf(item("D", "all:x")),
		anyOf(item("", "many:0", "many:1")), anyOf(item("", "few:3", "many:1"), item("B", "many:1", "all:x"), item("C")), manyTags("", 250), manyTags("A", 40),
	}
	for _, q := range queries {
		for _, backwards := range []bool{false, true} {
			opts := &event.ReadOptions{Backwards: backwards, Limit: 300}
			require.Equal(t, expected(model, q, opts), positionsOf(s.read(t, q, opts)), "%+v, %+v", q, opts)
		}
	}
	d := &drawer{Rand: randomSource(t, 0)}
	for range 100 {
		q := one(d, queries...)
		compareRead(t, s, model, q, &event.ReadOptions{
			From: uint64(d.IntN(len(model) + 2)), Limit: one(d, 0, 1, 10, 300), Backwards: d.chance(2), OnlyLast: d.chance(4),
		})
		after := uint64(d.IntN(len(model) + 1))
		first := slices.IndexFunc(model, func(e event.Sequenced) bool { return e.Position > after && q.Matches(&e.Event) })
		if first < 0 {
			continue
		}
		_, err := s.Append(soon(t), []event.Event{ev("New", "")}, &event.Condition{FailIfEventsMatch: q, After: after})
		var conflict *event.ConflictError
		require.ErrorAs(t, err, &conflict, "query %+v after %d", q, after)
		e := model[conflict.Position-1]
		require.True(t, e.Position > after && q.Matches(&e.Event), "query %+v after %d: event %d, %+v, is no conflict", q, after, conflict.Position, e)
	}
}
