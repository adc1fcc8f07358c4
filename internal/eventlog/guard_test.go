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

// TestBound: within a bound guards are answered as without, or left.
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
		rows := rapid.IntRange(1, 20).Draw(rt, "part")
		for i, g := range bounded {
			if g.Left {
				left++
			} else {
				answered++
			}
			for g.Left {
				require.NoError(t, l.Judge(t.Context(), view, []*eventlog.Guard{g}, tail.Indexed(), eventlog.Bound{Each: rows}))
			}
			if g.Found != free[i].Found || g.Item != free[i].Item {
				rt.Fatalf("within %+v, then in parts of %d: %+v, at once: %+v", b, rows, g, free[i])
			}
		}
	})
	require.NotZero(t, left)
	require.NotZero(t, answered)
}

// TestParts: what is costly is judged in parts, each of which reads a bounded number of
// rows in a view of its own, and goes on where the one before has ended.
func TestParts(t *testing.T) {
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
	const rows = 16
	judge := func(q event.Query) (g eventlog.Guard, parts, read int) {
		for g = (eventlog.Guard{Items: eventlog.Compile(q), Left: true}); g.Left; parts++ {
			view, err := e.Snapshot(t.Context())
			require.NoError(t, err)
			c := &counter{Querier: view}
			require.NoError(t, l.Judge(t.Context(), c, []*eventlog.Guard{&g}, tail.Indexed(), eventlog.Bound{Each: rows}))
			require.LessOrEqual(t, c.postings+c.events, 2*rows)
			require.NoError(t, view.Close())
			read += c.postings
		}
		return g, parts, read
	}
	both := event.Tagged(half(0), half(1))
	g, parts, read := judge(event.Of("none").Or(both))
	require.Zero(t, g.Found)
	require.Greater(t, parts, 10)
	require.Less(t, read, 800, "of 200 rows, some of them again in the next view")

	write(t, e, tail, make([]event.Event, 100)...)
	write(t, e, tail, append([]event.Event{{Type: "B", Tags: []event.Tag{half(0), half(1)}}}, make([]event.Event, 99)...)...)
	g, _, _ = judge(event.Of("none").Or(both))
	require.Equal(t, uint64(10_101), g.Found)
	require.Equal(t, 1, g.Item)
}
