package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

func runEventCondition(t *testing.T, h Harness) {
	judgeConditions(t, h.events(t))
	judgeConditions(t, h.indexedEvents(t))
}

func judgeConditions(t *testing.T, s eventStream) {
	s.add(t, ev("A", "1", "x:1", "y:1"), ev("B", "2", "x:1"), ev("A", "3", "x:2"), ev("C", "4"))
	cases := []struct {
		name  string
		q     store.EventQuery
		after uint64
		at    uint64 // of the conflict, 0 for none
		item  int
	}{
		{name: "nothing may exist", q: event.All(), at: 1},
		{name: "everything known", q: event.All(), after: 4},
		{name: "one event unknown", q: event.All(), after: 3, at: 4},
		{name: "after beyond the head", q: event.All(), after: 1000},
		{name: "after at the end of all numbers", q: event.All(), after: math.MaxUint64},
		{name: "type", q: event.Of("B"), at: 2},
		{name: "type, known", q: event.Of("B"), after: 2},
		{name: "unknown type", q: event.Of("D")},
		{name: "one of several types", q: event.Of("D", "C", "D"), at: 4},
		{name: "tag", q: anyOf(item("", "x:2")), at: 3},
		{name: "tag, after beyond the last match", q: anyOf(item("", "x:1")), after: 3},
		{name: "all tags of an item", q: anyOf(item("", "x:1", "y:1")), at: 1},
		{name: "one tag of an item is missing", q: anyOf(item("", "x:2", "y:1"))},
		{name: "type and tag", q: anyOf(item("B", "x:1")), at: 2},
		{name: "type and tag of different events", q: anyOf(item("B", "x:2"))},
		{name: "types and tag", q: anyOf(item("C|B", "x:1")), at: 2},
		{name: "second item", q: anyOf(item("C", "x:1"), item("A", "x:2")), at: 3, item: 1},
		{name: "items do not mix", q: anyOf(item("C", "x:1"), item("B", "y:1"))},
		{name: "items with one after", q: anyOf(item("", "x:1"), item("C")), after: 3, at: 4, item: 1},
		{name: "key and value do not mix", q: anyOf(item("", "x:11"), item("", "x1:1"))},
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			// What is appended matches no other case.
			_, err := s.Append(t.Context(), []store.Event{ev(fmt.Sprintf("New%d", i), "")}, &store.Condition{FailIfEventsMatch: c.q, After: c.after})
			if c.at == 0 {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, store.ErrConflict)
			var conflict *store.ConflictError
			require.True(t, errors.As(err, &conflict))
			require.Equal(t, store.ConflictError{Position: c.at, Item: c.item, After: c.after}, *conflict)
		})
	}
	t.Run("all events of an append or none", func(t *testing.T) {
		before := len(s.all(t))
		batch := []store.Event{ev("A", "5"), ev("B", "6"), ev("D", "7")}
		_, err := s.Append(t.Context(), batch, event.Unless(event.Of("B")))
		require.ErrorIs(t, err, store.ErrConflict)
		require.Len(t, s.all(t), before)
		_, err = s.Append(t.Context(), batch, event.Unless(event.Of("D")))
		require.NoError(t, err, "an append does not conflict with itself")
		require.Len(t, s.all(t), before+3)
	})
}

func runEventRepeat(t *testing.T, h Harness) {
	repeatAppends(t, h.events(t))
	repeatAppends(t, h.indexedEvents(t))
}

