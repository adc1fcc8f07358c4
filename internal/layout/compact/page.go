package compact

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/varvedb/varve/internal/packed"
	"github.com/varvedb/varve/store/driver"
)

// A posting says of a value and a chunk of ids which of these have the value. It is
// stored as what has changed since older postings with the same key: who has it now,
// and who no longer has it. Postings lie in pages, in the order of keys:
//
//	checksum  4 bytes, CRC-32C of the lowest key and of what follows
//	postings  each: how many bytes its key shares with the one before (the first with
//	          the lowest key), the others with their length, and how many numbers its
//	          two sets are long, then the sets
type posting struct {
	key     []byte
	adds    []byte // a stored chunk
	removes []byte // a stored chunk; nothing is in both
}

// pageBytes is how long a page and its lowest key become, unless one posting is
// longer: what SQLite keeps of a row in a clustered tree without spilling. Tests make
// it shorter.
var pageBytes = 960

// page is a row of a run.
type page struct {
	low  []byte // the key of its first posting
	body []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (p *page) checksum() uint32 {
	return crc32.Update(crc32.Checksum(p.low, castagnoli), castagnoli, p.body[4:])
}

// pagesFrom returns the pages on which keys from one on lie.
func pagesFrom(pages []page, lo []byte) []page {
	i, found := slices.BinarySearchFunc(pages, lo, func(p page, lo []byte) int { return bytes.Compare(p.low, lo) })
	if !found {
		i = max(i-1, 0)
	}
	return pages[i:]
}

// pageWriter makes pages of postings that come in order.
type pageWriter struct {
	pages []page
	open  page   // its body is nil when there is none
	last  []byte // key
	to    []byte // the last key of the last page
}

func (w *pageWriter) add(key, adds, removes []byte) {
	size := len(key) + len(adds) + len(removes) + 8
	if w.open.body != nil && len(w.open.low)+len(w.open.body)+size > pageBytes {
		w.flush()
	}
	if w.open.body == nil {
		buf := make([]byte, 0, max(pageBytes, 2*len(key)+len(adds)+len(removes)+16))
		buf = append(buf, key...)
		w.open = page{low: buf[:len(key):len(key)], body: append(buf[len(key):], 0, 0, 0, 0)}
		w.last = append(w.last[:0], key...)
	}
	shared := sharedPrefix(w.last, key)
	b := binary.AppendUvarint(w.open.body, uint64(shared))
	b = packed.AppendText(b, key[shared:])
	b = binary.AppendUvarint(b, uint64(len(adds)/2))
	b = binary.AppendUvarint(b, uint64(len(removes)/2))
	w.open.body = append(append(b, adds...), removes...)
	w.last = append(w.last[:shared], key[shared:]...)
}

// flush ends the open page.
func (w *pageWriter) flush() {
	if w.open.body == nil {
		return
	}
	binary.LittleEndian.PutUint32(w.open.body, w.open.checksum())
	w.pages = append(w.pages, w.open)
	w.open = page{}
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

// loader reads some pages of a run, in order, from a lowest key on; none at the end.
type loader func(run int64, from []byte) ([]page, error)

// cursor goes through the postings of one run.
type cursor struct {
	run   int64  // 0: there are no pages but those it has
	from  []byte // of the run, where pages are read next
	pages []page
	rest  packed.Reader
	posting
	ended bool
}

// next moves to the next posting, or sets ended.
func (c *cursor) next(load loader) error {
	for len(c.rest.Rest) == 0 {
		if len(c.pages) == 0 && c.run != 0 {
			if err := c.load(load); err != nil {
				return err
			}
		}
		if len(c.pages) == 0 {
			c.ended = true
			return nil
		}
		if err := c.enter(c.pages[0]); err != nil {
			return err
		}
		c.pages = c.pages[1:]
	}
	shared := c.rest.Uint()
	suffix := c.rest.Text()
	adds, removes := c.rest.Uint(), c.rest.Uint()
	if max(adds, removes) > chunkBytes/2 || shared > uint64(len(c.key)) {
		c.rest.Tear()
	}
	c.adds, c.removes = c.rest.Bytes(2*adds), c.rest.Bytes(2*removes)
	if c.rest.Torn {
		return fmt.Errorf("%w: a page of postings is torn", driver.ErrCorrupt)
	}
	c.key = append(c.key[:shared], suffix...)
	return nil
}

// seek moves to the first posting from a key on, unless it is at that or beyond.
func (c *cursor) seek(load loader, lo []byte) error {
	if len(c.pages) > 0 && bytes.Compare(c.pages[0].low, lo) <= 0 {
		c.pages, c.rest = pagesFrom(c.pages, lo), packed.Reader{}
	}
	for !c.ended && (len(c.key) == 0 || bytes.Compare(c.key, lo) < 0) {
		if err := c.next(load); err != nil {
			return err
		}
	}
	return nil
}

func (c *cursor) load(load loader) (err error) {
	if c.pages, err = load(c.run, c.from); err == nil && len(c.pages) > 0 {
		c.from = append(slices.Clip(c.pages[len(c.pages)-1].low), 0)
	}
	return err
}

// enter begins with a page.
func (c *cursor) enter(p page) error {
	if len(p.body) <= 4 || binary.LittleEndian.Uint32(p.body) != p.checksum() {
		return fmt.Errorf("%w: a page of postings does not have its checksum", driver.ErrCorrupt)
	}
	c.key = append(c.key[:0], p.low...)
	c.rest = packed.Reader{Rest: p.body[4:]}
	return nil
}

// merger goes through the postings of several runs as if they were one.
type merger struct {
	cursors []*cursor // oldest first
	at      []*cursor // those that have the last key

	adds, removes, other chunk
	sets                 []byte
}

// seek moves to before the first posting from a key on. Keys do not fall.
func (m *merger) seek(load loader, lo []byte) error {
	m.at = m.at[:0]
	for _, c := range m.cursors {
		if err := c.seek(load, lo); err != nil {
			return err
		}
	}
	return nil
}

// next returns the next posting, valid until the next call, or false at the end.
func (m *merger) next(load loader) (p posting, ok bool, err error) {
	for _, c := range m.at {
		if err := c.next(load); err != nil {
			return p, false, err
		}
	}
	m.at = m.at[:0]
	for _, c := range m.cursors {
		if c.ended {
			continue
		}
		if len(m.at) > 0 {
			switch d := bytes.Compare(c.key, m.at[0].key); {
			case d > 0:
				continue
			case d < 0:
				m.at = m.at[:0]
			}
		}
		m.at = append(m.at, c)
	}
	switch len(m.at) {
	case 0:
		return p, false, nil
	case 1:
		return m.at[0].posting, true, nil
	}
	return m.combine()
}

// combine lets newer postings overrule older ones.
func (m *merger) combine() (p posting, ok bool, err error) {
	clear(m.adds[:])
	clear(m.removes[:])
	for _, c := range m.at {
		if err := m.overrule(c.removes, &m.removes, &m.adds); err != nil {
			return p, false, err
		}
		if err := m.overrule(c.adds, &m.adds, &m.removes); err != nil {
			return p, false, err
		}
	}
	m.sets = m.adds.appendTo(m.sets[:0])
	n := len(m.sets)
	m.sets = m.removes.appendTo(m.sets)
	return posting{m.at[0].key, m.sets[:n], m.sets[n:]}, true, nil
}

// overrule moves a stored set from one chunk to another.
func (m *merger) overrule(stored []byte, to, from *chunk) error {
	if len(stored) == 0 {
		return nil
	}
	clear(m.other[:])
	if err := m.other.merge(stored); err != nil {
		return err
	}
	for i, ids := range m.other {
		to[i] |= ids
		from[i] &^= ids
	}
	return nil
}
