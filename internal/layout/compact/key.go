package compact

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/varvedb/varve/store/driver"
)

// The key of a posting is its attribute, value and chunk, so written that keys sort
// as these do: four bytes; the value with 0xff after each zero, closed by 0 and 1;
// and the chunk as encodeNumber writes numbers.

// appendKey appends the key of a posting.
func appendKey(buf []byte, attr int64, value string, chunk int64) []byte {
	buf = append(appendBound(buf, attr, value), 0, 1)
	return append(buf, encodeNumber(uint64(chunk))...)
}

// appendBound appends what all keys of an attribute with a value or a greater one are
// above, and those with a smaller one below.
func appendBound(buf []byte, attr int64, value string) []byte {
	buf = binary.BigEndian.AppendUint32(buf, uint32(attr))
	for i := range len(value) {
		if buf = append(buf, value[i]); value[i] == 0 {
			buf = append(buf, 0xff)
		}
	}
	return buf
}

// keySpan is the keys from lo on and below hi.
type keySpan struct{ lo, hi []byte }

// everyKey is all keys there may be.
var everyKey = keySpan{hi: binary.BigEndian.AppendUint32(nil, math.MaxUint32)}

// keysOf returns the keys of one value.
func keysOf(attr int64, value string) keySpan {
	lo := appendBound(nil, attr, value)
	return keySpan{append(lo[:len(lo):len(lo)], 0, 1), append(lo[:len(lo):len(lo)], 0, 2)}
}

// disjoint sorts the spans of values and leaves out what is there twice.
func disjoint(spans []keySpan) []keySpan {
	slices.SortFunc(spans, func(a, b keySpan) int { return bytes.Compare(a.lo, b.lo) })
	return slices.CompactFunc(spans, func(a, b keySpan) bool { return bytes.Equal(a.lo, b.lo) })
}

// keysWithin returns the keys of values from lo on and below hi; an empty hi is no
// bound.
func keysWithin(attr int64, lo, hi string) keySpan {
	s := keySpan{lo: appendBound(nil, attr, lo), hi: appendBound(nil, attr, hi)}
	if hi == "" {
		s.hi = appendBound(nil, attr+1, "")
	}
	return s
}

// decodeKey takes a key apart. The value is appended to buf.
func decodeKey(key, buf []byte) (attr int64, value []byte, chunk int64, err error) {
	rest := key
	if len(rest) < 4 {
		return 0, nil, 0, tornKey(key)
	}
	attr, rest = int64(binary.BigEndian.Uint32(rest)), rest[4:]
	for {
		zero := bytes.IndexByte(rest, 0)
		if zero < 0 || zero+1 == len(rest) {
			return 0, nil, 0, tornKey(key)
		}
		buf = append(buf, rest[:zero]...)
		closed := rest[zero+1] == 1
		rest = rest[zero+2:]
		if closed {
			break
		}
		buf = append(buf, 0)
	}
	if len(rest) == 0 || len(rest) != int(rest[0])+1 {
		return 0, nil, 0, tornKey(key)
	}
	return attr, buf, int64(decodeNumber(rest)), nil
}

func tornKey(key []byte) error {
	return fmt.Errorf("%w: key of a posting %x", driver.ErrCorrupt, key)
}

// decode returns what a posting is of, and who has it. Value and ids are appended to
// what is given.
func (p *posting) decode(value []byte, ids []int64) (int64, []byte, []int64, error) {
	attr, value, number, err := decodeKey(p.key, value)
	if err != nil {
		return 0, value, ids, err
	}
	var c chunk
	if err := c.merge(p.adds); err != nil {
		return 0, value, ids, err
	}
	return attr, value, append(ids, (idSet{number: &c}).walk(noLimit).next(chunkIDs)...), nil
}
