package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
	"github.com/varvedb/varve/store/storetest/model"
)

// largeQuery is a query near a limit of the language. It finds some of the
// entities a, b and c, which have n = 1, 2, 3 and s = "x1", "x2", "x3".
type largeQuery struct {
	name string
	expr query.Expr
	want string

	// mayRefuse: the engine may have a lower, documented limit and return
	// ErrUnsupported.
	mayRefuse bool
}

// runLimits: an engine runs every query that the language accepts.
func runLimits(t *testing.T, h Harness) {
	l := newLedger(t, h)
	var create []entity.Op
	for i, name := range []string{"a", "b", "c"} {
		create = append(create, on(name, opCreate(1000, number("n", uint64(i+1)), text("s", fmt.Sprintf("x%d", i+1)))))
	}
	l.apply(t, create...)
	for _, c := range largeQueries() {
		t.Run(c.name, func(t *testing.T) {
			require.NoError(t, query.Check(c.expr))
			l.view(t, store.Head, func(s *store.Snapshot) { checkLarge(t, s, c, l.db.Engine().Capabilities()) })
		})
	}
	t.Run("beyond", func(t *testing.T) { testBeyondLimits(t, l) })
}

func checkLarge(t testing.TB, s *store.Snapshot, c largeQuery, caps driver.Capabilities) {
	t.Helper()
	n, err := s.Count(t.Context(), c.expr)
	deep := strings.Contains(c.name, "greatest depth")
	if deep && caps.SQLDepth > 0 || caps.MaxConditions > 0 && conditions(c.expr) > caps.MaxConditions {
		require.ErrorIs(t, err, store.ErrUnsupported)
		return
	}
	if c.mayRefuse && err != nil {
		require.ErrorIs(t, err, store.ErrUnsupported)
		require.ErrorContains(t, err, "split it")
		return
	}
	require.NoError(t, err)
	require.EqualValues(t, len(c.want), n)
	for _, opts := range []*store.QueryOptions{nil, {Limit: 2, Order: []store.Order{{Name: "n", Kind: num}}}} {
		if c.mayRefuse {
			break // once is slow enough
		}
		list, want := results(t, s, c.expr, opts), c.want
		if opts != nil {
			want = want[:min(len(want), 2)]
		}
		require.Equal(t, want, set(list))
	}
}

// conditions counts the comparisons of a query.
func conditions(e query.Expr) (n int) {
	switch e.(type) {
	case query.Compare, query.In, query.Glob:
		return 1
	}
	for _, term := range terms(e) {
		n += conditions(term)
	}
	return n
}

// repeat returns n terms.
func repeat(n int, term func(i int) query.Expr) []query.Expr {
	terms := make([]query.Expr, n)
	for i := range terms {
		terms[i] = term(i)
	}
	return terms
}

