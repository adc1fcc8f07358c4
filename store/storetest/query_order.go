package storetest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// ordered is a store whose entities have values to sort by: ties, values at the
// ends of the range, and none.
func ordered(t testing.TB, h Harness, layout string) *ledger {
	l := newLedger(t, h, layout)
	l.apply(t,
		on("a", opCreate(1000, owner(bob), number("n", 5), text("s", "b"), text("both", "x"))),
		on("b", opCreate(2000, owner(alice), number("n", math.MaxUint64), text("s", "B"), number("both", 3))),
		on("c", opCreate(1000, owner(carol), number("n", 0), text("s", ""))),
		on("d", opCreate(1<<40, owner(bob))))
	l.apply(t,
		on("e", opCreate(1000, owner(alice), number("n", 5), text("s", "é"), number("both", 1), text("both", "y"))),
		on("f", opCreate(1000, owner(bob), number("n", math.MaxInt64), text("s", "b"))),
		on("g", opCreate(1000, owner(bob), number("n", math.MaxInt64+1), text("s", "😀"))),
		on("h", opCreate(1000, owner(bob), number("n", 5), text("s", "\ue000"))))
	l.apply(t, on("b", opOwner(carol)), on("i", opCreate(1000)), on("j", opCreate(1000)), on("j", opDelete))
	l.apply(t, on("c", opExtend(500)), on("d", opUpdate(1000, text("s", "b\nb"))))
	return l
}

const str, num = entity.String, entity.Numeric

// orders are orders with the names of the store of ordered as they sort.
var orders = []struct {
	order []store.Order
	want  string
}{
	{nil, "ihgfedcba"},
	{[]store.Order{{Name: "n", Kind: num}}, "cheafgbid"},
	{[]store.Order{{Name: "n", Kind: num, Desc: true}}, "bgfheacid"},
	{[]store.Order{{Name: "s", Kind: str}}, "cbfadehgi"},
	{[]store.Order{{Name: "s", Kind: str, Desc: true}}, "ghedfabci"},
	{[]store.Order{{Name: "both", Kind: num}}, "ebihgfdca"},
	{[]store.Order{{Name: "both", Kind: num, Desc: true}}, "beihgfdca"},
	{[]store.Order{{Name: "both", Kind: str}}, "aeihgfdcb"},
	{[]store.Order{{Name: "both", Kind: str, Desc: true}}, "eaihgfdcb"},
	{[]store.Order{{Name: "nothing", Kind: num}}, "ihgfedcba"},
	{[]store.Order{{Name: "nothing", Kind: str, Desc: true}}, "ihgfedcba"},
	{[]store.Order{{Name: "no\x00thing", Kind: str}}, "ihgfedcba"},
	{[]store.Order{{Name: "n\x00", Kind: num, Desc: true}}, "ihgfedcba"},
	{[]store.Order{{Name: "$sequence"}}, "abcdefghi"},
	{[]store.Order{{Name: "$sequence", Kind: num, Desc: true}}, "ihgfedcba"},
	{[]store.Order{{Name: "$createdAtBlock"}}, "dcbahgfei"},
	{[]store.Order{{Name: "$createdAtBlock", Desc: true}}, "ihgfedcba"},
	{[]store.Order{{Name: "$lastModifiedAtBlock"}}, "ahgfeibdc"},
	{[]store.Order{{Name: "$lastModifiedAtBlock", Desc: true}}, "dcibhgfea"},
	{[]store.Order{{Name: "$expiration"}}, "cahgfeidb"},
	{[]store.Order{{Name: "$expiration", Desc: true}}, "bdihgfeac"},
	{[]store.Order{{Name: "$owner"}}, "iedhgfacb"},
	{[]store.Order{{Name: "$owner", Desc: true}}, "cbhgfaied"},
	{[]store.Order{{Name: "$creator", Kind: str}}, "iebhgfdac"},
	{[]store.Order{{Name: "$key"}}, "abcdefghi"},
	{[]store.Order{{Name: "$key", Desc: true}}, "ihgfedcba"},
	{[]store.Order{{Name: "$txIndex"}}, "igfecbahd"},
	{[]store.Order{{Name: "$opIndex", Desc: true}}, "gcifbheda"},
	{[]store.Order{{Name: "n", Kind: num}, {Name: "s", Kind: str}}, "caehfgbdi"},
	{[]store.Order{{Name: "n", Kind: num, Desc: true}, {Name: "s", Kind: str, Desc: true}}, "bgfheacdi"},
	{[]store.Order{{Name: "s", Kind: str}, {Name: "n", Kind: num}}, "cbafdehgi"},
	{[]store.Order{{Name: "$owner"}, {Name: "n", Kind: num, Desc: true}}, "eidgfhabc"},
	{[]store.Order{{Name: "$owner", Desc: true}, {Name: "n", Kind: num}, {Name: "$key"}}, "cbahfgedi"},
	{[]store.Order{{Name: "both", Kind: num}, {Name: "both", Kind: str, Desc: true}}, "ebaihgfdc"},
	{[]store.Order{{Name: "$createdAtBlock", Desc: true}, {Name: "$owner"}, {Name: "s", Kind: str, Desc: true}, {Name: "n", Kind: num}}, "ieghfdabc"},
	{[]store.Order{{Name: "$lastModifiedAtBlock"}, {Name: "$sequence"}}, "aefghbicd"},
	{[]store.Order{{Name: "n\x00", Kind: num, Desc: true}, {Name: "n", Kind: num}, {Name: "nothing", Kind: str}}, "cheafgbid"},
	{[]store.Order{
		{Name: "nothing", Kind: num}, {Name: "nothing", Kind: str}, {Name: "both", Kind: num}, {Name: "both", Kind: str},
		{Name: "$creator"}, {Name: "s", Kind: str}, {Name: "n", Kind: num}, {Name: "$key"},
	}, "ebaifdhgc"},
}

