package compact

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// TestTextsKeepTheirOrder: a range of encoded strings holds at least those that
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
		s, value := textRange(lo, hi), encodeText([]byte(x))
		within, found := lo <= x && x < hi, s.lo <= value && (s.hi == "" || value < s.hi)
		require.True(t, found || !within, "%+v misses it", s)
		if s.exact {
			require.Equal(t, within, found, "%+v", s)
		}
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
		got, err := v.entity(n.list(), true)
		require.NoError(t, err)
		require.Equal(t, e, got)
		_, err = v.terms()
		require.NoError(t, err)

		v.data = v.data[:rapid.IntRange(0, len(v.data)-1).Draw(t, "cut")]
		_, err = v.entity(n.list(), true)
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
		if _, err := v.entity(n.list(), true); err != nil {
			require.ErrorIs(t, err, driver.ErrCorrupt)
		}
		if _, err := decodeChanges(3, data); err != nil {
			require.ErrorIs(t, err, driver.ErrCorrupt)
		}
	})
}

// TestLog: what a block did comes back as it was.
func TestLog(t *testing.T) {
	changes := []change{
		{key: entity.Key{1}, newID: 4, next: version{id: 4, key: entity.Key{1}, from: 9, to: 11, expires: 11, content: 2, data: []byte("x")}},
		{key: entity.Key{2}, oldID: 1, oldFrom: 3},
		{key: entity.Key{3}, oldID: 2, oldFrom: 3, newID: 2, next: version{id: 2, key: entity.Key{3}, from: 9, to: 10, expires: 10, data: []byte("y")}},
	}
	stored := encodeChanges(changes)
	got, err := decodeChanges(9, stored)
	require.NoError(t, err)
	require.Equal(t, changes, got)
	for cut := range stored {
		_, err := decodeChanges(9, stored[:cut])
		require.ErrorIs(t, err, driver.ErrCorrupt)
	}
}
