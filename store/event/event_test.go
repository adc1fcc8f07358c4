package event_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/store/event"
)

func TestParseID(t *testing.T) {
	id, err := event.ParseID("01234567-89ab-CDEF-0123-456789abcdef")
	require.NoError(t, err)
	require.Equal(t, "01234567-89ab-cdef-0123-456789abcdef", id.String())
	same, err := event.ParseID("0123456789abcdef0123456789abcdef")
	require.NoError(t, err)
	require.Equal(t, id, same)
	require.False(t, id.IsZero())
	require.True(t, event.ID{}.IsZero())
	for _, text := range []string{"", "0", "0123456789abcdef0123456789abcde", "0123456789abcdef0123456789abcdef0", "0123456789abcdef0123456789abcdeg", "{0123456789abcdef0123456789abcdef}"} {
		_, err := event.ParseID(text)
		require.ErrorIs(t, err, event.ErrID, "%q", text)
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("01234567-89ab-cdef-0123-456789abcdef")
	f.Add("-")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := event.ParseID(text)
		if err != nil {
			require.ErrorIs(t, err, event.ErrID)
			return
		}
		again, err := event.ParseID(id.String())
		require.NoError(t, err)
		require.Equal(t, id, again)
	})
}

func TestEqual(t *testing.T) {
	x, y := event.NewTag("x", "1"), event.NewTag("y", "1")
	one := event.Event{Type: "A", Tags: []event.Tag{x, y}, Data: []byte("d"), Metadata: []byte("m"), ID: event.ID{1}}
	for name, c := range map[string]struct {
		change func(e *event.Event)
		equal  bool
	}{
		"the same":      {func(*event.Event) {}, true},
		"order of tags": {func(e *event.Event) { e.Tags = []event.Tag{y, x} }, true},
		"type":          {func(e *event.Event) { e.Type = "B" }, false},
		"fewer tags":    {func(e *event.Event) { e.Tags = e.Tags[:1] }, false},
		"other tags":    {func(e *event.Event) { e.Tags = []event.Tag{x, event.NewTag("y", "2")} }, false},
		"data":          {func(e *event.Event) { e.Data = nil }, false},
		"metadata":      {func(e *event.Event) { e.Metadata = []byte("n") }, false},
		"ID":            {func(e *event.Event) { e.ID = event.ID{} }, false},
	} {
		other := one
		c.change(&other)
		require.Equal(t, c.equal, one.Equal(&other), name)
		require.Equal(t, c.equal, other.Equal(&one), name)
	}
	require.True(t, (&event.Event{Type: "A"}).Equal(&event.Event{Type: "A", Data: []byte{}, Tags: []event.Tag{}}), "no bytes are the same as nil")
}

func TestMatches(t *testing.T) {
	x, y := event.NewTag("x", "1"), event.NewTag("y", "1")
	e := event.Event{Type: "A", Tags: []event.Tag{x, y}}
	for name, c := range map[string]struct {
		q    event.Query
		want bool
	}{
		"all":                 {event.All(), true},
		"type":                {event.Of("B", "A"), true},
		"other type":          {event.Of("B"), false},
		"one tag":             {event.Tagged(y), true},
		"all tags":            {event.Tagged(y, x), true},
		"a tag too many":      {event.Tagged(x, event.NewTag("z", "1")), false},
		"other value":         {event.Tagged(event.NewTag("x", "2")), false},
		"type and tag":        {event.Typed("A", x), true},
		"other type and tag":  {event.Typed("B", x), false},
		"one of the items":    {event.Of("B").Or(event.Tagged(x)), true},
		"none of the items":   {event.Of("B").Or(event.Of("C")), false},
		"items are not mixed": {event.Typed("B", x).Or(event.Typed("A", event.NewTag("z", "1"))), false},
		"or all":              {event.Of("B").Or(event.All()), true},
	} {
		require.Equal(t, c.want, c.q.Matches(&e), name)
	}
}

// TestOr: an event matches the one or the other, and neither query changes.
func TestOr(t *testing.T) {
	item := rapid.Custom(func(rt *rapid.T) event.Item {
		return event.Item{Types: rapid.SliceOfN(rapid.SampledFrom([]string{"A", "B"}), 1, 2).Draw(rt, "types")}
	})
	query := rapid.Custom(func(rt *rapid.T) event.Query {
		items := make([]event.Item, 0, 9) // room into which Or must not write
		return event.Query{Items: append(items, rapid.SliceOfN(item, 0, 3).Draw(rt, "items")...)}
	})
	rapid.Check(t, func(rt *rapid.T) {
		p, q, r := query.Draw(rt, "p"), query.Draw(rt, "q"), query.Draw(rt, "r")
		pq, pr := p.Or(q), p.Or(r)
		for _, typ := range []string{"A", "B", "C"} {
			e := event.Event{Type: typ}
			if pq.Matches(&e) != (p.Matches(&e) || q.Matches(&e)) || pr.Matches(&e) != (p.Matches(&e) || r.Matches(&e)) {
				rt.Fatalf("%s: %+v or %+v or %+v", typ, p, q, r)
			}
		}
	})
}
