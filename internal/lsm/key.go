package lsm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/varvedb/varve/internal/bitmap"
	"github.com/varvedb/varve/internal/packed"
	"github.com/varvedb/varve/store/driver"
)

// Term is what ids are found by. Terms sort by space and then by value.
type Term struct {
	Space uint32
	Value string
}

// The key of a posting is its term and chunk, so written that keys sort as these do: four bytes of space; the value
// with 0xff after each zero, closed by 0 and 1; and the chunk as packed.AppendOrdered writes numbers.

// appendKey appends the key of a posting.
func appendKey(buf []byte, t Term, chunk int64) []byte {
	return packed.AppendOrdered(append(appendBound(buf, t), 0, 1), uint64(chunk))
}

// appendBound appends a bound: keys of the term and of greater terms are above
// it, keys of smaller terms below.
func appendBound(buf []byte, t Term) []byte {
	buf = binary.BigEndian.AppendUint32(buf, t.Space)
	for i := range len(t.Value) {
		if buf = append(buf, t.Value[i]); t.Value[i] == 0 {
			buf = append(buf, 0xff)
		}
	}
	return buf
}

// Span is the keys from one on and below another.
type Span struct{ lo, hi []byte }

// compare returns where a key lies relative to a span: -1 before it, 0 in it, 1
// behind it, in the order of keys or, with down, in the reverse order.
func (s Span) compare(key []byte, down bool) int {
	where := 0
	if bytes.Compare(key, s.lo) < 0 {
		where = -1
	} else if bytes.Compare(key, s.hi) >= 0 {
		where = 1
	}
	if down {
		return -where
	}
	return where
}

// All is every key below the highest space, which has none.
var All = Span{hi: binary.BigEndian.AppendUint32(nil, math.MaxUint32)}

// Spaces returns the span of the spaces from one on and below another.
func Spaces(from, below uint32) Span {
	return Span{appendBound(nil, Term{Space: from}), appendBound(nil, Term{Space: below})}
}

// Of returns the span of one term.
func Of(t Term) Span {
	lo := appendBound(nil, t)
	return Span{append(lo[:len(lo):len(lo)], 0, 1), append(lo[:len(lo):len(lo)], 0, 2)}
}

// Part returns the span of one term in the chunks from one on and up to another.
func Part(t Term, first, last int64) Span {
	return Span{appendKey(nil, t, first), appendKey(nil, t, last+1)}
}

// Within returns the span of a space's values from lo on and below hi; an empty hi is no bound.
func Within(space uint32, lo, hi string) Span {
	s := Span{lo: appendBound(nil, Term{space, lo}), hi: appendBound(nil, Term{space, hi})}
	if hi == "" {
		s.hi = appendBound(nil, Term{Space: space + 1})
	}
	return s
}

// Spans are spans in their order.
type Spans []Span

// In reports whether one of the spans lies within s.
func (l Spans) In(s Span) bool {
	i := l.from(s)
	for ; i < len(l) && bytes.Compare(l[i].lo, s.hi) < 0 && bytes.Compare(l[i].hi, s.hi) > 0; i++ {
	}
	return i < len(l) && bytes.Compare(l[i].hi, s.hi) <= 0
}

// Add adds a span.
func (l *Spans) Add(s Span) { *l = slices.Insert(*l, l.from(s), s) }

// from returns the place of the first span that begins with another or later.
func (l Spans) from(s Span) int {
	i, _ := slices.BinarySearchFunc(l, s, func(a, b Span) int { return bytes.Compare(a.lo, b.lo) })
	return i
}

// Disjoint sorts the spans of terms and removes duplicates.
func Disjoint(spans []Span) []Span {
	slices.SortFunc(spans, func(a, b Span) int { return bytes.Compare(a.lo, b.lo) })
	return slices.CompactFunc(spans, func(a, b Span) bool { return bytes.Equal(a.lo, b.lo) })
}

// Posting says which ids of a chunk have a term.
type Posting struct {
	Space uint32
	Value []byte // valid until the next posting
	Chunk int64
	IDs   []byte // as bitmap.Chunk stores them; not empty
}

// AppendIDs appends the ids.
func (p *Posting) AppendIDs(ids []int64) ([]int64, error) {
	return bitmap.AppendIDs(ids, p.Chunk, p.IDs)
}

// decode takes a key apart. The value replaces the one before.
func (p *Posting) decode(key []byte) error {
	rest := key
	if len(rest) < 4 {
		return tornKey(key)
	}
	p.Space, p.Value, rest = binary.BigEndian.Uint32(rest), p.Value[:0], rest[4:]
	for closed := false; !closed; {
		zero := bytes.IndexByte(rest, 0)
		if zero < 0 || zero+1 == len(rest) {
			return tornKey(key)
		}
		p.Value = append(p.Value, rest[:zero]...)
		if closed = rest[zero+1] == 1; !closed {
			p.Value = append(p.Value, 0)
		}
		rest = rest[zero+2:]
	}
	if len(rest) == 0 || len(rest) != int(rest[0])+1 {
		return tornKey(key)
	}
	p.Chunk = int64(packed.Ordered(rest))
	return nil
}

func tornKey(key []byte) error {
	return fmt.Errorf("%w: key of a posting %x", driver.ErrCorrupt, key)
}