func largeQueries() []largeQuery {
	n := func(op query.CompareOp, value int) query.Expr { return compared("n", op, query.Number(uint64(value))) }
	two := n(query.Equal, 2)
	var numbers, keys []query.Value
	for i := range 5000 {
		numbers = append(numbers, query.Number(uint64(2*i)))
	}
	for i := range 800 {
		keys = append(keys, query.Text(entity.Key{30: byte(i >> 8), 31: byte(i)}.String()))
	}
	keys = append(keys, query.Text(keyOf("a").String()), query.Text(keyOf("c").String()))
	most := make([]query.Value, query.MaxList)
	for i := range most {
		most[i] = query.Number(uint64(i % 3))
	}
	list := []largeQuery{
		{name: "5000 numbers", expr: query.In{Name: "n", Values: numbers}, want: "b"},
		{name: "not in 5000 numbers", expr: query.In{Name: "n", Values: numbers, Negated: true}, want: "ac"},
		{name: "the longest list", expr: query.In{Name: "n", Values: most}, want: "ab"},
		{name: "5000 blocks", expr: query.In{Name: "$lastModifiedAtBlock", Values: numbers, Negated: true}, want: "abc"},
		{name: "no block", expr: compared("$lastModifiedAtBlock", query.NotEqual, query.Number(1<<63)), want: "abc"},
		{name: "800 keys", expr: query.In{Name: "$key", Values: keys}, want: "ac"},
		{name: "not in 800 keys", expr: query.In{Name: "$key", Values: keys, Negated: true}, want: "b"},
		{name: "16 two-way clauses", expr: query.And{Terms: repeat(16, func(i int) query.Expr {
			return query.Or{Terms: []query.Expr{two, n(query.Equal, 10+i)}}
		})}, want: "b"},
		{name: "negations to the greatest depth", expr: nested(query.MaxDepth-1, func(e query.Expr) query.Expr {
			return query.Not{Term: e}
		}, two), want: "ac"},
		{name: "and, or to the greatest depth", expr: alternating(query.MaxDepth, two), want: "b"},
		{name: "$all as often as allowed", expr: query.Or{Terms: repeat(query.MaxNodes-1, func(int) query.Expr { return query.All{} })}, want: "abc"},
		{name: "the longest pattern of stars", expr: query.Glob{Name: "s", Pattern: strings.Repeat("*", query.MaxPattern)}, want: "abc"},
		{name: "the longest set", expr: query.Glob{Name: "s", Pattern: "x[" + strings.Repeat("2-2", 1300) + "]"}, want: "b"},
		{name: "the longest string", expr: compared("s", query.Less, query.Text(strings.Repeat("x", query.MaxLength-10))), want: "abc"},
		{name: "the longest name", expr: query.Not{Term: compared(strings.Repeat("x", query.MaxLength-10), query.Equal, query.Number(1))}, want: "abc"},
	}
	return append(list, wideQueries(n)...)
}

// wideQueries returns queries with many comparisons. They are fewer than the
// language allows, because SQLite's time grows with the square of their number.
func wideQueries(n func(op query.CompareOp, value int) query.Expr) []largeQuery {
	var list []largeQuery
	for _, terms := range []int{100, 500} {
		list = append(list,
			largeQuery{name: fmt.Sprintf("or of %d", terms), want: "bc",
				expr: query.Or{Terms: repeat(terms, func(i int) query.Expr { return n(query.Equal, 2+i) })}},
			largeQuery{name: fmt.Sprintf("and of %d", terms), want: "ac",
				expr: query.And{Terms: repeat(terms, func(int) query.Expr { return n(query.NotEqual, 2) })}},
		)
	}
	return append(list, largeQuery{name: "or of 5000 patterns", want: "abc", mayRefuse: true,
		expr: query.Or{Terms: repeat(5000, func(int) query.Expr { return query.Glob{Name: "s", Pattern: "x?*"} })}})
}

// nested applies wrap to e several times.
func nested(times int, wrap func(query.Expr) query.Expr, e query.Expr) query.Expr {
	for range times {
		e = wrap(e)
	}
	return e
}

// alternating returns a tree that means the same as e. Its Ands and Ors
// alternate up to a height.
func alternating(height int, e query.Expr) query.Expr {
	nothing := query.Not{Term: query.All{}}
	for i := range height - 1 {
		if i%2 == 0 {
			e = query.And{Terms: []query.Expr{query.All{}, e}}
		} else {
			e = query.Or{Terms: []query.Expr{e, nothing}}
		}
	}
	return e
}

// testBeyondLimits: a tree that Parse cannot return is refused before the
// engine gets it.
func testBeyondLimits(t *testing.T, l *ledger) {
	one := compared("n", query.Equal, query.Number(1))
	s := l.at(t, store.Head)
	for name, q := range map[string]query.Expr{
		"too deep":      nested(query.MaxDepth, func(e query.Expr) query.Expr { return query.Not{Term: e} }, one),
		"an empty list": query.In{Name: "n"},
		"a pointer":     &query.All{},
	} {
		_, err := s.Count(t.Context(), q)
		require.ErrorIs(t, err, store.ErrInvalid, name)
		_, err = model.Collect(s.Query(t.Context(), q, nil))
		require.ErrorIs(t, err, store.ErrInvalid, name)
	}
	require.Len(t, results(t, s, one, nil), 1, "the snapshot is usable")
}