func repeatAppends(t *testing.T, s eventStream) {
	with := func(n int, e store.Event) store.Event {
		e.ID = idOf(n)
		return e
	}
	one, two, three := with(1, ev("A", "1", "x:1", "y:2")), with(2, ev("B", "2")), with(3, ev("C", "3"))
	first := s.add(t, one, two)
	require.Equal(t, first, s.add(t, one, two), "repeated")
	require.Equal(t, first[1:], s.add(t, two), "a part is an append of its own")
	require.Equal(t, []uint64{first[1], first[0]}, s.add(t, two, one), "in another order")
	reordered := one
	reordered.Tags = []store.Tag{one.Tags[1], one.Tags[0]}
	require.Equal(t, first[:1], s.add(t, reordered), "the order of tags does not count")
	positions, err := s.Append(t.Context(), []store.Event{one}, event.Unless(event.Of("A")))
	require.NoError(t, err, "the condition that held the first time need not hold again")
	require.Equal(t, first[:1], positions)

	third := s.add(t, three)
	require.Equal(t, []uint64{first[0], third[0]}, s.add(t, one, three), "stored by different appends")
	require.Len(t, s.all(t), 3)

	for name, events := range map[string][]store.Event{
		"some are stored":       {one, with(4, ev("D", "4"))},
		"one without an ID":     {one, ev("D", "4")},
		"other data":            {with(1, ev("A", "other", "x:1", "y:2"))},
		"other type":            {with(1, ev("B", "1", "x:1", "y:2"))},
		"other tags":            {with(1, ev("A", "1", "x:1", "y:3"))},
		"fewer tags":            {with(1, ev("A", "1", "x:1"))},
		"other metadata":        {{Type: "B", Data: []byte("2"), Metadata: []byte("m"), ID: idOf(2)}},
		"the second has others": {one, with(2, ev("B", "other"))},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Append(t.Context(), events, nil)
			require.ErrorIs(t, err, store.ErrDuplicate)
		})
	}
	require.Len(t, s.all(t), 3)
	require.Len(t, s.add(t, ev("A", "1"), ev("A", "1")), 2, "events without ID are always new")
	many := make([]store.Event, 600)
	for i := range many {
		many[i] = with(1000+i, ev("M", fmt.Sprint(i)))
	}
	require.Equal(t, s.add(t, many...), s.add(t, many...))
}

func runEventRead(t *testing.T, h Harness) {
	readEvents(t, h.events(t))
	readEvents(t, h.indexedEvents(t))
}