// sequenceOf joins names in the order given.
func sequenceOf(list []*store.Entity) (joined string) {
	for _, name := range names(list) {
		joined += name
	}
	return joined
}

func runOrder(t *testing.T, h Harness, layout string) {
	l := ordered(t, h, layout)
	for _, c := range orders {
		t.Run(fmt.Sprint(c.order), func(t *testing.T) {
			l.view(t, store.Head, func(s *store.Snapshot) { checkOrdered(t, s, c.order, c.want) })
		})
	}
	t.Run("some", func(t *testing.T) {
		some := compared("s", query.NotEqual, query.Text("b"))
		for _, c := range orders {
			want := ""
			for _, name := range c.want {
				if !slices.Contains([]rune("afi"), name) {
					want += string(name)
				}
			}
			list := l.find(t, some, &store.QueryOptions{Order: c.order, Limit: 4})
			require.Equal(t, want[:4], sequenceOf(list), "%v", c.order)
		}
	})
	t.Run("refused", func(t *testing.T) { testOrderRefused(t, l) })
	t.Run("same sequence", func(t *testing.T) { testSameSequence(t, l) })
}

// checkOrdered checks an order whole and in pages: each begins behind every entity once,
// the last is full, and the first is not.
func checkOrdered(t testing.TB, s *store.Snapshot, order []store.Order, want string) {
	t.Helper()
	require.Equal(t, want, sequenceOf(results(t, s, nil, &store.QueryOptions{Order: order})))
	for _, size := range []int{1, len(want), len(want) + 1} {
		require.Equal(t, want, sequenceOf(pages(t, s, nil, store.QueryOptions{Order: order, Limit: size})), "pages of %d", size)
	}
	opts := store.QueryOptions{Order: order, Limit: 3}
	first := results(t, s, nil, &opts)
	opts.After, opts.Limit = cursorAfter(t, s, first[2], opts), 0
	require.Equal(t, want[3:], sequenceOf(results(t, s, nil, &opts)), "the rest without a limit")
}

