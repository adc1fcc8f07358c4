package storetest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/query"
)

// story is what blocks do to one key and what is to be seen of it.
type story struct {
	name   string
	blocks map[int][]store.Op // by offset; the key is filled in

	// timeline has one character for each offset from 0 on: the attribute v of
	// the version visible at that block, "." when there is none.
	timeline string
}

type ops = []store.Op

// v is the attribute that timelines show.
func v(value string) field { return text("v", value) }

var lifetimes = []story{
	{"create lives BTL blocks", map[int]ops{1: {opCreate(3, v("a"))}}, ".aaa.."},
	{"create with BTL 1 lives one block", map[int]ops{1: {opCreate(1, v("a"))}}, ".a.."},
	{"create with BTL 0 is never visible", map[int]ops{1: {opCreate(0, v("a"))}}, "...."},
	{"BTL 0 leaves the key free", map[int]ops{1: {opCreate(0, v("a"))}, 2: {opCreate(9, v("b"))}}, "..bb"},
	{"the greatest BTL is for ever", map[int]ops{1: {opCreate(^uint64(0), v("a"))}}, ".aaaa"},
	{"update replaces the lifetime", map[int]ops{1: {opCreate(9, v("a"))}, 3: {opUpdate(2, v("b"))}}, ".aabb.."},
	{"update in the last block of a lifetime", map[int]ops{1: {opCreate(2, v("a"))}, 2: {opUpdate(9, v("b"))}}, ".abbb"},
	{"update with BTL 0 ends it", map[int]ops{1: {opCreate(9, v("a"))}, 3: {opUpdate(0, v("b"))}}, ".aa.."},
	{"extend counts from its block", map[int]ops{1: {opCreate(3, v("a"))}, 2: {opExtend(4)}}, ".aaaaa.."},
	{"extend may shorten", map[int]ops{1: {opCreate(9, v("a"))}, 2: {opExtend(1)}}, ".aa..."},
	{"extend by 0 ends it", map[int]ops{1: {opCreate(9, v("a"))}, 3: {opExtend(0)}}, ".aa..."},
	{"change owner keeps the expiration", map[int]ops{1: {opCreate(3, v("a"))}, 2: {opOwner(bob)}}, ".aaa.."},
	{"delete ends it", map[int]ops{1: {opCreate(9, v("a"))}, 3: {opDelete}}, ".aa..."},
	{"expire before the time ends it", map[int]ops{1: {opCreate(9, v("a"))}, 3: {opExpire}}, ".aa..."},
	{"expire on time", map[int]ops{1: {opCreate(2, v("a"))}, 3: {opExpire}}, ".aa..."},
	{"expire arrives late", map[int]ops{1: {opCreate(2, v("a"))}, 5: {opExpire}}, ".aa...."},
	{"expire arrives twice", map[int]ops{1: {opCreate(2, v("a"))}, 4: {opExpire}, 5: {opExpire}}, ".aa...."},
	{"expire after BTL 0", map[int]ops{1: {opCreate(0, v("a"))}, 2: {opExpire}}, "...."},
	{"create again after the end", map[int]ops{1: {opCreate(2, v("a"))}, 5: {opCreate(2, v("b"))}}, ".aa..bb."},
	{"create again at the expiration", map[int]ops{1: {opCreate(2, v("a"))}, 3: {opCreate(2, v("b"))}}, ".aabb."},
	{"create again after a delete", map[int]ops{1: {opCreate(9, v("a"))}, 2: {opDelete}, 4: {opCreate(9, v("b"))}}, ".a..bb"},
	{"expire after another life", map[int]ops{1: {opCreate(2, v("a"))}, 4: {opCreate(9, v("b"))}, 6: {opExpire}}, ".aa.bb.."},

	{"one block: create, update", map[int]ops{1: {opCreate(9, v("a")), opUpdate(2, v("b"))}}, ".bb."},
	{"one block: update, extend", map[int]ops{1: {opCreate(9, v("a"))}, 2: {opUpdate(9, v("b")), opExtend(2)}}, ".abb.."},
	{"one block: extend, update", map[int]ops{1: {opCreate(9, v("a"))}, 2: {opExtend(9), opUpdate(2, v("b"))}}, ".abb.."},
	{"one block: two updates", map[int]ops{1: {opCreate(9, v("a"))}, 2: {opUpdate(9, v("b")), opUpdate(3, v("c"))}}, ".accc.."},
	{"one block: two extends", map[int]ops{1: {opCreate(9, v("a"))}, 2: {opExtend(1), opExtend(3)}}, ".aaaa.."},
	{"one block: create, delete", map[int]ops{1: {opCreate(9, v("a")), opDelete}}, "..."},
	{"one block: create, expire", map[int]ops{1: {opCreate(9, v("a")), opExpire}}, "..."},
	{"one block: create with BTL 0, expire", map[int]ops{1: {opCreate(0, v("a")), opExpire}}, "..."},
	{"one block: create with BTL 0, create", map[int]ops{1: {opCreate(0, v("a")), opCreate(2, v("b"))}}, ".bb."},
	{"one block: delete, create", map[int]ops{1: {opCreate(9, v("a"))}, 3: {opDelete, opCreate(2, v("b"))}}, ".aabb."},
	{"one block: expire, create", map[int]ops{1: {opCreate(9, v("a"))}, 3: {opExpire, opCreate(2, v("b"))}}, ".aabb."},
	{"one block: late expire, create", map[int]ops{1: {opCreate(1, v("a"))}, 4: {opExpire, opCreate(2, v("b"))}}, ".a..bb."},
	{"one block: create, delete, create", map[int]ops{1: {opCreate(9, v("a")), opDelete, opCreate(2, v("b"))}}, ".bb."},
	{"one block: delete, create, delete", map[int]ops{1: {opCreate(9, v("a"))}, 3: {opDelete, opCreate(9, v("b")), opDelete}}, ".aa.."},
	{"one block: change owner, extend", map[int]ops{1: {opCreate(9, v("a"))}, 2: {opOwner(bob), opExtend(2)}}, ".aaa.."},
	{"one block: update, delete", map[int]ops{1: {opCreate(9, v("a"))}, 2: {opUpdate(9, v("b")), opDelete}}, ".a.."},
	{"one block: update, change owner", map[int]ops{1: {opCreate(9, v("a"))}, 2: {opUpdate(2, v("b")), opOwner(carol)}}, ".abb."},
	{"one block: create, update, extend, change owner", map[int]ops{
		1: {opCreate(9, v("a")), opUpdate(9, v("b")), opExtend(2), opOwner(bob)}}, ".bb."},
}