func readEvents(t *testing.T, s eventStream) {
	s.add(t, ev("A", "1", "x:1", "y:1"), ev("B", "2", "x:1"), ev("A", "3", "x:2"))
	s.add(t, ev("C", "4"), ev("A", "5", "x:1"), ev("B", "6", "y:1", "x:1"))
	cases := []struct {
		name string
		q    store.EventQuery
		opts store.EventReadOptions
		want string
	}{
		{"all", event.All(), store.EventReadOptions{}, "1 2 3 4 5 6"},
		{"all backwards", event.All(), store.EventReadOptions{Backwards: true}, "6 5 4 3 2 1"},
		{"from", event.All(), store.EventReadOptions{From: 4}, "4 5 6"},
		{"from backwards", event.All(), store.EventReadOptions{From: 4, Backwards: true}, "4 3 2 1"},
		{"from beyond the head", event.All(), store.EventReadOptions{From: 7}, ""},
		{"from beyond the head backwards", event.All(), store.EventReadOptions{From: 100, Backwards: true}, "6 5 4 3 2 1"},
		{"from the end of all numbers", event.All(), store.EventReadOptions{From: math.MaxUint64}, ""},
		{"backwards from there", event.All(), store.EventReadOptions{From: math.MaxUint64, Backwards: true, Limit: 1}, "6"},
		{"limit", event.All(), store.EventReadOptions{Limit: 2}, "1 2"},
		{"limit backwards", event.All(), store.EventReadOptions{Limit: 2, Backwards: true}, "6 5"},
		{"limit from", event.All(), store.EventReadOptions{Limit: 1, From: 3}, "3"},
		{"limit above", event.All(), store.EventReadOptions{Limit: 100}, "1 2 3 4 5 6"},
		{"type", event.Of("A"), store.EventReadOptions{}, "1 3 5"},
		{"types", event.Of("C", "A"), store.EventReadOptions{}, "1 3 4 5"},
		{"types backwards", event.Of("C", "A"), store.EventReadOptions{Backwards: true, Limit: 3}, "5 4 3"},
		{"unknown type", event.Of("a"), store.EventReadOptions{}, ""},
		{"tag", anyOf(item("", "x:1")), store.EventReadOptions{}, "1 2 5 6"},
		{"tag backwards from", anyOf(item("", "x:1")), store.EventReadOptions{Backwards: true, From: 5, Limit: 2}, "5 2"},
		{"tags", anyOf(item("", "x:1", "y:1")), store.EventReadOptions{}, "1 6"},
		{"tags backwards", anyOf(item("", "y:1", "x:1")), store.EventReadOptions{Backwards: true}, "6 1"},
		{"type and tags", anyOf(item("B", "x:1", "y:1")), store.EventReadOptions{}, "6"},
		{"types and tag", anyOf(item("C|B", "x:1")), store.EventReadOptions{}, "2 6"},
		{"or", anyOf(item("C"), item("", "x:2")), store.EventReadOptions{}, "3 4"},
		{"or without repetition", anyOf(item("A"), item("", "x:1"), item("A", "x:1")), store.EventReadOptions{}, "1 2 3 5 6"},
		{"or backwards", anyOf(item("C"), item("", "x:2"), item("B", "x:1")), store.EventReadOptions{Backwards: true, Limit: 3}, "6 4 3"},
		{"or from", anyOf(item("A"), item("B")), store.EventReadOptions{From: 3, Limit: 2}, "3 5"},
		{"equal items", anyOf(item("A", "x:1"), item("A|A", "x:1"), item("A", "x:1")), store.EventReadOptions{}, "1 5"},
		{"one tag, other types", anyOf(item("B", "x:1"), item("C"), item("A", "x:1")), store.EventReadOptions{}, "1 2 4 5 6"},
		{"single tags", anyOf(item("", "x:2"), item("", "y:1"), item("", "z:1")), store.EventReadOptions{}, "1 3 6"},
		{"single tags of types", anyOf(item("A|C", "x:2"), item("C|A", "y:1"), item("B", "x:2")), store.EventReadOptions{}, "1 3"},
		{"a tag and the same with another", anyOf(item("", "x:1", "y:1"), item("", "y:1", "x:1"), item("B", "y:1")), store.EventReadOptions{Backwards: true}, "6 1"},
		{"last", event.All(), store.EventReadOptions{OnlyLast: true}, "6"},
		{"last of a type", event.Of("A"), store.EventReadOptions{OnlyLast: true}, "5"},
		{"last of types", event.Of("C", "A"), store.EventReadOptions{OnlyLast: true}, "5"},
		{"last of a tag, from there backwards", anyOf(item("", "x:1")), store.EventReadOptions{OnlyLast: true, Backwards: true, From: 4}, "2"},
		{"last of a tag, from there", anyOf(item("", "x:2")), store.EventReadOptions{OnlyLast: true, From: 4}, ""},
		{"last of each item", anyOf(item("A", "x:1"), item("C"), item("", "x:1", "y:1")), store.EventReadOptions{OnlyLast: true}, "4 5 6"},
		{"last of each item backwards", anyOf(item("A"), item("C"), item("", "x:1", "y:1")), store.EventReadOptions{OnlyLast: true, Backwards: true}, "6 5 4"},
		{"last of each item, the first of them", anyOf(item("A"), item("C"), item("D")), store.EventReadOptions{OnlyLast: true, Limit: 1}, "4"},
		{"one is the last of several items", anyOf(item("B"), item("", "y:1"), item("B")), store.EventReadOptions{OnlyLast: true}, "6"},
		{"everything or something", event.All().Or(event.Of("A")), store.EventReadOptions{Limit: 3}, "1 2 3"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, s.names(t, c.q, &c.opts)) })
	}
	t.Run("pages", func(t *testing.T) { readPages(t, s) })
	t.Run("append while reading", func(t *testing.T) {
		n := 0
		for e, err := range s.Read(t.Context(), event.Of("Page"), nil) {
			require.NoError(t, err)
			if n++; n%100 == 0 {
				s.add(t, ev("Meanwhile", string(e.Data)))
			}
		}
		require.Equal(t, 3000, n)
	})
}

// readPages reads more than one page, both ways, and stops in between.
func readPages(t *testing.T, s eventStream) {
	batch := make([]store.Event, 3000)
	for i := range batch {
		batch[i] = ev("Page", fmt.Sprint(i), fmt.Sprintf("n:%d", i%2), "page:1")
	}
	positions := s.add(t, batch...)
	for _, q := range []store.EventQuery{event.Of("Page"), anyOf(item("", "page:1")), anyOf(item("Page", "n:0"), item("", "n:1")), anyOf(item("", "n:0", "page:1"), item("Page", "n:1", "page:1"))} {
		var got []uint64
		for _, e := range s.read(t, q, nil) {
			got = append(got, e.Position)
		}
		require.Equal(t, positions, got)
		got = nil
		for _, e := range s.read(t, q, &store.EventReadOptions{Backwards: true}) {
			got = append(got, e.Position)
		}
		slices.Reverse(got)
		require.Equal(t, positions, got)
		require.Len(t, s.read(t, q, &store.EventReadOptions{Limit: 1234}), 1234)
	}
	n := 0
	for _, err := range s.Read(t.Context(), event.All(), nil) {
		require.NoError(t, err)
		if n++; n == 500 {
			break
		}
	}
	require.Equal(t, 500, n)
}

