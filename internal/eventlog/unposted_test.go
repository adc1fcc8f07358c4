package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// TestRecent compares what readers find in memory with what they find by looking through
// the events, in views of any age, beside two writers, each with a memory of its own.
func TestRecent(t *testing.T) {
	e, l := open(t)
	tails := []*eventlog.Tail{l.NewTail(true, 40), l.NewTail(true, 15)}
	rnd := rand.New(rand.NewPCG(3, 3))
	var views []driver.Reader
	recent := []*eventlog.Recent{tails[0].Recent(), tails[1].Recent(), nil}
	rapid.Check(t, func(rt *rapid.T) {
		for range rapid.IntRange(0, 9).Draw(rt, "appends") {
			write(t, e, rapid.SampledFrom(tails).Draw(rt, "writer"), randomEvent(rnd))
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
			recent[2] = l.NewTail(true, 1).Recent()
		}
		page.Recent = rapid.SampledFrom(recent).Draw(rt, "reader")
		if got := readPage(t, l, q, page); fmt.Sprint(got) != fmt.Sprint(want) {
			rt.Fatalf("%+v: want %v, got %v", page, want, got)
		}
	})
	for _, view := range views {
		require.NoError(t, view.Close())
	}
}

// TestRecentStatements counts how often the events without postings are looked through:
// only in a view that is older than what is known.
func TestRecentStatements(t *testing.T) {
	e, l := open(t)
	tail := l.NewTail(true, 40)
	rnd := rand.New(rand.NewPCG(4, 4))
	page := eventlog.Page{Items: eventlog.Compile(event.Of("A")), Limit: 5, Bytes: 1 << 20, Backwards: true}
	var before driver.Reader
	c := &counter{}
	for i := range 100 {
		write(t, e, tail, randomEvent(rnd))
		view, err := e.Snapshot(t.Context())
		require.NoError(t, err)
		c.Querier, page.Recent = view, tail.Recent()
		readPage(t, l, c, page)
		if i == 0 {
			before = view
			continue
		}
		require.NoError(t, view.Close())
	}
	require.Zero(t, c.lookedThrough)
	require.Less(t, c.events, 100*7+10, "what is new is read once, and none that does not match")

	view, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	page.Recent = l.NewTail(true, 40).Recent()
	c.Querier = view
	readPage(t, l, c, page)
	require.Zero(t, c.lookedThrough)
	c.Querier = before
	require.Equal(t, readPage(t, l, before, eventlog.Page{Items: page.Items, Limit: 5, Bytes: 1 << 20, Backwards: true}), readPage(t, l, c, page))
	require.Equal(t, 1, c.lookedThrough)
	require.NoError(t, errors.Join(view.Close(), before.Close()))

	for range 10 {
		write(t, e, tail, make([]event.Event, 500)...)
	}
	write(t, e, tail, event.Event{Type: "A"})
	view, err = e.Snapshot(t.Context())
	require.NoError(t, err)
	c = &counter{Querier: view}
	page.Recent = tail.Recent()
	require.Equal(t, tail.Head(), readPage(t, l, c, page)[0], "what has come since somebody asked")
	require.Zero(t, c.lookedThrough)
	require.NoError(t, view.Close())

	tail = l.NewTail(true, 4000)
	write(t, e, tail, make([]event.Event, 1000)...)
	if view, err = e.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	c = &counter{Querier: view}
	page.Recent = l.NewTail(true, 4000).Recent()
	for range 100 {
		readPage(t, l, c, page)
	}
	require.Equal(t, 8, c.lookedThrough, "who reads a few times does not read everything")
	require.NoError(t, view.Close())
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
