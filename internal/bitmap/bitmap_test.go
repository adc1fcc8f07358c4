package bitmap_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/internal/bitmap"
	"github.com/varvedb/varve/store/driver"
)

func TestChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.Uint16Range(0, bitmap.ChunkIDs-1), 0, 600, rapid.ID[uint16]).Draw(t, "ids")
		var c, back bitmap.Chunk
		for _, id := range ids {
			c.Add(id)
		}
		stored := c.AppendTo(nil)
		require.LessOrEqual(t, len(stored), bitmap.ChunkBytes)
		require.NoError(t, back.Merge(stored))
		require.Equal(t, c, back)
		require.Equal(t, len(ids), back.Len())
	})
	var c bitmap.Chunk
	require.ErrorIs(t, c.Merge(make([]byte, bitmap.ChunkBytes+2)), driver.ErrCorrupt)
	require.ErrorIs(t, c.Merge([]byte{1}), driver.ErrCorrupt)
	require.ErrorIs(t, c.Merge([]byte{0xff, 0xff}), driver.ErrCorrupt)
}

// TestWalk: a walk in batches of any size gives each id between bounds once, highest first.
func TestWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.Int64Range(1, 3*bitmap.ChunkIDs), 0, 300, rapid.ID[int64]).Draw(t, "ids")
		low := rapid.Int64Range(0, 4*bitmap.ChunkIDs).Draw(t, "low")
		below := rapid.Int64Range(0, 4*bitmap.ChunkIDs).Draw(t, "below")
		s := bitmap.Set{}
		for _, id := range ids {
			s.Add(id)
		}
		want := slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return id >= below || id < low })
		slices.Sort(want)
		slices.Reverse(want)
		var got []int64
		for w, n := s.Walk(low, below), rapid.IntRange(1, 100).Draw(t, "batch"); ; {
			batch := w.Next(n)
			got = append(got, batch...)
			if len(batch) < n {
				break
			}
		}
		require.True(t, slices.Equal(want, got), "want %v, got %v", want, got)
	})
}

// TestSlice: a part of a set has all of the chunks that its bounds touch, and changes alone.
func TestSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := bitmap.Set{}
		for _, id := range rapid.SliceOfN(rapid.Int64Range(1, 9*bitmap.ChunkIDs), 0, 60).Draw(t, "ids") {
			s.Add(id)
		}
		low := rapid.Int64Range(0, 10*bitmap.ChunkIDs).Draw(t, "low")
		high := rapid.Int64Range(0, 10*bitmap.ChunkIDs).Draw(t, "high")
		want, whole := map[int64]bitmap.Chunk{}, map[int64]bitmap.Chunk{}
		for n, c := range s {
			whole[n] = *c
			if low < high && n >= bitmap.ChunkOf(low) && n <= bitmap.ChunkOf(high-1) {
				want[n] = *c
			}
		}
		part, got, after := s.Slice(low, high), map[int64]bitmap.Chunk{}, map[int64]bitmap.Chunk{}
		for n, c := range part {
			got[n] = *c
			*c = bitmap.Chunk{}
		}
		for n, c := range s {
			after[n] = *c
		}
		require.Equal(t, want, got)
		require.Equal(t, whole, after)
	})
}

// TestSets: sets do what maps do.
func TestSets(t *testing.T) {
	draw := func(t *rapid.T, label string) (bitmap.Set, map[int64]bool) {
		s, model := bitmap.Set{}, map[int64]bool{}
		for _, id := range rapid.SliceOfN(rapid.Int64Range(1, 3*bitmap.ChunkIDs), 0, 60).Draw(t, label) {
			s.Add(id)
			model[id] = true
		}
		return s, model
	}
	rapid.Check(t, func(t *rapid.T) {
		s, a := draw(t, "a")
		other, b := draw(t, "b")
		in := map[string]func(id int64) bool{
			"union":     func(id int64) bool { return a[id] || b[id] },
			"intersect": func(id int64) bool { return a[id] && b[id] },
			"subtract":  func(id int64) bool { return a[id] && !b[id] },
		}
		op := rapid.SampledFrom([]string{"union", "intersect", "subtract"}).Draw(t, "operation")
		map[string]func(bitmap.Set){"union": s.Union, "intersect": s.Intersect, "subtract": s.Subtract}[op](other)
		n := 0
		for id := range int64(3*bitmap.ChunkIDs + 1) {
			require.Equal(t, in[op](id), s.Has(id), "%s, id %d", op, id)
			if s.Has(id) {
				n++
			}
		}
		require.Equal(t, n, s.Len())
		for _, c := range s {
			require.NotZero(t, c.Len(), "chunks are not empty")
		}
	})
}