func runEventProject(t *testing.T, h Harness) {
	s := h.events(t)
	s.add(t, ev("A", "1", "x:1"), ev("B", "2", "x:2"), ev("A", "3", "x:2"), ev("C", "4"))
	join := func(state string, e *store.SequencedEvent) string { return state + string(e.Data) }
	a := event.NewProjection(event.Of("A"), "", join)
	x2 := event.NewProjection(anyOf(item("", "x:2")), ">", join)
	none := event.NewProjection(event.Of("None"), 7, func(n int, _ *store.SequencedEvent) int { return n + 1 })
	cond, err := s.Project(t.Context(), a, x2, none)
	require.NoError(t, err)
	require.Equal(t, []any{"13", ">23", 7}, []any{a.State, x2.State, none.State})
	require.Equal(t, uint64(4), cond.After, "the head that was seen, not the last event that matched")

	s.add(t, ev("C", "5"))
	_, err = s.Append(t.Context(), []store.Event{ev("None", "6")}, cond)
	require.NoError(t, err, "what no projector selects does not matter")
	_, err = s.Append(t.Context(), []store.Event{ev("C", "7")}, cond)
	require.ErrorIs(t, err, store.ErrConflict, "a state is outdated")

	a.State = "-" // another state than the events make: they are not read again
	cond, err = s.Project(t.Context(), a, none)
	require.NoError(t, err)
	require.Equal(t, []any{"-", 8, uint64(6)}, []any{a.State, none.State, cond.After})
	all := event.NewProjection(event.All(), "", join)
	_, err = s.Project(t.Context(), all, none)
	require.NoError(t, err)
	require.Equal(t, []any{"123456", 8}, []any{all.State, none.State}, "one from the beginning, one from where it was")

	t.Run("snapshot", func(t *testing.T) {
		p := &event.Projection[string]{Query: event.All(), State: "snapshot ", After: 4, Next: all.Next}
		_, err := s.Project(t.Context(), p)
		require.NoError(t, err)
		require.Equal(t, "snapshot 56", p.State)
		require.EqualValues(t, 6, p.After)
		p.After = 7
		_, err = s.Project(t.Context(), p)
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, "of another store")
	})
	t.Run("error", func(t *testing.T) {
		cannot := errors.New("cannot")
		p := event.TryProjection(event.All(), "", func(state string, e *store.SequencedEvent) (string, error) {
			if string(e.Data) == "4" && cannot != nil {
				return "lost", cannot
			}
			return join(state, e), nil
		})
		_, err := s.Project(t.Context(), p)
		require.ErrorIs(t, err, cannot)
		require.ErrorContains(t, err, "event 4")
		require.Equal(t, "123", p.State, "what came before stands")
		cannot = nil
		_, err = s.Project(t.Context(), p)
		require.NoError(t, err)
		require.Equal(t, "123456", p.State)
	})
	t.Run("plain projector", func(t *testing.T) {
		p := &positions{}
		for range 2 {
			_, err := s.Project(t.Context(), p)
			require.NoError(t, err)
		}
		require.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}, p.got, "it does not say where it is")
	})
}

// positions is a Projector that says nothing of where it is.
type positions struct{ got []uint64 }

func (*positions) Selects() store.EventQuery { return event.All() }

func (p *positions) Apply(e *store.SequencedEvent) error {
	p.got = append(p.got, e.Position)
	return nil
}

// runEventModel compares random appends and reads with a list in memory, by two
// processes where the engine allows several.
func runEventModel(t *testing.T, h Harness) {
	s := h.indexedEvents(t)
	processes := []eventStream{s, s.another(t, h)}
	var model []store.SequencedEvent
	step := func(rt *rapid.T) {
		s := rapid.SampledFrom(processes).Draw(rt, "process")
		batch := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) store.Event {
			return ev(rapid.SampledFrom(historyTypes).Draw(rt, "type"), "", drawTags(rt)...)
		}), 1, 3).Draw(rt, "events")
		cond := &store.Condition{FailIfEventsMatch: drawQuery(rt), After: uint64(max(0, len(model)-rapid.IntRange(-1, 6).Draw(rt, "back")))}
		if rapid.IntRange(0, 3).Draw(rt, "long ago") == 0 {
			cond.After = uint64(rapid.IntRange(0, len(model)).Draw(rt, "after"))
		}
		conflict := slices.ContainsFunc(model, func(e store.SequencedEvent) bool {
			return e.Position > cond.After && cond.FailIfEventsMatch.Matches(&e.Event)
		})
		positions, err := s.Append(context.Background(), batch, cond)
		if conflict != errors.Is(err, store.ErrConflict) || !conflict && err != nil {
			rt.Fatalf("condition %+v: conflict %t expected, got %v", cond, conflict, err)
		}
		for i, p := range positions {
			model = append(model, store.SequencedEvent{Position: p, Event: batch[i]})
		}
		compareWithModel(rt, rapid.SampledFrom(processes).Draw(rt, "reader"), model, drawQuery(rt))
	}
	rapid.Check(t, func(rt *rapid.T) {
		for range 5 {
			step(rt)
		}
	})
}

