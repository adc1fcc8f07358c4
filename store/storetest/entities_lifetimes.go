package storetest

import (
	"fmt"
	"slices"
	"strings"
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

// timeline is as long as the longest of lifetimes.
const timeline = 8

// sighting is what one block shows of every story, by each way to ask: the
// value of v by key, of the entities that are visible.
type sighting struct {
	block                  uint64
	byGet, byList, byValue map[store.Key]string
}

// runLifetimes tells all stories at once, each on a key of its own, and then
// those of several blocks once more with gaps instead of empty blocks. It
// looks at every block when it is the head and, where there is history, again
// after the database was opened again.
func runLifetimes(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout)
	start := l.head + 1
	var seen []sighting
	for offset := range timeline {
		b := store.Block{Number: start + uint64(offset)}
		for i, s := range lifetimes {
			b.Ops = append(b.Ops, s.at(offset, storyKey(i, false))...)
		}
		l.applyBlocks(t, newBlock(b.Number, b.Ops...))
		seen = append(seen, l.look(t, l.head, false))
	}
	gaps := tellWithGaps(t, l)
	l.reopen(t)
	if l.ents.Temporal() {
		for offset := range timeline {
			seen = append(seen, l.look(t, start+uint64(offset), false))
		}
	} else {
		l.view(t, start, nil)
	}
	for i, s := range lifetimes {
		t.Run(s.name, func(t *testing.T) {
			for _, sight := range seen {
				sight.check(t, storyKey(i, false), s.timeline, sight.block-start)
			}
		})
		if gaps[i] == nil {
			continue
		}
		t.Run(s.name+", gaps", func(t *testing.T) {
			for block, want := range gaps[i] {
				l.view(t, block, func(snap *store.Snapshot) {
					require.Equal(t, want, shown(t, snap, storyKey(i, true)), "block %d", block)
				})
			}
		})
	}
}

func storyKey(i int, gaps bool) store.Key { return keyOf(fmt.Sprintf("story %d %t", i, gaps)) }

// at returns the operations of a story at an offset.
func (s story) at(offset int, key store.Key) []store.Op {
	list := slices.Clone(s.blocks[offset])
	for i := range list {
		list[i].Key = key
	}
	return list
}

// look asks for every story at a block.
func (l *ledger) look(t testing.TB, block uint64, gaps bool) sighting {
	t.Helper()
	s := sighting{block: block, byGet: map[store.Key]string{}, byList: map[store.Key]string{}, byValue: map[store.Key]string{}}
	l.view(t, block, func(snap *store.Snapshot) {
		for i := range lifetimes {
			if v := shown(t, snap, storyKey(i, gaps)); v != "." {
				s.byGet[storyKey(i, gaps)] = v
			}
		}
		for _, e := range results(t, snap, nil, nil) {
			s.byList[e.Key] = e.StringAttributes["v"]
		}
		for _, v := range []string{"a", "b", "c"} {
			for _, e := range results(t, snap, query.Compare{Name: "v", Op: query.Equal, Value: query.Text(v)}, nil) {
				require.NotContains(t, s.byValue, e.Key, "two values at once")
				s.byValue[e.Key] = v
			}
		}
	})
	return s
}

// shown returns what a timeline shows of a key.
func shown(t testing.TB, s *store.Snapshot, key store.Key) string {
	t.Helper()
	e, err := s.Get(t.Context(), key)
	if err != nil {
		require.ErrorIs(t, err, store.ErrNotFound)
		return "."
	}
	return e.StringAttributes["v"]
}

// check compares a sighting with a timeline, which stays as it ends.
func (s sighting) check(t testing.TB, key store.Key, timeline string, offset uint64) {
	t.Helper()
	want := string(timeline[min(offset, uint64(len(timeline)-1))])
	for how, seen := range map[string]map[store.Key]string{"get": s.byGet, "list": s.byList, "value": s.byValue} {
		v, ok := seen[key]
		if !ok {
			v = "."
		}
		require.Equal(t, want, v, "%s at offset %d", how, offset)
	}
}

// tellWithGaps applies only the blocks of each story that have operations, and
// its last. It returns what each block must show, by story, nil for those it
// leaves out.
func tellWithGaps(t *testing.T, l *ledger) []map[uint64]string {
	want := make([]map[uint64]string, len(lifetimes))
	for i, s := range lifetimes {
		if strings.HasPrefix(s.name, "one block") {
			continue // gaps make no difference
		}
		want[i] = map[uint64]string{}
		start, last := l.head+1, len(s.timeline)-1
		require.LessOrEqual(t, len(s.timeline), timeline)
		for offset := range s.timeline {
			block, list := start+uint64(offset), s.at(offset, storyKey(i, true))
			want[i][block] = s.timeline[offset : offset+1]
			if len(list) == 0 && offset < last {
				continue
			}
			l.applyBlocks(t, newBlock(block, list...))
			l.view(t, store.Head, func(snap *store.Snapshot) {
				require.Equal(t, want[i][block], shown(t, snap, storyKey(i, true)), "%s at offset %d", s.name, offset)
			})
		}
	}
	return want
}
