package storetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
	"github.com/varvedb/varve/store/storetest/model"
)

// runUse tests how queries are run and which parts of entities they return.
func runUse(t *testing.T, h Harness) {
	l := newLedger(t, h)
	l.apply(t, on("a", opCreate(1000, number("cpu", 0), number("size", 0))), on("b", opCreate(1000, number("cpu", 16), number("size", 8))),
		on("c", opCreate(1000, number("cpu", 4))), on("d", opCreate(1000)))
	parts[*ledger]{
		{"parts", testParts},
		{"one at a time", testOneAtATime},
		{"stop early", testStopEarly},
		{"cancel", testCancelQuery},
	}.run(t, l)
}

// testParts selects each combination of parts, with a limit and without.
func testParts(t *testing.T, l *ledger) {
	l.apply(t, on("parts", opCreate(1000, owner(bob), content("text/plain", "payload"), text("part", "x"), number("n", 1))))
	q := compared("part", query.Equal, query.Text("x"))
	whole := l.get(t, keyOf("parts"))
	for parts := store.Parts(0); parts <= store.Metadata|store.Attributes|store.Content; parts++ {
		want := *whole
		if parts != 0 && parts&store.Attributes == 0 {
			want.StringAttributes, want.NumericAttributes = nil, nil
		}
		if parts != 0 && parts&store.Content == 0 {
			want.Content = nil
		}
		if parts != 0 && parts&store.Metadata == 0 {
			want = entity.Entity{Key: want.Key, Content: want.Content,
				StringAttributes: want.StringAttributes, NumericAttributes: want.NumericAttributes}
		}
		for _, limit := range []int{0, 1, 5} {
			for _, order := range [][]store.Order{nil, {{Name: "n", Kind: num}}} {
				list := l.find(t, q, &store.QueryOptions{Parts: parts, Limit: limit, Order: order})
				requireSame(t, []*entity.Entity{&want}, list, "parts %b, limit %d", parts, limit)
			}
		}
	}
}

// testOneAtATime: a snapshot with a running query refuses other calls.
func testOneAtATime(t *testing.T, l *ledger) {
	s := l.at(t, store.Head)
	seen := 0
	for e, err := range s.Query(t.Context(), nil, nil) {
		require.NoError(t, err)
		require.NotNil(t, e)
		seen++
		refuses(t, store.ErrInvalid)(model.Collect(s.Query(t.Context(), nil, nil)))
		refuses(t, store.ErrInvalid)(s.Count(t.Context(), nil))
		refuses(t, store.ErrInvalid)(s.Get(t.Context(), e.Key))
		other, err := l.ents.At(t.Context(), store.Head)
		require.NoError(t, err, "another snapshot may")
		call1(t, other.Get, e.Key)
		require.NoError(t, other.Close())
	}
	n := call1(t, s.Count, nil)
	require.EqualValues(t, n, seen)
}

// testStopEarly: after a loop that ends early the snapshot accepts calls again.
func testStopEarly(t *testing.T, l *ledger) {
	s := l.at(t, store.Head)
	seq := s.Query(t.Context(), nil, nil)
	for range 3 {
		for e, err := range seq {
			require.NoError(t, err)
			refuses(t, store.ErrInvalid)(s.Get(t.Context(), e.Key))
			break
		}
		call1(t, s.Get, keyOf("a"))
	}
	func() {
		defer func() { require.NotNil(t, recover()) }()
		for _, err := range seq {
			require.NoError(t, err)
			panic("in the loop")
		}
	}()
	call1(t, s.Get, keyOf("a"))
	for _, err := range seq {
		require.NoError(t, err)
		break
	}
	require.NoError(t, s.Close())
	l.apply(t)
}

// testCancelQuery: a query that is cancelled ends with that error or with all
// its results. The snapshot accepts further calls.
func testCancelQuery(t *testing.T, l *ledger) {
	s := l.at(t, store.Head)
	all := results(t, s, nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := 0
	for e, err := range s.Query(ctx, nil, nil) {
		cancel()
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
			require.Nil(t, e)
			break
		}
		seen++
	}
	require.LessOrEqual(t, seen, len(all))
	requireSame(t, all, results(t, s, nil, nil))
}
