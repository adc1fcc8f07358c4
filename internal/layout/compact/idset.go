package compact

import (
	"maps"
	"math/bits"
	"slices"
)

// idSet is a set of entity ids by chunk. Chunks are not empty.
type idSet map[int64]*chunk

func (s idSet) add(id int64) { s.chunk(chunkOf(id)).set(offsetOf(id)) }

// chunk returns a chunk of the set, made if it is not there.
func (s idSet) chunk(n int64) *chunk {
	c := s[n]
	if c == nil {
		c = new(chunk)
		s[n] = c
	}
	return c
}

func (s idSet) has(id int64) bool {
	c := s[chunkOf(id)]
	return c != nil && c.has(offsetOf(id))
}

func (s idSet) count() (n int) {
	for _, c := range s {
		n += c.count()
	}
	return n
}

// union adds another set, which must not be used after.
func (s idSet) union(other idSet) {
	for n, c := range other {
		if has := s[n]; has == nil {
			s[n] = c
		} else {
			for i := range has {
				has[i] |= c[i]
			}
		}
	}
}

// intersect keeps what is in both.
func (s idSet) intersect(other idSet) {
	for n, c := range s {
		o := other[n]
		if o == nil {
			delete(s, n)
			continue
		}
		rest := uint64(0)
		for i := range c {
			c[i] &= o[i]
			rest |= c[i]
		}
		if rest == 0 {
			delete(s, n)
		}
	}
}

// subtract removes another set.
func (s idSet) subtract(other idSet) {
	for n, c := range s {
		o := other[n]
		if o == nil {
			continue
		}
		rest := uint64(0)
		for i := range c {
			c[i] &^= o[i]
			rest |= c[i]
		}
		if rest == 0 {
			delete(s, n)
		}
	}
}

// walk hands out a set's ids, highest first.
type walk struct {
	set    idSet
	chunks []int64 // still to do, the highest last
	below  int64   // only ids below it
}

func (s idSet) walk(below int64) *walk {
	return &walk{set: s, chunks: slices.Sorted(maps.Keys(s)), below: below}
}

// next returns up to n ids, fewer only at the end.
func (w *walk) next(n int) (ids []int64) {
	for len(w.chunks) > 0 && len(ids) < n {
		last := w.chunks[len(w.chunks)-1]
		c, high := w.set[last], int64(chunkIDs)
		if base := last << chunkShift; w.below <= base {
			high = 0
		} else {
			high = min(high, w.below-base)
		}
		for high > 0 && len(ids) < n {
			word := c[(high-1)>>6]
			if rest := high & 63; rest != 0 {
				word &= 1<<rest - 1
			}
			if word == 0 {
				high = (high - 1) &^ 63
				continue
			}
			high = (high-1)&^63 | int64(63-bits.LeadingZeros64(word))
			ids = append(ids, last<<chunkShift|high)
		}
		if high == 0 {
			w.chunks = w.chunks[:len(w.chunks)-1]
		} else {
			w.below = ids[len(ids)-1]
		}
	}
	return ids
}
