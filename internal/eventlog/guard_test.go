package eventlog_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/store/event"
)

// TestBound: within a bound guards are answered as without it, or left.
func TestBound(t *testing.T) {
	e, l := open(t)
	tail := newTail(l, 3)
	rnd := rand.New(rand.NewPCG(2, 2))
	for range 200 {
		write(t, e, tail, randomEvent(rnd))
	}
	drawItem := rapid.Custom(func(rt *rapid.T) event.Item {
		it := event.Item{Types: rapid.SliceOfN(rapid.SampledFrom([]string{"A", "B", "none"}), 1, 2).Draw(rt, "types")}
		for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x", "y", "z"}), 0, 3, rapid.ID).Draw(rt, "keys") {
			it.Tags = append(it.Tags, event.NewTag(key, rapid.SampledFrom([]string{"0", "1", "5"}).Draw(rt, "value")))
		}
		return it
	})
	left, answered := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		var free, bounded []*eventlog.Guard
		for range rapid.IntRange(1, 5).Draw(rt, "guards") {
			g := eventlog.Guard{After: uint64(rapid.IntRange(0, 199).Draw(rt, "after"))}
			g.Items = eventlog.Compile(event.Query{Items: rapid.SliceOfN(drawItem, 1, 3).Draw(rt, "items")})
			again := g
			free, bounded = append(free, &g), append(bounded, &again)
		}
		b := eventlog.Bound{Each: rapid.IntRange(1, 60).Draw(rt, "each"), All: rapid.IntRange(1, 120).Draw(rt, "all")}
		view, err := e.Snapshot(t.Context())
		require.NoError(t, err)
		defer view.Close()
		require.NoError(t, l.Judge(t.Context(), view, free, tail.Indexed(), eventlog.Bound{}))
		c := &counter{Querier: view}
		require.NoError(t, l.Judge(t.Context(), c, bounded, tail.Indexed(), b))
		if c.postings > min(b.All, len(bounded)*b.Each) {
			rt.Fatalf("%d rows of %d guards within %+v", c.postings, len(bounded), b)
		}
		for i, g := range bounded {
			if g.Left {
				left++
			} else {
				answered++
			}
			if g.Left {
				require.NoError(t, l.Judge(t.Context(), view, []*eventlog.Guard{g}, tail.Indexed(), eventlog.Bound{}))
			}
			if g.Found != free[i].Found || g.Item != free[i].Item {
				rt.Fatalf("within %+v: %+v, at once: %+v", b, g, free[i])
			}
		}
	})
	require.NotZero(t, left)
	require.NotZero(t, answered)

	// What one guard reads, the next ones cannot.
	view, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	defer view.Close()
	var guards []*eventlog.Guard
	for range 4 {
		item := event.Item{Tags: []event.Tag{event.NewTag("x", "0"), event.NewTag("x", "1")}} // which no event has both
		guards = append(guards, &eventlog.Guard{Items: eventlog.Compile(event.Query{Items: []event.Item{item}})})
	}
	c := &counter{Querier: view}
	b := eventlog.Bound{All: 60}
	require.NoError(t, l.Judge(t.Context(), c, guards, tail.Indexed(), b))
	require.LessOrEqual(t, c.postings, b.All)
	require.True(t, guards[3].Left)
}

// TestPause: a judgement without a bound reports the rows of each statement.
func TestPause(t *testing.T) {
	e, l := open(t)
	tail := newTail(l, 100)
	half := func(n int) event.Tag { return event.NewTag("half", strconv.Itoa(n%2)) }
	for n := range 10_000 / 100 {
		events := make([]event.Event, 100)
		for i := range events {
			events[i] = event.Event{Type: "A", Tags: []event.Tag{half(n + i)}}
		}
		write(t, e, tail, events...)
	}
	view, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	defer view.Close()
	c := &counter{Querier: view}
	var read, pauses int
	g := eventlog.Guard{Items: eventlog.Compile(event.Of("none").Or(event.Tagged(half(0), half(1))))}
	bound := eventlog.Bound{Pause: func(rows int) { read, pauses = read+rows, pauses+1 }}
	require.NoError(t, l.Judge(t.Context(), c, []*eventlog.Guard{&g}, tail.Indexed(), bound))
	require.Zero(t, g.Found)
	require.False(t, g.Left)
	require.Equal(t, tail.Indexed(), g.After)
	require.Equal(t, c.postings, read)
	require.GreaterOrEqual(t, read, 200, "both tags have 100 rows")
	require.Equal(t, c.statements, pauses)
}
