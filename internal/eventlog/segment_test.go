package eventlog_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// TestMemory compares the reads of a process that remembers the end of the log
// with the reads of a new process, in views of any age, while two writers with
// their own memories go on.
func TestMemory(t *testing.T) {
	e, l := open(t)
	tails := []*eventlog.Tail{newTail(l, 40), newTail(l, 15), newTail(l, 1)}
	rnd := rand.New(rand.NewPCG(3, 3))
	var views []driver.Reader
	rapid.Check(t, func(rt *rapid.T) {
		for range rapid.IntRange(0, 9).Draw(rt, "appends") {
			write(t, e, rapid.SampledFrom(tails[:2]).Draw(rt, "writer"), randomEvent(rnd))
		}
		view, err := e.Snapshot(t.Context())
		require.NoError(t, err)
		if views = append(views, view); len(views) > 3 {
			require.NoError(t, views[0].Close())
			views = views[1:]
		}
		page := drawPage(rt, int(max(tails[0].Head(), tails[1].Head())))
		q := rapid.SampledFrom(views).Draw(rt, "view")
		want := readPage(t, l, q, page)
		if rapid.IntRange(0, 5).Draw(rt, "new") == 0 {
			tails[2] = newTail(l, 1)
		}
		page.Tail = rapid.SampledFrom(tails).Draw(rt, "reader")
		if got := readPage(t, l, q, page); fmt.Sprint(got) != fmt.Sprint(want) {
			rt.Fatalf("%+v: want %v, got %v", page, want, got)
		}
	})
	for _, view := range views {
		require.NoError(t, view.Close())
	}
}

// TestMemoryRows counts the rows that reads of new events take. New events are
// read once, and not by the process that wrote them; a view that is older than
// the memory reads them each time.
func TestMemoryRows(t *testing.T) {
	e, l := open(t)
	tail, other := newTail(l, 40), newTail(l, 40)
	rnd := rand.New(rand.NewPCG(4, 4))
	page := eventlog.Page{Items: eventlog.Compile(event.Typed("A", event.NewTag("none", ""))), Limit: 5, Bytes: 1 << 20, Backwards: true}
	read := func(q driver.Querier, by *eventlog.Tail) int {
		c := &counter{Querier: q}
		page.Tail = by
		readPage(t, l, c, page)
		return c.events - 1 // the row of the end
	}
	var first driver.Reader
	others := 0
	for i := range 100 {
		write(t, e, tail, randomEvent(rnd))
		view, err := e.Snapshot(t.Context())
		require.NoError(t, err)
		require.Zero(t, read(view, tail))
		others += read(view, other)
		if i == 0 {
			first = view
			continue
		}
		require.NoError(t, view.Close())
	}
	require.Equal(t, 100, others, "each once")
	for range 2 {
		require.Equal(t, 1, read(first, tail))
	}
	require.NoError(t, first.Close())
}

// drawPage draws a page whose ends are often among the last events, which have no postings.
func drawPage(rt *rapid.T, head int) eventlog.Page {
	end := rapid.OneOf(rapid.Just(0), rapid.IntRange(0, head+1), rapid.IntRange(max(0, head-20), head+1))
	item := rapid.Custom(func(rt *rapid.T) event.Item {
		it := event.Item{Types: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"A", "B", "none"}), 0, 2, rapid.ID).Draw(rt, "types")}
		for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x", "y"}), 0, 2, rapid.ID).Draw(rt, "keys") {
			it.Tags = append(it.Tags, event.NewTag(key, rapid.SampledFrom([]string{"0", "1"}).Draw(rt, "value")))
		}
		if len(it.Types)+len(it.Tags) == 0 {
			it.Types = []string{"A"}
		}
		return it
	})
	p := eventlog.Page{
		Items:     eventlog.Compile(event.Query{Items: rapid.SliceOfN(item, 1, 3).Draw(rt, "items")}),
		After:     uint64(end.Draw(rt, "after")),
		Before:    uint64(end.Draw(rt, "before")),
		Backwards: rapid.Bool().Draw(rt, "backwards"),
		Limit:     rapid.SampledFrom([]int{1, 7, 1000}).Draw(rt, "limit"),
		Bytes:     1 << 20,
	}
	if rapid.Bool().Draw(rt, "last") {
		p.Last = &eventlog.Last{}
	} else {
		p.Items = eventlog.Merge(p.Items)
	}
	return p
}

// readPage returns the positions of a page, the head that it tells at the end, and whether
// it is the end.
func readPage(t testing.TB, l *eventlog.Log, q driver.Querier, p eventlog.Page) (got []uint64) {
	head := uint64(0)
	if !p.Backwards {
		p.Head = &head
	}
	if p.Last != nil {
		p.Last = &eventlog.Last{}
	}
	list, end, err := l.Read(context.Background(), q, p)
	require.NoError(t, err)
	for i := range list {
		got = append(got, list[i].Position)
	}
	if end {
		got = append(got, 0, head)
	}
	return got
}
