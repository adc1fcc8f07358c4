package compact

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

func TestNumbersKeepTheirOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Uint64().Draw(t, "a"), rapid.Uint64().Draw(t, "b")
		require.Equal(t, a < b, encodeNumber(a) < encodeNumber(b))
		require.Equal(t, a, decodeNumber([]byte(encodeNumber(a))))
	})
	require.Equal(t, uint64(math.MaxUint64), decodeNumber([]byte(encodeNumber(math.MaxUint64))))
	require.Len(t, encodeNumber(0), 1)
}

// TestTextsKeepTheirOrder: a span of encoded strings holds at least those that
// are within its bounds, and exactly those when it says so.
func TestTextsKeepTheirOrder(t *testing.T) {
	text := rapid.Custom(func(t *rapid.T) string {
		s := rapid.StringOfN(rapid.RuneFrom([]rune("ab\x00é")), 0, 4, -1).Draw(t, "text")
		return strings.Repeat("a", rapid.IntRange(0, 40).Draw(t, "before")) + s
	})
	rapid.Check(t, func(t *rapid.T) {
		lo, hi, x := text.Draw(t, "lo"), text.Draw(t, "hi"), text.Draw(t, "x")
		if hi == "" {
			return // no bound
		}
		s, value := textSpan(lo, hi), encodeText([]byte(x))
		within, found := lo <= x && x < hi, s.lo <= value && (s.hi == "" || value < s.hi)
		require.True(t, found || !within, "%+v misses it", s)
		if s.exact {
			require.Equal(t, within, found, "%+v", s)
		}
	})
}

func TestChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.Uint16Range(0, chunkIDs-1), 0, 600, rapid.ID[uint16]).Draw(t, "ids")
		var c, back chunk
		for _, id := range ids {
			c.set(id)
		}
		stored := c.encode()
		require.LessOrEqual(t, len(stored), chunkBytes)
		require.NoError(t, back.merge(stored))
		require.Equal(t, c, back)
		require.Equal(t, len(ids), back.count())
	})
	var c chunk
	require.ErrorIs(t, c.merge(make([]byte, chunkBytes+2)), driver.ErrCorrupt)
	require.ErrorIs(t, c.merge([]byte{1}), driver.ErrCorrupt)
	require.ErrorIs(t, c.merge([]byte{0xff, 0xff}), driver.ErrCorrupt)
}

// TestWalk: a walk in batches of any size gives each id below a bound once,
// highest first.
func TestWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.Int64Range(1, 3*chunkIDs), 0, 300, rapid.ID[int64]).Draw(t, "ids")
		below := rapid.Int64Range(0, 4*chunkIDs).Draw(t, "below")
		s := idSet{}
		for _, id := range ids {
			s.add(id)
		}
		want := slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return id >= below })
		slices.Sort(want)
		slices.Reverse(want)
		var got []int64
		for w, n := s.walk(below), rapid.IntRange(1, 100).Draw(t, "batch"); ; {
			batch := w.next(n)
			got = append(got, batch...)
			if len(batch) < n {
				break
			}
		}
		require.True(t, slices.Equal(want, got), "want %v, got %v", want, got)
	})
}

func someEntity(t *rapid.T) *entity.Entity {
	e := &entity.Entity{
		Key: entity.Key{1}, Creator: entity.Address{2}, Owner: entity.Address{byte(rapid.IntRange(2, 3).Draw(t, "owner"))},
		ContentType:         rapid.String().Draw(t, "type"),
		StringAttributes:    rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "strings"),
		NumericAttributes:   rapid.MapOf(rapid.String(), rapid.Uint64()).Draw(t, "numbers"),
		Sequence:            rapid.Uint64().Draw(t, "sequence"),
		LastModifiedAtBlock: 7, Expiration: 9,
	}
	return e
}

// TestPack: data gives the entity back, with names that have a number and names
// that have none, and torn data an error.
func TestPack(t *testing.T) {
	defer func(n int64) { maxNames = n }(maxNames)
	maxNames = 5
	rapid.Check(t, func(t *rapid.T) {
		e, n := someEntity(t), newNames()
		number := func(kind nameKind, text string) int64 {
			id, _ := n.add(kind, text)
			return id
		}
		v := version{id: 1, key: e.Key, from: 7, expires: 9, data: pack(nil, e, number)}
		got, err := v.unpack(n.list())
		require.NoError(t, err)
		require.Equal(t, e, got)
		_, err = v.terms()
		require.NoError(t, err)

		v.data = v.data[:rapid.IntRange(0, len(v.data)-1).Draw(t, "cut")]
		_, err = v.unpack(n.list())
		require.ErrorIs(t, err, driver.ErrCorrupt)
	})
}

func FuzzUnpack(f *testing.F) {
	e := &entity.Entity{StringAttributes: map[string]string{"a": "b"}, NumericAttributes: map[string]uint64{"n": 1}}
	n := newNames()
	f.Add(pack(nil, e, func(kind nameKind, text string) int64 {
		id, _ := n.add(kind, text)
		return id
	}))
	f.Fuzz(func(t *testing.T, data []byte) {
		v := version{data: data}
		if _, err := v.unpack(n.list()); err != nil {
			require.ErrorIs(t, err, driver.ErrCorrupt)
		}
		if node, err := decodeNode(3, tip{}, data); err == nil {
			require.NotNil(t, node)
		}
	})
}

// TestLog: what a block did comes back as it was.
func TestLog(t *testing.T) {
	changes := []change{
		{key: entity.Key{1}, newID: 4, next: version{id: 4, key: entity.Key{1}, from: 9, expires: 11, content: 2, data: []byte("x")}},
		{key: entity.Key{2}, oldID: 1, oldFrom: 3},
		{key: entity.Key{3}, oldID: 2, oldFrom: 3, newID: 2, next: version{id: 2, key: entity.Key{3}, from: 9, expires: 10, data: []byte("y")}},
	}
	want := newNode(9, tip{7}, changes)
	stored := encodeChanges(changes)
	got, err := decodeNode(9, tip{7}, stored)
	require.NoError(t, err)
	require.Equal(t, want.changes, got.changes)
	require.Equal(t, want.byKey, got.byKey)
	for cut := range stored {
		_, err := decodeNode(9, tip{7}, stored[:cut])
		require.ErrorIs(t, err, driver.ErrCorrupt)
	}
}