// pages reads all pages of a query.
func pages(t testing.TB, s *store.Snapshot, q query.Expr, opts store.QueryOptions) (all []*store.Entity) {
	t.Helper()
	for {
		page := results(t, s, q, &opts)
		all = append(all, page...)
		require.LessOrEqual(t, len(page), opts.Limit)
		if len(page) < opts.Limit {
			return all
		}
		opts.After = cursorAfter(t, s, page[len(page)-1], opts)
	}
}

func cursorAfter(t testing.TB, s *store.Snapshot, e *store.Entity, opts store.QueryOptions) store.Cursor {
	t.Helper()
	c, err := s.Cursor(e, &opts)
	require.NoError(t, err)
	return c
}

func testOrderRefused(t *testing.T, l *ledger) {
	s := l.at(t, store.Head)
	numbers := []store.Order{}
	for i := range store.MaxOrder + 1 {
		numbers = append(numbers, store.Order{Name: fmt.Sprint("n", i), Kind: num})
	}
	for name, order := range map[string][]store.Order{
		"no name":              {{}},
		"no type":              {{Name: "n"}},
		"unknown type":         {{Name: "n", Kind: 9}},
		"unknown $ name":       {{Name: "$nothing", Kind: num}},
		"$all":                 {{Name: "$all", Kind: str}},
		"$owner as a number":   {{Name: "$owner", Kind: num}},
		"$sequence as a text":  {{Name: "$sequence", Kind: str}},
		"type without name":    {{Kind: num}},
		"desc without name":    {{Desc: true}},
		"name not UTF-8":       {{Name: "n\xff", Kind: num}},
		"name not UTF-8, desc": {{Name: "\xff", Kind: str, Desc: true}},
		"the second":           {{Name: "n", Kind: num}, {Name: "s"}},
		"twice":                {{Name: "n", Kind: num}, {Name: "s", Kind: str}, {Name: "n", Kind: num}},
		"up and down":          {{Name: "s", Kind: str}, {Name: "s", Kind: str, Desc: true}},
		"$owner twice":         {{Name: "$owner"}, {Name: "$owner", Kind: str}},
		"too many":             numbers,
	} {
		_, err := collect(s.Query(t.Context(), nil, &store.QueryOptions{Order: order}))
		require.ErrorIs(t, err, store.ErrInvalid, name)
	}
	_, err := collect(s.Query(t.Context(), nil, &store.QueryOptions{Limit: -1}))
	require.ErrorIs(t, err, store.ErrInvalid)
	require.Len(t, results(t, s, nil, &store.QueryOptions{Order: numbers[:store.MaxOrder]}), 9)
	require.Len(t, results(t, s, nil, nil), 9, "the snapshot is usable")
}

// testSameSequence: operations that carry the same indexes are ordered by key.
func testSameSequence(t *testing.T, l *ledger) {
	var create []store.Op
	for _, name := range []string{"y", "x", "z"} {
		create = append(create, on(name, opCreate(1000, number("same", 1))))
	}
	l.applyBlocks(t, store.Block{Number: l.head + 1, Ops: create})
	same := compared("same", query.Equal, query.Number(1))
	l.view(t, store.Head, func(s *store.Snapshot) {
		for _, order := range [][]store.Order{nil, {{Name: "same", Kind: num}}, {{Name: "$sequence", Desc: true}}, {{Name: "same", Kind: num}, {Name: "$createdAtBlock"}}} {
			require.Equal(t, "xyz", sequenceOf(results(t, s, same, &store.QueryOptions{Order: order})))
			require.Equal(t, "xyz", sequenceOf(pages(t, s, same, store.QueryOptions{Order: order, Limit: 1})))
		}
	})
}
