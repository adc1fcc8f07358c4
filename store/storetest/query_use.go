package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/query"
)

// runUse checks how queries are run and what they return of entities.
func runUse(t *testing.T, h Harness, layout string) {
	l := queried(t, h, layout)
	t.Run("parts", func(t *testing.T) { testParts(t, l) })
	t.Run("one at a time", func(t *testing.T) { testOneAtATime(t, l) })
	t.Run("stop early", func(t *testing.T) { testStopEarly(t, l) })
	t.Run("cancel", func(t *testing.T) { testCancelQuery(t, l) })
	t.Run("many shapes", func(t *testing.T) { testManyShapes(t, l) })
	t.Run("data is no SQL", func(t *testing.T) { testInjection(t, h, layout) })
}

// testParts asks for each combination of parts, with and without a limit.
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
			want = store.Entity{Key: want.Key, Content: want.Content,
				StringAttributes: want.StringAttributes, NumericAttributes: want.NumericAttributes}
		}
		for _, limit := range []int{0, 1, 5} {
			for _, order := range [][]store.Order{nil, {{Name: "n", Kind: num}}} {
				list := l.find(t, q, &store.QueryOptions{Parts: parts, Limit: limit, Order: order})
				requireSame(t, []*store.Entity{&want}, list, "parts %b, limit %d", parts, limit)
			}
		}
	}
}

// testOneAtATime: a snapshot whose query is running refuses anything else.
func testOneAtATime(t *testing.T, l *ledger) {
	s := l.at(t, store.Head)
	seen := 0
	for e, err := range s.Query(t.Context(), nil, nil) {
		require.NoError(t, err)
		require.NotNil(t, e)
		seen++
		_, err = collect(s.Query(t.Context(), nil, nil))
		require.ErrorIs(t, err, store.ErrInvalid)
		_, err = s.Count(t.Context(), nil)
		require.ErrorIs(t, err, store.ErrInvalid)
		_, err = s.Get(t.Context(), e.Key)
		require.ErrorIs(t, err, store.ErrInvalid)
		other, err := l.ents.At(t.Context(), store.Head)
		require.NoError(t, err, "another snapshot may")
		_, err = other.Get(t.Context(), e.Key)
		require.NoError(t, err)
		require.NoError(t, other.Close())
	}
	n := countOf(t, s, nil)
	require.EqualValues(t, n, seen)
}

// testStopEarly: a loop that ends early gives the snapshot back.
func testStopEarly(t *testing.T, l *ledger) {
	s := l.at(t, store.Head)
	seq := s.Query(t.Context(), nil, nil)
	for range 3 {
		for e, err := range seq {
			require.NoError(t, err)
			_, err = s.Get(t.Context(), e.Key)
			require.ErrorIs(t, err, store.ErrInvalid)
			break
		}
		_, err := s.Get(t.Context(), keyOf("a"))
		require.NoError(t, err)
	}
	func() {
		defer func() { require.NotNil(t, recover()) }()
		for _, err := range seq {
			require.NoError(t, err)
			panic("in the loop")
		}
	}()
	_, err := s.Get(t.Context(), keyOf("a"))
	require.NoError(t, err)
	for _, err := range seq {
		require.NoError(t, err)
		break
	}
	require.NoError(t, s.Close())
	l.apply(t)
}

// testCancelQuery: a query that is cancelled while it runs ends with that error
// or with all its results, and the snapshot goes on.
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

// testManyShapes runs more kinds of statement than a connection keeps prepared.
func testManyShapes(t *testing.T, l *ledger) {
	s := l.at(t, store.Head)
	below := func(name string, n int) query.In {
		values := make([]query.Value, n)
		for i := range values {
			values[i] = query.Number(uint64(i))
		}
		return query.In{Name: name, Values: values}
	}
	for cpu := 1; cpu <= 25; cpu++ {
		for size := 1; size <= 25; size++ {
			count := countOf(t, s, query.And{Terms: []query.Expr{below("cpu", cpu), below("size", size)}})
			want := 1 // e has zeros
			if cpu > 16 && size > 8 {
				want = 2 // and c
			}
			require.EqualValues(t, want, count)
		}
	}
	_, err := s.Get(t.Context(), keyOf("a"))
	require.NoError(t, err)
}

// testInjection uses text that means something in SQL as names and values, of
// attributes, comparisons and orders.
func testInjection(t *testing.T, h Harness, layout string) {
	attacks := []string{
		`x'; DROP TABLE payloads; --`, `x"; DROP TABLE payloads; --`, `' OR '1'='1`, `" OR ""="`, `x') OR 1=1 --`, "`", "``", `\`, `\'`, `''`,
		`?`, `??`, `?1`, `$1`, `:name`, `@name`, `%s`, `%`, `_`, `/*`, `*/`, `--`, `;`, `#`, `x' UNION SELECT 1 --`, `'||(SELECT 1)||'`,
		`from_block`, `a.value`, `NULL`, `1; PRAGMA writable_schema=1`, `[`, `E'\x41'`, `$$x$$`, `{"$expiration":1}`, `","$expiration":1,"`,
	}
	l := newLedger(t, h, layout)
	var create []store.Op
	for i, s := range attacks {
		name := "n" + s // a name must not begin with $
		create = append(create, on(fmt.Sprintf("%02d", i), opCreate(1000, text(name, s), number(name, uint64(i)), text("all", s), content(s, s))))
	}
	l.apply(t, create...)
	s := l.at(t, store.Head)
	for i, attack := range attacks {
		name, want := "n"+attack, fmt.Sprintf("%02d", i)
		for _, q := range []query.Expr{
			compared(name, query.Equal, query.Text(attack)),
			compared(name, query.Equal, query.Number(uint64(i))),
			compared("all", query.Equal, query.Text(attack)),
			query.In{Name: "all", Values: []query.Value{query.Text(attack), query.Text("x" + attack)}},
			query.Glob{Name: name, Pattern: "*"},
			compared(name, query.GreaterOrEqual, query.Text("")),
		} {
			require.Equal(t, []string{want}, names(results(t, s, q, nil)), "%s", q)
			require.Equal(t, q, parse(t, q.String()))
		}
		order := []store.Order{{Name: name, Kind: str}}
		list := results(t, s, nil, &store.QueryOptions{Order: order, Limit: 1})
		require.Equal(t, []string{want}, names(list), "%q", attack)
		after := cursorAfter(t, s, list[0], store.QueryOptions{Order: order})
		rest := results(t, s, nil, &store.QueryOptions{Order: order, After: after})
		require.Len(t, rest, len(attacks)-1, "%q", attack)
	}
	n := countOf(t, s, nil)
	require.EqualValues(t, len(attacks), n)
}
