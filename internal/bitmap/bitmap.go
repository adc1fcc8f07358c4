// Package bitmap has sets of ids in chunks of 4,096 consecutive ids. In memory
// a chunk has one bit for each id; it is stored as the list of its members or,
// if that is shorter, as the bits.
package bitmap

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/varvedb/varve/store/driver"
)

const shift = 12

// The number of ids in a chunk, and the maximum size of its stored form in
// bytes.
const (
	ChunkIDs   = 1 << shift
	ChunkBytes = ChunkIDs / 8
)

// ChunkOf returns the number of the chunk that contains an id.
func ChunkOf(id int64) int64 { return id >> shift }

// Offset returns the position of an id in its chunk.
func Offset(id int64) uint16 { return uint16(id & (ChunkIDs - 1)) }

// Chunk is a set of numbers below ChunkIDs.
type Chunk [ChunkIDs / 64]uint64

// Add adds a number.
func (c *Chunk) Add(n uint16) { c[n>>6] |= 1 << (n & 63) }

// Remove takes a number out.
func (c *Chunk) Remove(n uint16) { c[n>>6] &^= 1 << (n & 63) }

// Has reports whether a number is in the set.
func (c *Chunk) Has(n uint16) bool { return c[n>>6]&(1<<(n&63)) != 0 }

// Len returns how many there are.
func (c *Chunk) Len() (n int) {
	for _, w := range c {
		n += bits.OnesCount64(w)
	}
	return n
}

// Union adds another set.
func (c *Chunk) Union(other *Chunk) {
	for i, w := range other {
		c[i] |= w
	}
}

// Intersect keeps the numbers in both sets, and reports whether there are any.
func (c *Chunk) Intersect(other *Chunk) bool {
	all := uint64(0)
	for i, w := range other {
		c[i] &= w
		all |= c[i]
	}
	return all != 0
}

// Subtract removes another set, and reports whether any number is left.
func (c *Chunk) Subtract(other *Chunk) bool {
	all := uint64(0)
	for i, w := range other {
		c[i] &^= w
		all |= c[i]
	}
	return all != 0
}

// AppendTo appends the stored form, which is empty for the empty set.
func (c *Chunk) AppendTo(buf []byte) []byte {
	if 2*c.Len() >= ChunkBytes {
		for _, w := range c {
			buf = binary.LittleEndian.AppendUint64(buf, w)
		}
		return buf
	}
	for i, w := range c {
		for ; w != 0; w &= w - 1 {
			buf = binary.LittleEndian.AppendUint16(buf, uint16(i<<6+bits.TrailingZeros64(w)))
		}
	}
	return buf
}

// Merge adds a stored set. The error is driver.ErrCorrupt.
func (c *Chunk) Merge(stored []byte) error {
	switch {
	case len(stored) == ChunkBytes:
		for i := range c {
			c[i] |= binary.LittleEndian.Uint64(stored[8*i:])
		}
		return nil
	case len(stored) > ChunkBytes || len(stored)%2 != 0:
		return fmt.Errorf("%w: set of ids of %d bytes", driver.ErrCorrupt, len(stored))
	}
	for i := 0; i < len(stored); i += 2 {
		n := binary.LittleEndian.Uint16(stored[i:])
		if n >= ChunkIDs {
			return fmt.Errorf("%w: id %d in a set of %d", driver.ErrCorrupt, n, ChunkIDs)
		}
		c.Add(n)
	}
	return nil
}

// Set is a set of ids by chunk. Chunks are not empty.
type Set map[int64]*Chunk

// Add adds an id.
func (s Set) Add(id int64) { s.Chunk(ChunkOf(id)).Add(Offset(id)) }

// Chunk returns a chunk of the set, and adds it if it is missing.
func (s Set) Chunk(n int64) *Chunk {
	c := s[n]
	if c == nil {
		c = new(Chunk)
		s[n] = c
	}
	return c
}

// Has reports whether an id is in the set.
func (s Set) Has(id int64) bool {
	c := s[ChunkOf(id)]
	return c != nil && c.Has(Offset(id))
}

// Len returns how many ids there are.
func (s Set) Len() (n int) {
	for _, c := range s {
		n += c.Len()
	}
	return n
}

// Union adds another set, which must not be used afterwards.
func (s Set) Union(other Set) {
	for n, c := range other {
		if has := s[n]; has == nil {
			s[n] = c
		} else {
			has.Union(c)
		}
	}
}

// Intersect keeps the ids in both sets.
func (s Set) Intersect(other Set) {
	for n, c := range s {
		if o := other[n]; o == nil || !c.Intersect(o) {
			delete(s, n)
		}
	}
}

// Subtract removes another set.
func (s Set) Subtract(other Set) {
	for n, c := range s {
		if o := other[n]; o != nil && !c.Subtract(o) {
			delete(s, n)
		}
	}
}

// Slice returns a copy of the chunks that may contain ids from low up to, but
// not including, high.
func (s Set) Slice(low, high int64) Set {
	if low >= high {
		return Set{}
	}
	first, last := ChunkOf(low), ChunkOf(high-1)
	part := make(Set, min(int64(len(s)), last-first+1))
	if last-first < int64(len(s)) {
		for n := first; n <= last; n++ {
			if c := s[n]; c != nil {
				part[n] = c.clone()
			}
		}
		return part
	}
	for n, c := range s {
		if n >= first && n <= last {
			part[n] = c.clone()
		}
	}
	return part
}

func (c *Chunk) clone() *Chunk {
	other := *c
	return &other
}

// Walk returns a set's ids in batches, highest first.
type Walk struct {
	set    Set
	chunks []int64 // chunks still to visit, the highest last
	low    int64   // ids from here on
	below  int64   // ids below this
}

// Walk starts below one id and ends at the lowest id from another on.
func (s Set) Walk(low, below int64) *Walk {
	return &Walk{set: s, chunks: slices.Sorted(maps.Keys(s)), low: low, below: below}
}

// Next returns n ids, or fewer at the end.
func (w *Walk) Next(n int) (ids []int64) {
	for len(w.chunks) > 0 && len(ids) < n {
		last := w.chunks[len(w.chunks)-1]
		if ids = w.set[last].appendBelow(ids, last<<shift, w.below, n); len(ids) < n {
			w.chunks = w.chunks[:len(w.chunks)-1]
		} else {
			w.below = ids[len(ids)-1]
		}
	}
	for len(ids) > 0 && ids[len(ids)-1] < w.low {
		ids, w.chunks = ids[:len(ids)-1], nil
	}
	return ids
}

// appendBelow appends the ids below one, highest first, until there are n.
// Positions count from base.
func (c *Chunk) appendBelow(ids []int64, base, below int64, n int) []int64 {
	for high := min(max(below-base, 0), ChunkIDs); high > 0 && len(ids) < n; {
		word := c[(high-1)>>6]
		if rest := high & 63; rest != 0 {
			word &= 1<<rest - 1
		}
		if high = (high - 1) &^ 63; word != 0 {
			high |= int64(63 - bits.LeadingZeros64(word))
			ids = append(ids, base|high)
		}
	}
	return ids
}

// AppendIDs appends the ids of a stored chunk in order.
func AppendIDs(ids []int64, chunk int64, stored []byte) ([]int64, error) {
	var c Chunk
	if err := c.Merge(stored); err != nil {
		return ids, err
	}
	for i, w := range c {
		for ; w != 0; w &= w - 1 {
			ids = append(ids, chunk<<shift|int64(i<<6+bits.TrailingZeros64(w)))
		}
	}
	return ids, nil
}
