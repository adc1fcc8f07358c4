package lsm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"
	"math"
	"slices"

	"github.com/varvedb/varve/internal/bitmap"
	"github.com/varvedb/varve/internal/packed"
	"github.com/varvedb/varve/store/driver"
)

// An entry is a change to older entries with the same key: the ids of the chunk
// that have the term now, and the ids that no longer have it. Pages have entries
// in the order of keys:
//
//	checksum  4 bytes, CRC-32C of the lowest key and of the entries
//	entries   for each: the number of bytes that its key shares with the key
//	          before (the first with the lowest key), the length of the rest of
//	          the key, the rest, the lengths of its two sets in 16-bit numbers,
//	          and the sets
type entry struct {
	key     []byte
	adds    []byte // a stored chunk
	removes []byte // a stored chunk, disjoint from adds
}

// Page is a row of a run.
type Page struct {
	Low  []byte // the key of its first entry
	Body []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (p *Page) checksum() uint32 {
	return crc32.Update(crc32.Checksum(p.Low, castagnoli), castagnoli, p.Body[4:])
}

func byLow(a, b Page) int { return bytes.Compare(a.Low, b.Low) }

// pagesFrom returns the pages on which keys from one on lie.
func pagesFrom(pages []Page, lo []byte) []Page {
	i, found := slices.BinarySearchFunc(pages, Page{Low: lo}, byLow)
	if !found {
		i = max(i-1, 0)
	}
	return pages[i:]
}

// pageWriter makes pages of entries that come in order.
type pageWriter struct {
	size  int // see Options.Page
	pages []Page
	open  Page   // its body is nil when there is none
	last  []byte // key
	to    []byte // the last key of the last page
}

func (w *pageWriter) add(e entry) {
	n, size := len(e.key), len(e.key)+len(e.adds)+len(e.removes)+8
	if w.open.Body != nil && len(w.open.Low)+len(w.open.Body)+size > w.size {
		w.flush()
	}
	if w.open.Body == nil {
		buf := append(make([]byte, 0, max(w.size, n+size+8)), e.key...)
		w.open = Page{Low: buf[:n:n], Body: append(buf[n:], 0, 0, 0, 0)}
		w.last = append(w.last[:0], e.key...)
	}
	shared := sharedPrefix(w.last, e.key)
	b := binary.AppendUvarint(w.open.Body, uint64(shared))
	b = packed.AppendText(b, e.key[shared:])
	b = binary.AppendUvarint(b, uint64(len(e.adds)/2))
	b = binary.AppendUvarint(b, uint64(len(e.removes)/2))
	w.open.Body = append(append(b, e.adds...), e.removes...)
	w.last = append(w.last[:shared], e.key[shared:]...)
}

// flush ends the open page.
func (w *pageWriter) flush() {
	if w.open.Body == nil {
		return
	}
	binary.LittleEndian.PutUint32(w.open.Body, w.open.checksum())
	w.pages = append(w.pages, w.open)
	w.open = Page{}
	w.to = append(w.to[:0], w.last...)
}

func sharedPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// loader reads the next pages of a run, in the direction of the cursor; none at
// the end.
type loader func(c *cursor) ([]Page, error)

// cursor goes through the entries of one run.
type cursor struct {
	run   int64  // 0: there are no pages but the loaded ones
	from  []byte // where the next pages begin or, with down, end
	read  int64  // how many pages were read last
	pages []Page
	rest  packed.Reader // of the first page
	entry
	ended bool

	down   bool    // entries come in the reverse order
	before []entry // with down: the entries of a page not yet returned
}

// next moves to the next entry, or sets ended.
func (c *cursor) next(load loader) (err error) {
	if c.down {
		return c.nextDown(load)
	}
	for len(c.rest.Rest) == 0 {
		if len(c.pages) == 0 && c.run != 0 {
			if c.pages, err = load(c); err != nil {
				return err
			}
			if n := len(c.pages); n > 0 {
				c.from = append(slices.Clip(c.pages[n-1].Low), 0)
			}
		}
		if len(c.pages) == 0 {
			c.ended = true
			return nil
		}
		p := c.pages[0]
		if len(p.Body) <= 4 || binary.LittleEndian.Uint32(p.Body) != p.checksum() {
			return fmt.Errorf("%w: a page of postings does not have its checksum", driver.ErrCorrupt)
		}
		c.key, c.rest = append(c.key[:0], p.Low...), packed.Reader{Rest: p.Body[4:]}
		c.pages = c.pages[1:]
	}
	shared := c.rest.Uint()
	suffix := c.rest.Text()
	adds, removes := c.rest.Uint(), c.rest.Uint()
	if max(adds, removes) > bitmap.ChunkBytes/2 || shared > uint64(len(c.key)) {
		c.rest.Tear()
	}
	c.adds, c.removes = c.rest.Bytes(2*adds), c.rest.Bytes(2*removes)
	if c.rest.Torn {
		return fmt.Errorf("%w: a page of postings is torn", driver.ErrCorrupt)
	}
	c.key = append(c.key[:shared], suffix...)
	return nil
}

// nextDown moves to the entry before, or sets ended. It decodes a page as a
// whole, because each key is stored as what it adds to the one before.
func (c *cursor) nextDown(load loader) (err error) {
	for len(c.before) == 0 {
		if len(c.pages) == 0 {
			if c.pages, err = load(c); err != nil {
				return err
			}
		}
		if len(c.pages) == 0 {
			c.ended = true
			return nil
		}
		page := cursor{pages: c.pages[:1]}
		c.from, c.pages = c.pages[0].Low, c.pages[1:]
		for {
			if err := page.next(nil); err != nil {
				return err
			}
			if page.ended {
				break
			}
			e := page.entry
			e.key = slices.Clone(e.key)
			c.before = append(c.before, e)
		}
	}
	last := len(c.before) - 1
	c.entry, c.before = c.before[last], c.before[:last]
	return nil
}

// seek moves to the first entry of a span, or beyond the span when it has none.
// A cursor that is already there stays.
func (c *cursor) seek(load loader, s Span) error {
	if !c.down && len(c.pages) > 0 && bytes.Compare(c.pages[0].Low, s.lo) <= 0 {
		c.pages, c.rest = pagesFrom(c.pages, s.lo), packed.Reader{}
	}
	for !c.ended && (len(c.key) == 0 || s.compare(c.key, c.down) < 0) {
		if err := c.next(load); err != nil {
			return err
		}
	}
	return nil
}

// merger goes through the entries of several runs as if they were one run.
type merger struct {
	cursors []*cursor // oldest first
	at      []*cursor // the cursors at the last key returned

	adds, removes, other bitmap.Chunk
	sets                 []byte
}

// seek moves to before the first entry of a span. Spans come in order.
func (m *merger) seek(load loader, s Span) error {
	m.at = m.at[:0]
	for _, c := range m.cursors {
		if err := c.seek(load, s); err != nil {
			return err
		}
	}
	return nil
}

// next returns the next entry, valid until the next call, or false at the end.
func (m *merger) next(load loader) (e entry, ok bool, err error) {
	for _, c := range m.at {
		if err := c.next(load); err != nil {
			return e, false, err
		}
	}
	m.at = m.at[:0]
	for _, c := range m.cursors {
		if c.ended {
			continue
		}
		if len(m.at) > 0 {
			switch d := bytes.Compare(c.key, m.at[0].key); {
			case d != 0 && (d > 0) != c.down:
				continue
			case d != 0:
				m.at = m.at[:0]
			}
		}
		m.at = append(m.at, c)
	}
	switch len(m.at) {
	case 0:
		return e, false, nil
	case 1:
		return m.at[0].entry, true, nil
	}
	e, err = m.combine()
	return e, err == nil, err
}

// combine lets newer entries overrule older ones.
func (m *merger) combine() (e entry, err error) {
	clear(m.adds[:])
	clear(m.removes[:])
	for _, c := range m.at {
		if err := m.overrule(c.removes, &m.removes, &m.adds); err != nil {
			return e, err
		}
		if err := m.overrule(c.adds, &m.adds, &m.removes); err != nil {
			return e, err
		}
	}
	m.sets = m.adds.AppendTo(m.sets[:0])
	n := len(m.sets)
	m.sets = m.removes.AppendTo(m.sets)
	return entry{m.at[0].key, m.sets[:n], m.sets[n:]}, nil
}

// overrule moves a stored set from one chunk to another.
func (m *merger) overrule(stored []byte, to, from *bitmap.Chunk) error {
	if len(stored) == 0 {
		return nil
	}
	clear(m.other[:])
	if err := m.other.Merge(stored); err != nil {
		return err
	}
	to.Union(&m.other)
	from.Subtract(&m.other)
	return nil
}

// postings yields the postings of spans, which come in order and do not overlap.
// Entries that only remove ids are left out. A posting is valid until the next.
func (m *merger) postings(load loader, spans ...Span) iter.Seq2[*Posting, error] {
	return func(yield func(*Posting, error) bool) {
		var p Posting
		for _, s := range spans {
			err := m.seek(load, s)
			for err == nil {
				var e entry
				var ok bool
				if e, ok, err = m.next(load); !ok || s.compare(e.key, m.at[0].down) > 0 {
					break
				}
				if len(e.adds) == 0 {
					continue
				}
				if err = p.decode(e.key); err != nil {
					break
				}
				if p.IDs = e.adds; !yield(&p, nil) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// Term is a key of the index. Terms sort by space and then by value.
type Term struct {
	Space uint32
	Value string
}

// The key of a posting is its term and chunk, encoded so that keys sort as these
// do: four bytes of space; the value with 0xff after each zero, closed by 0 and 1;
// and the chunk as packed.AppendOrdered writes numbers.

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

// Within returns the span of a space's values from lo on and below hi; an empty hi
// means no bound.
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

// Posting has the ids of a chunk that have a term.
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
