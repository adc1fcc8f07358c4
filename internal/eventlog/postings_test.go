package eventlog

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/store/driver"
)

// drawEntries draws events of a few types at growing positions.
func drawEntries(rt *rapid.T) []entry {
	at := rapid.Uint64Range(1, 1<<40).Draw(rt, "first")
	n := rapid.IntRange(1, maxPostings).Draw(rt, "events")
	types := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-zA-Z]{1,12}`), 1, 9, rapid.ID).Draw(rt, "types")
	entries := make([]entry, n)
	for i := range entries {
		entries[i] = entry{position: at, typ: rapid.SampledFrom(types).Draw(rt, "type")}
		at += rapid.SampledFrom([]uint64{1, 1, 2, 100, 1 << 30}).Draw(rt, "distance")
	}
	return entries
}

// TestPostings: postings are read back as they were written, for the types
// asked for.
func TestPostings(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		entries := drawEntries(rt)
		at := make([]int32, len(entries))
		for i := range at {
			at[i] = int32(i)
		}
		typed := rapid.Bool().Draw(rt, "typed")
		row := appendPostings([]byte("before")[:0], entries, at, typed)
		var wanted []string
		if typed {
			wanted = rapid.SliceOf(rapid.SampledFrom([]string{entries[0].typ, entries[len(entries)-1].typ, "none"})).Draw(rt, "wanted")
		}
		var want []uint64
		for _, e := range entries {
			if len(wanted) == 0 || slices.Contains(wanted, e.typ) {
				want = append(want, e.position)
			}
		}
		got, err := readPostings(nil, entries[0].position, row, wanted)
		if err != nil || !slices.Equal(want, got) {
			rt.Fatalf("want %v, got %v, %v", want, got, err)
		}
	})
}

// TestPostingsOfOne: the row of a tag that one event has holds little more than its
// type, which is what makes an index of many rare tags small.
func TestPostingsOfOne(t *testing.T) {
	row := appendPostings(nil, []entry{{position: 1 << 40, typ: "Type"}}, []int32{0}, true)
	require.Equal(t, "\x01\x04Type\x00", string(row))
	row = appendPostings(nil, []entry{{position: 1 << 40}, {position: 1<<40 + 1}}, []int32{0, 1}, false)
	require.Equal(t, "\x00\x00\x01", string(row))
}

func TestDamagedPostings(t *testing.T) {
	for name, row := range map[string]string{
		"nothing":                "",
		"type cut off":           "\x01\x04Ty",
		"too many types":         "\xff\xff\x03",
		"number without end":     "\x00\x80",
		"type that is not there": "\x03\x01a\x01b\x01c\x03",
	} {
		_, err := readPostings(nil, 1, []byte(row), nil)
		require.ErrorIs(t, err, driver.ErrCorrupt, name)
	}
}

func FuzzReadPostings(f *testing.F) {
	f.Add([]byte("\x01\x04Type\x00\x01\x02"), "Type")
	f.Add([]byte("\x02\x01a\x01b\x00\x03"), "b")
	f.Add([]byte("\x00\x00\x80\x01"), "")
	f.Fuzz(func(t *testing.T, row []byte, typ string) {
		all, err := readPostings(nil, 7, row, nil)
		some, errSome := readPostings(nil, 7, row, []string{typ})
		require.Equal(t, err == nil, errSome == nil)
		require.LessOrEqual(t, len(some), max(len(all), len(row)))
	})
}
