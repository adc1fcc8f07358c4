package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// compareRead compares a read with a model.
func compareRead(t testing.TB, s eventStream, model []event.Sequenced, q event.Query, opts *event.ReadOptions) {
	want := expected(model, q, opts)
	list, err := collect(s.Read(soon(t), q, opts))
	require.NoError(t, err)
	require.True(t, slices.Equal(want, positionsOf(list)), "query %+v, options %+v: want %v, got %v", q, opts, want, positionsOf(list))
}

func positionsOf(list []event.Sequenced) (positions []uint64) {
	for i := range list {
		positions = append(positions, list[i].Position)
	}
	return positions
}

// expected returns the positions of what a read yields.
func expected(model []event.Sequenced, q event.Query, opts *event.ReadOptions) (want []uint64) {
	items := q.Items
	if len(items) == 0 {
		items = make([]event.Item, 1)
	}
	last := make([]uint64, len(items)) // of each item
	for _, e := range model {
		inside := opts.From == 0 || (opts.Backwards && e.Position <= opts.From) || (!opts.Backwards && e.Position >= opts.From)
		inside = inside && !e.Time.Before(opts.Since) && (opts.Until.IsZero() || e.Time.Before(opts.Until))
		if !inside || !q.Matches(&e.Event) {
			continue
		}
		want = append(want, e.Position)
		for i := range items {
			if len(q.Items) == 0 || anyOf(items[i]).Matches(&e.Event) {
				last[i] = e.Position
			}
		}
	}
	if opts.OnlyLast {
		want = slices.DeleteFunc(want, func(at uint64) bool { return !slices.Contains(last, at) })
	}
	if opts.Backwards {
		slices.Reverse(want)
	}
	if opts.Limit > 0 && len(want) > opts.Limit {
		want = want[:opts.Limit]
	}
	return want
}

// manyTags asks for one of many tags.
func manyTags(types string, n int) (q event.Query) {
	for i := range n {
		q.Items = append(q.Items, item(types, fmt.Sprintf("few:%d", i)))
	}
	return q
}

// runEventTime compares reads by time with a model, on a clock that stands still for some
// events and falls for others.
func runEventTime(t *testing.T, h Harness) {
	base := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now := base
	s := h.connected(t, h.openEvents(t, h.quickURL(t), store.EventOptions{IndexEvery: 4, Now: func() time.Time { return now }}))
	require.Empty(t, s.read(t, event.All(), &event.ReadOptions{Since: base}), "no event at all")
	var head uint64 = 7
	require.Empty(t, s.read(t, event.All(), &event.ReadOptions{Until: base, Head: &head}))
	require.Zero(t, head)
	for i, step := range []time.Duration{0, time.Second, 0, 0, -time.Minute, 2 * time.Minute, time.Nanosecond, time.Microsecond, time.Hour, 0} {
		now = now.Add(step)
		s.add(t, ev([]string{"A", "B"}[i%2], fmt.Sprint(i), "x:1"), ev("C", ""))
	}
	model := s.all(t)
	var times []time.Time
	for _, e := range model {
		times = append(times, e.Time, e.Time.Add(-time.Nanosecond), e.Time.Add(time.Nanosecond))
	}
	times = append(times, time.Time{}, base.Add(-time.Hour), base.Add(100*time.Hour))
	d := &drawer{Rand: randomSource(t, 0)}
	for range 100 {
		opts := &event.ReadOptions{
			Since:     one(d, times...),
			Until:     one(d, times...),
			From:      uint64(d.IntN(len(model) + 2)),
			Backwards: d.chance(2),
			OnlyLast:  d.chance(2),
		}
		q := one(d, event.All(), event.Of("A"), event.Tagged(event.NewTag("x", "1")), anyOf(item("A"), item("B", "x:1")))
		var head uint64
		opts.Head = &head
		compareRead(t, s, model, q, opts)
		if opts.Backwards {
			continue
		}
		want := uint64(len(model))
		for want > 0 && !opts.Until.IsZero() && !model[want-1].Time.Before(opts.Until) {
			want--
		}
		require.Equal(t, want, head, "options %+v", opts)
	}
}

// runEventMany decides over more than a thousand things at once.
func runEventMany(t *testing.T, h Harness) {
	s := h.indexedEvents(t)
	const products = 1200
	batch := make([]event.Event, 0, products)
	for i := range cap(batch) {
		batch = append(batch, ev("Stocked", fmt.Sprint(i), fmt.Sprintf("product:%d", i)))
	}
	s.add(t, batch[:products/2]...)
	s.add(t, batch[products/2:]...)
	s.add(t, ev("Sold", "", "product:7", "product:1199")) // has no postings
	var q event.Query
	for i := range products / 2 {
		it := item("", fmt.Sprintf("product:%d", 2*i+1))
		if i%200 == 0 {
			it.Tags = append(it.Tags, event.NewTag("product", "none"))
		}
		q.Items = append(q.Items, it, item("Stocked", fmt.Sprintf("product:%d", 2*i+1)))
	}
	var head uint64
	list := s.read(t, q, &event.ReadOptions{Head: &head})
	require.Len(t, list, products/2+1)
	require.EqualValues(t, products+1, head)
	require.Len(t, s.read(t, q, &event.ReadOptions{Backwards: true}), len(list))
	require.Len(t, s.read(t, q, &event.ReadOptions{OnlyLast: true}), products/2+1)
	_, err := s.Append(t.Context(), []event.Event{ev("Sold", "", "product:8")}, &event.Condition{FailIfEventsMatch: q, After: head})
	require.NoError(t, err)
	_, err = s.Append(t.Context(), []event.Event{ev("Sold", "")}, &event.Condition{FailIfEventsMatch: q, After: products - 1})
	var conflict *event.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Contains(t, []uint64{products, products + 1}, conflict.Position)
}