// runEventPostings compares reads and conditions on a store whose lists of events by
// tag are long: beyond what a row of them holds, and cut at random places.
func runEventPostings(t *testing.T, h Harness) {
	s := h.indexedEvents(t)
	rnd := rand.New(rand.NewPCG(7, 7))
	var model []store.SequencedEvent
	for len(model) < 3000 {
		batch := make([]store.Event, 1+rnd.IntN(900))
		for i := range batch {
			batch[i] = ev([]string{"A", "A", "A", "B", "C"}[rnd.IntN(5)], "", "all:x", fmt.Sprintf("many:%d", rnd.IntN(3)), fmt.Sprintf("few:%d", rnd.IntN(300)))
		}
		for i, p := range s.add(t, batch...) {
			model = append(model, store.SequencedEvent{Position: p, Event: batch[i]})
		}
	}
	queries := []store.EventQuery{
		anyOf(item("", "all:x")), event.Of("A"), event.Of("B", "C"), anyOf(item("B", "all:x")), anyOf(item("B|C", "many:1")),
		anyOf(item("", "few:7", "all:x")), anyOf(item("", "all:x", "many:2", "few:8")), anyOf(item("C", "many:0", "few:9")),
		anyOf(item("", "few:1"), item("C", "many:1"), item("", "few:2")), anyOf(item("", "none:1"), item("D")), anyOf(item("D", "all:x")),
		anyOf(item("", "many:0", "many:1")), anyOf(item("", "few:3", "many:1"), item("B", "many:1", "all:x"), item("C")), manyTags("", 250), manyTags("A", 40),
	}
	for _, q := range queries {
		for _, backwards := range []bool{false, true} {
			opts := &store.EventReadOptions{Backwards: backwards, Limit: 300}
			require.Equal(t, expected(model, q, opts), positionsOf(s.read(t, q, opts)), "%+v, %+v", q, opts)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		q := rapid.SampledFrom(queries).Draw(rt, "query")
		compareRead(rt, s, model, q, &store.EventReadOptions{
			From:      uint64(rapid.IntRange(0, len(model)+1).Draw(rt, "from")),
			Limit:     rapid.SampledFrom([]int{0, 1, 10, 300}).Draw(rt, "limit"),
			Backwards: rapid.Bool().Draw(rt, "backwards"),
			OnlyLast:  rapid.IntRange(0, 3).Draw(rt, "only last") == 0,
		})
		after := uint64(rapid.IntRange(0, len(model)).Draw(rt, "after"))
		first := slices.IndexFunc(model, func(e store.SequencedEvent) bool { return e.Position > after && q.Matches(&e.Event) })
		if first < 0 {
			return
		}
		_, err := s.Append(context.Background(), []store.Event{ev("New", "")}, &store.Condition{FailIfEventsMatch: q, After: after})
		var conflict *store.ConflictError
		if !errors.As(err, &conflict) {
			rt.Fatalf("query %+v after %d: want a conflict, got %v", q, after, err)
		}
		if e := model[conflict.Position-1]; e.Position <= after || !q.Matches(&e.Event) {
			rt.Fatalf("query %+v after %d: event %d, %+v, is no conflict", q, after, conflict.Position, e)
		}
	})
}

func compareWithModel(rt *rapid.T, s eventStream, model []store.SequencedEvent, q store.EventQuery) {
	opts := &store.EventReadOptions{
		From:      uint64(rapid.IntRange(0, len(model)+1).Draw(rt, "from")),
		Limit:     rapid.IntRange(0, 8).Draw(rt, "limit"),
		Backwards: rapid.Bool().Draw(rt, "backwards"),
		OnlyLast:  rapid.IntRange(0, 3).Draw(rt, "only last") == 0,
	}
	compareRead(rt, s, model, q, opts)
}