// runLifetimes tells each story twice, with an empty block wherever it has no
// operations and with a gap, and looks at every block both when it is the head
// and, where there is history, at the end and after opening again.
func runLifetimes(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout)
	var check []func(t testing.TB)
	for i, s := range lifetimes {
		for _, gaps := range []bool{false, true} {
			name := fmt.Sprintf("%s, gaps=%t", s.name, gaps)
			t.Run(name, func(t *testing.T) {
				key := keyOf(fmt.Sprintf("story %d %t", i, gaps))
				start := l.head + 1
				l.tell(t, s, key, gaps)
				look := func(t testing.TB) {
					for offset, want := range s.timeline {
						l.see(t, key, start+uint64(offset), string(want))
					}
				}
				look(t)
				check = append(check, look)
			})
		}
	}
	l.reopen(t)
	for _, look := range check {
		look(t)
	}
}

// tell applies the blocks of a story.
func (l *ledger) tell(t testing.TB, s story, key store.Key, gaps bool) {
	t.Helper()
	start, last := l.head+1, len(s.timeline)-1
	require.Less(t, slices.Max(slices.Collect(maps.Keys(s.blocks))), len(s.timeline))
	for offset := range s.timeline {
		list, busy := s.blocks[offset]
		if gaps && !busy && offset != last {
			continue
		}
		list = slices.Clone(list)
		for i := range list {
			list[i].Key = key
		}
		l.applyBlock(t, newBlock(start+uint64(offset), list...))
		l.see(t, key, l.head, s.timeline[offset:offset+1])
	}
}

// see checks which version of a key is visible at a block, by each way to ask.
func (l *ledger) see(t testing.TB, key store.Key, block uint64, want string) {
	t.Helper()
	l.view(t, block, func(s *store.Snapshot) {
		got := "."
		e, err := s.Get(t.Context(), key)
		if err != nil {
			require.ErrorIs(t, err, store.ErrNotFound)
		} else {
			got = e.StringAttributes["v"]
		}
		require.Equal(t, want, got, "block %d", block)

		self := query.Compare{Name: "$key", Op: query.Equal, Value: query.Text(key.String())}
		list := results(t, s, self, nil)
		if e == nil {
			require.Empty(t, list, "block %d", block)
		} else {
			requireSame(t, []*store.Entity{e}, list, "block %d", block)
		}
		for _, value := range []string{"a", "b", "c"} {
			q := query.And{Terms: []query.Expr{self, query.Compare{Name: "v", Op: query.Equal, Value: query.Text(value)}}}
			n, err := s.Count(t.Context(), q)
			require.NoError(t, err)
			require.Equal(t, value == want, n == 1, "block %d, v = %s: %d", block, value, n)
		}
	})
}
