package eventlog_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/store/event"
)

// TestBound: within a bound guards are answered as without, or left.
func TestBound(t *testing.T) {
	e, l := open(t)
	tail := l.NewTail(false, 3)
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
		require.NoError(t, l.Judge(t.Context(), view, free, eventlog.Bound{}))
		c := &counter{Querier: view}
		require.NoError(t, l.Judge(t.Context(), c, bounded, b))
		if c.postings > min(b.All, len(bounded)*b.Each) {
			rt.Fatalf("%d rows of %d guards within %+v", c.postings, len(bounded), b)
		}
		for i, g := range bounded {
			switch {
			case g.Left:
				left++
			case g.Found != free[i].Found || g.Item != free[i].Item:
				rt.Fatalf("within %+v: %+v, without: %+v", b, g, free[i])
			default:
				answered++
			}
		}
	})
	require.NotZero(t, left)
	require.NotZero(t, answered)
}
