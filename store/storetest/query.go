package storetest

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
	"github.com/varvedb/varve/store/storetest/model"
)

// runQuery tests on each layout the values and patterns that engines get wrong,
// and how queries are run. Package query tests the meaning of queries, and
// runDifferential that layouts agree with it.
func runQuery(t *testing.T, h Harness) {
	suites := parts[Harness]{
		{"values", runValues},
		{"glob", runGlobs},
		{"use", runUse},
		// The other tests do not depend on the layout.
		{"limits", runLimits},
		{"refused", runRefused},
	}
	layouts := h.layouts()
	if h.slow() {
		layouts = layouts[:1]
	}
	for _, h.layout = range layouts {
		// Arkiv-ordered has a plan for the newest matches that arkiv does not
		// have.
		if h.repeats() && h.layout != "arkiv-ordered" {
			continue
		}
		t.Run(h.layout, func(t *testing.T) { suites.run(t, h) })
		suites = suites[:3]
	}
}

// names returns the names of entities whose keys come from keyOf.
func names(list []*entity.Entity) []string {
	found := make([]string, len(list))
	for i, e := range list {
		found[i] = strings.TrimRight(string(e.Key[:]), "\x00")
	}
	return found
}

// set returns the names as one text, sorted.
func set(list []*entity.Entity) string {
	return strings.Join(slices.Sorted(slices.Values(names(list))), "")
}

func parse(t testing.TB, text string) query.Expr {
	t.Helper()
	q, err := query.Parse(text)
	require.NoError(t, err, text)
	return q
}

// compared returns the comparison that Parse returns for its text.
func compared(name string, op query.CompareOp, v query.Value) query.Expr {
	return query.Compare{Name: name, Op: op, Value: v}
}

const str, num = entity.String, entity.Numeric

func cursorAfter(t testing.TB, s *store.Snapshot, e *entity.Entity, opts store.QueryOptions) store.Cursor {
	t.Helper()
	return must(s.Cursor(e, &opts))(t)
}

// runRefused tests orders and cursors that are refused.
func runRefused(t *testing.T, h Harness) {
	l := newLedger(t, h, history()...)
	parts[*ledger]{
		{"order", testOrderRefused},
		{"cursor", testCursorRefused},
	}.run(t, l)
}

func testOrderRefused(t *testing.T, l *ledger) {
	s := l.at(t, store.Head)
	numbers := []store.Order{}
	for i := range 8 + 1 {
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
		_, err := model.Collect(s.Query(t.Context(), nil, &store.QueryOptions{Order: order}))
		require.ErrorIs(t, err, store.ErrInvalid, name)
	}
	refuses(t, store.ErrInvalid)(model.Collect(s.Query(t.Context(), nil, &store.QueryOptions{Limit: -1})))
	require.Len(t, results(t, s, nil, &store.QueryOptions{Order: numbers[:8]}), 2, "the snapshot is usable")
}

func testCursorRefused(t *testing.T, l *ledger) {
	s := l.at(t, store.Head)
	list := results(t, s, nil, nil)
	good := cursorAfter(t, s, list[0], store.QueryOptions{})
	encoded := func(text string) store.Cursor {
		return store.Cursor(base64.RawURLEncoding.EncodeToString([]byte(text)))
	}
	for name, c := range map[string]store.Cursor{
		"not base64":     "garbage!",
		"short":          good[:len(good)-3],
		"long":           good + "AAAA",
		"padded":         good + "==",
		"not JSON":       encoded("garbage"),
		"no object":      encoded("7"),
		"no fields":      encoded("{}"),
		"negative block": encoded(`{"b":-1,"s":1,"e":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}`),
		"short key":      encoded(`{"b":1,"s":1,"e":"AAAA"}`),
		"SQL":            "' OR 1=1 --",
	} {
		_, err := model.Collect(s.Query(t.Context(), nil, &store.QueryOptions{After: c}))
		require.ErrorIs(t, err, store.ErrInvalid, name)
	}
	testCursorOtherOrder(t, s, list)
	single := encoded(`{"b":1003,"h":"AAAAAAAAAAA=","o":"n","k":2,"n":5,"s":1,"e":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}`)
	for _, order := range [][]store.Order{nil, {{Name: "n", Kind: num}}} {
		_, err := model.Collect(s.Query(t.Context(), nil, &store.QueryOptions{After: single, Order: order}))
		require.ErrorIs(t, err, store.ErrInvalid, "a cursor of a version that sorted by one attribute")
	}
	_, err := s.Cursor(list[0], &store.QueryOptions{Parts: store.Content})
	require.ErrorIs(t, err, store.ErrInvalid, "without metadata there is no place to go on from")
	refuses(t, store.ErrInvalid)(s.Cursor(list[0], &store.QueryOptions{Order: []store.Order{{Name: "n"}}}))
	refuses(t, store.ErrInvalid)(s.Cursor(list[0], &store.QueryOptions{After: "garbage!"}))
	c := must(s.Cursor(list[0], nil))(t)
	require.Equal(t, good, c)
	require.Len(t, results(t, s, nil, &store.QueryOptions{After: c}), len(list)-1, "the snapshot is usable")
}

// testCursorOtherOrder uses the cursor of each order with each other order.
func testCursorOtherOrder(t testing.TB, s *store.Snapshot, list []*entity.Entity) {
	t.Helper()
	n, s1 := store.Order{Name: "n", Kind: num}, store.Order{Name: "s", Kind: str}
	cases := [][]store.Order{
		nil, {n}, {{Name: "n", Kind: num, Desc: true}}, {{Name: "n", Kind: str}}, {s1},
		{{Name: "$sequence", Desc: true}}, {{Name: "$key"}}, {n, s1}, {s1, n}, {n, {Name: "s", Kind: str, Desc: true}}, {n, s1, {Name: "$key"}},
	}
	for i, from := range cases {
		c := cursorAfter(t, s, list[0], store.QueryOptions{Order: from})
		for j, to := range cases {
			_, err := model.Collect(s.Query(t.Context(), nil, &store.QueryOptions{Order: to, After: c}))
			if i == j {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, store.ErrInvalid, "from %v to %v", from, to)
			}
		}
	}
}
