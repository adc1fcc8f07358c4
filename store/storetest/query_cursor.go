package storetest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
)

// runCursor checks paging while the store changes, and what is no cursor.
func runCursor(t *testing.T, h Harness, layout string) {
	t.Run("head moves", func(t *testing.T) { testCursorHeadMoves(t, h, layout) })
	t.Run("refused", func(t *testing.T) { testCursorRefused(t, h, layout) })
	t.Run("rewind and prune", func(t *testing.T) { testCursorEnds(t, h, layout) })
	t.Run("past", func(t *testing.T) { testCursorPast(t, h, layout) })
}

// testCursorHeadMoves reads a page, applies a block that creates, changes and
// ends entities, and reads on, in orders of each kind. With history the pages are those
// of the block of the first; without, they go on at the head from the same
// place.
func testCursorHeadMoves(t *testing.T, h Harness, layout string) {
	l := ordered(t, h, layout)
	start := l.head
	for i, c := range orders {
		if i%3 != 0 {
			continue
		}
		opts := store.QueryOptions{Order: c.order, Limit: 2}
		var all []*store.Entity
		for i := 0; ; i++ {
			var page []*store.Entity
			l.view(t, store.Head, func(s *store.Snapshot) {
				page = results(t, s, nil, &opts)
				if len(page) == opts.Limit {
					opts.After = cursorAfter(t, s, page[1], opts)
				}
			})
			all = append(all, page...)
			if len(page) < opts.Limit {
				break
			}
			l.apply(t, on(fmt.Sprintf("%c", 'p'+i), opCreate(1000, number("n", 5), text("s", "b"))))
			if l.ents.Temporal() {
				l.apply(t, on(string(c.want[2*i+2]), opDelete))
			}
		}
		if l.ents.Temporal() {
			require.Equal(t, c.want, sequenceOf(all), "%v", c.order)
		} else {
			require.Subset(t, strings.Split(sequenceOf(all), ""), strings.Split(c.want, ""), "%v", c.order)
			require.Len(t, unique(names(all)), len(all), "%v: nothing comes twice", c.order)
		}
		if l.ents.Temporal() {
			require.NoError(t, l.ents.Rewind(t.Context(), start))
			l.head = start
		} else {
			require.NoError(t, l.db.Close())
			l = ordered(t, h, layout)
		}
	}
}

func unique(list []string) map[string]bool {
	found := map[string]bool{}
	for _, s := range list {
		found[s] = true
	}
	return found
}

func testCursorRefused(t *testing.T, h Harness, layout string) {
	l := ordered(t, h, layout)
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
		_, err := collect(s.Query(t.Context(), nil, &store.QueryOptions{After: c}))
		require.ErrorIs(t, err, store.ErrInvalid, name)
	}
	testCursorOtherOrder(t, s, list)
	single := encoded(`{"b":1003,"h":"AAAAAAAAAAA=","o":"n","k":2,"n":5,"s":1,"e":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}`)
	for _, order := range [][]store.Order{nil, {{Name: "n", Kind: num}}} {
		_, err := collect(s.Query(t.Context(), nil, &store.QueryOptions{After: single, Order: order}))
		require.ErrorIs(t, err, store.ErrInvalid, "a cursor of a version that sorted by one attribute")
	}
	_, err := s.Cursor(list[0], &store.QueryOptions{Parts: store.Content})
	require.ErrorIs(t, err, store.ErrInvalid, "without metadata there is no place to go on from")
	_, err = s.Cursor(list[0], &store.QueryOptions{Order: []store.Order{{Name: "n"}}})
	require.ErrorIs(t, err, store.ErrInvalid)
	_, err = s.Cursor(list[0], &store.QueryOptions{After: "garbage!"})
	require.ErrorIs(t, err, store.ErrInvalid)
	c, err := s.Cursor(list[0], nil)
	require.NoError(t, err)
	require.Equal(t, good, c)
	require.Len(t, results(t, s, nil, &store.QueryOptions{After: c}), len(list)-1, "the snapshot is usable")
}

// testCursorOtherOrder gives the cursor of each order to each other one.
func testCursorOtherOrder(t testing.TB, s *store.Snapshot, list []*store.Entity) {
	t.Helper()
	n, s1 := store.Order{Name: "n", Kind: num}, store.Order{Name: "s", Kind: str}
	cases := [][]store.Order{
		nil, {n}, {{Name: "n", Kind: num, Desc: true}}, {{Name: "n", Kind: str}}, {s1},
		{{Name: "$sequence", Desc: true}}, {{Name: "$key"}}, {n, s1}, {s1, n}, {n, {Name: "s", Kind: str, Desc: true}}, {n, s1, {Name: "$key"}},
	}
	for i, from := range cases {
		c := cursorAfter(t, s, list[0], store.QueryOptions{Order: from})
		for j, to := range cases {
			_, err := collect(s.Query(t.Context(), nil, &store.QueryOptions{Order: to, After: c}))
			if i == j {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, store.ErrInvalid, "from %v to %v", from, to)
			}
		}
	}
}

// testCursorEnds: a cursor ends when the block it reads at is rewound or pruned.
func testCursorEnds(t *testing.T, h Harness, layout string) {
	l := ordered(t, h, layout)
	if !l.ents.Temporal() {
		require.ErrorIs(t, l.ents.Rewind(t.Context(), l.head-1), store.ErrUnsupported)
		return
	}
	first := l.head - 3
	cursors := map[uint64]store.Cursor{}
	for block := first; block <= l.head; block++ {
		l.view(t, block, func(s *store.Snapshot) {
			cursors[block] = cursorAfter(t, s, results(t, s, nil, nil)[0], store.QueryOptions{})
		})
	}
	check := func(low, high uint64) {
		t.Helper()
		for block, c := range cursors {
			l.view(t, store.Head, func(s *store.Snapshot) {
				at, err := c.Block()
				require.NoError(t, err)
				require.Equal(t, block, at)
				_, err = collect(s.Query(t.Context(), nil, &store.QueryOptions{After: c}))
				if block >= low && block <= high {
					require.NoError(t, err, "block %d", block)
				} else {
					require.ErrorIs(t, err, store.ErrBlockRange, "block %d", block)
					require.Equal(t, block > high, errors.Is(err, store.ErrRewound), "block %d", block)
				}
			})
		}
	}
	check(first, l.head)
	require.NoError(t, l.ents.Rewind(t.Context(), l.head-1))
	l.head--
	check(first, l.head)
	require.NoError(t, l.ents.Prune(t.Context(), first+1))
	check(first+1, l.head)
}

// testCursorPast pages through a past block, and goes on with it after the
// database was opened again.
func testCursorPast(t *testing.T, h Harness, layout string) {
	l := ordered(t, h, layout)
	past := l.head - 2
	opts := store.QueryOptions{Order: []store.Order{{Name: "n", Kind: num}}, Limit: 3}
	l.view(t, past, func(s *store.Snapshot) {
		require.Equal(t, "cheafgbd", sequenceOf(pages(t, s, nil, opts)))
		page := results(t, s, nil, &opts)
		require.Equal(t, "che", sequenceOf(page))
		opts.After = cursorAfter(t, s, page[2], opts)
	})
	if !l.ents.Temporal() {
		return
	}
	l.apply(t, on("c", opDelete), on("a", opUpdate(1000, number("n", 1))))
	l.reopen(t)
	require.Equal(t, "afg", sequenceOf(l.find(t, nil, &opts)))
}
