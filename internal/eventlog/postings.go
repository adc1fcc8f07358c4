package eventlog

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/varvedb/varve/internal/packed"
	"github.com/varvedb/varve/store/driver"
)

// A row of postings holds the positions of events that have one term: a tag, or a
// type. It names the types of these events once, so that an item with tags and
// types needs no other list:
//
//	types     uvarint number, then for each a uvarint length and the bytes
//	postings  uvarint each: the distance to the one before, and in the lowest bits
//	          the number of the type; the first distance is from the row's position
//
// The row of a type names none.

// maxPostings bounds the postings of a row, so that a row has a few hundred bytes
// and a page has several rows.
const maxPostings = 256

// appendPostings encodes the postings of entries, which are in order. With typed
// it names their types.
func appendPostings(to []byte, entries []entry, at []int32, typed bool) []byte {
	var types []string
	if typed {
		for _, n := range at {
			if typ := entries[n].typ; !slices.Contains(types, typ) {
				types = append(types, typ)
			}
		}
	}
	to = binary.AppendUvarint(to, uint64(len(types)))
	for _, typ := range types {
		to = packed.AppendText(to, typ)
	}
	width := typeBits(len(types))
	last := entries[at[0]].position
	for _, n := range at {
		e := &entries[n]
		word := (e.position - last) << width
		if width > 0 {
			word |= uint64(slices.Index(types, e.typ))
		}
		to = binary.AppendUvarint(to, word)
		last = e.position
	}
	return to
}

// typeBits is the number of bits that number n types.
func typeBits(n int) int { return bits.Len(uint(max(n-1, 0))) }

// readPostings appends the positions in a row, of events of some types if any are
// given.
func readPostings(to []uint64, first uint64, row []byte, types []string) ([]uint64, error) {
	r := packed.Reader{Rest: row}
	wanted, n := readTypes(&r, types)
	width := typeBits(n)
	for at := first; len(r.Rest) > 0; {
		word := r.Uint()
		at += word >> width
		typ := int(word & (1<<width - 1))
		if n > 0 && typ >= n {
			r.Tear()
			break
		}
		if wanted == nil || n > 0 && wanted[typ] {
			to = append(to, at)
		}
	}
	if r.Torn {
		return to, fmt.Errorf("%w: postings at %d", driver.ErrCorrupt, first)
	}
	return to, nil
}

// readTypes reads the names of the types, and returns for each whether it is
// wanted; nil when all are.
func readTypes(r *packed.Reader, wanted []string) (list []bool, n int) {
	count := r.Count()
	for range count {
		name := r.Text()
		if len(wanted) > 0 {
			list = append(list, containsBytes(wanted, name))
		}
	}
	return list, int(count)
}

func containsBytes(list []string, b []byte) bool {
	for _, s := range list {
		if s == string(b) {
			return true
		}
	}
	return false
}
