package compact

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/varvedb/varve/store/driver"
)

// A posting is a set of ids, cut into chunks of chunkIDs neighbouring ones. A
// chunk is stored as the list of its members, two bytes each, or as a bitmap
// when that is shorter.
const (
	chunkShift = 12
	chunkIDs   = 1 << chunkShift
	chunkBytes = chunkIDs / 8
)

// chunk is a set of numbers below chunkIDs.
type chunk [chunkIDs / 64]uint64

func (c *chunk) set(n uint16)      { c[n>>6] |= 1 << (n & 63) }
func (c *chunk) clear(n uint16)    { c[n>>6] &^= 1 << (n & 63) }
func (c *chunk) has(n uint16) bool { return c[n>>6]&(1<<(n&63)) != 0 }

func (c *chunk) count() (n int) {
	for _, w := range c {
		n += bits.OnesCount64(w)
	}
	return n
}

// encode returns the stored form, empty for the empty set.
func (c *chunk) encode() []byte { return c.appendTo(nil) }

// appendTo appends the stored form, of at most chunkBytes.
func (c *chunk) appendTo(buf []byte) []byte {
	if 2*c.count() >= chunkBytes {
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

// merge adds a stored set.
func (c *chunk) merge(stored []byte) error {
	switch {
	case len(stored) == chunkBytes:
		for i := range c {
			c[i] |= binary.LittleEndian.Uint64(stored[8*i:])
		}
		return nil
	case len(stored) > chunkBytes || len(stored)%2 != 0:
		return fmt.Errorf("%w: set of ids of %d bytes", driver.ErrCorrupt, len(stored))
	}
	for i := 0; i < len(stored); i += 2 {
		n := binary.LittleEndian.Uint16(stored[i:])
		if n >= chunkIDs {
			return fmt.Errorf("%w: id %d in a set of %d", driver.ErrCorrupt, n, chunkIDs)
		}
		c.set(n)
	}
	return nil
}

func chunkOf(id int64) int64   { return id >> chunkShift }
func offsetOf(id int64) uint16 { return uint16(id & (chunkIDs - 1)) }
