package compact

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// edit is one id that enters or leaves a posting.
type edit struct {
	term
	past bool
	id   int64
	add  bool
}

// sorted is edits in the order of trees and keys, those of one posting as they were
// given.
type sorted struct {
	edits []edit
	order []place
}

// place is where an edit is in the list, with the beginning of its value, so that
// comparing most of them needs no text.
type place struct {
	prefix uint64
	at     int32
}

// column is what edits are told apart by first.
type column struct {
	past bool
	attr int64
}

// sortEdits puts edits in order.
func sortEdits(edits []edit) sorted {
	s := sorted{edits: edits, order: byColumn(edits)}
	for from := 0; from < len(s.order); {
		to := from + 1
		for to < len(s.order) && s.at(to).column() == s.at(from).column() {
			to++
		}
		slices.SortFunc(s.order[from:to], s.compare)
		from = to
	}
	return s
}

// pagesOf makes the pages of runs that say what edits do, for each tree.
func pagesOf(edits []edit) (pages [trees][]page) {
	var w [trees]pageWriter
	var key, sets []byte
	var adds, removes chunk
	s := sortEdits(edits)
	for from := 0; from < len(s.order); {
		e := s.at(from)
		to := from + 1
		for to < len(s.order) && s.at(to).samePosting(e) {
			to++
		}
		sets = sets[:0]
		n := 0
		if to == from+1 {
			sets = binary.LittleEndian.AppendUint16(sets, offsetOf(e.id))
			if e.add {
				n = len(sets)
			}
		} else {
			clear(adds[:])
			clear(removes[:])
			for i := from; i < to; i++ {
				s.at(i).apply(&adds, &removes)
			}
			sets = adds.appendTo(sets)
			n = len(sets)
			sets = removes.appendTo(sets)
		}
		key = appendKey(key[:0], e.attr, e.value, chunkOf(e.id))
		w[e.tree()].add(key, sets[:n], sets[n:])
		from = to
	}
	for i := range w {
		w[i].flush()
		pages[i] = w[i].pages
	}
	return pages
}

func (e *edit) tree() int {
	if e.past {
		return pastTree
	}
	return currentTree
}

// apply does an edit: the last one of an id counts.
func (e *edit) apply(adds, removes *chunk) {
	if !e.add {
		adds, removes = removes, adds
	}
	adds.set(offsetOf(e.id))
	removes.clear(offsetOf(e.id))
}

// at returns the edit at a place in order.
func (s *sorted) at(i int) *edit { return &s.edits[s.order[i].at] }

// byColumn puts edits in the order of their columns.
func byColumn(edits []edit) []place {
	next := map[column]int{}
	for i := range edits {
		next[edits[i].column()]++
	}
	sum := 0
	for _, c := range slices.SortedFunc(maps.Keys(next), column.compare) {
		next[c], sum = sum, sum+next[c]
	}
	order := make([]place, len(edits))
	for i := range edits {
		e := &edits[i]
		c := e.column()
		order[next[c]] = place{prefixOf(e.value), int32(i)}
		next[c]++
	}
	return order
}

func (e *edit) column() column { return column{e.past, e.attr} }

// compare orders columns: past ones first.
func (c column) compare(other column) int {
	if c.past != other.past {
		if c.past {
			return -1
		}
		return 1
	}
	return cmp.Compare(c.attr, other.attr)
}

func prefixOf(value string) uint64 {
	var b [8]byte
	copy(b[:], value)
	return binary.BigEndian.Uint64(b[:])
}

func (e *edit) samePosting(other *edit) bool {
	return e.attr == other.attr && e.past == other.past && chunkOf(e.id) == chunkOf(other.id) && e.value == other.value
}

// compare orders edits of a column as keys of their postings are ordered.
func (s *sorted) compare(a, b place) int {
	if a.prefix != b.prefix {
		return cmp.Compare(a.prefix, b.prefix)
	}
	x, y := &s.edits[a.at], &s.edits[b.at]
	if c := strings.Compare(x.value, y.value); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(chunkOf(x.id), chunkOf(y.id)), cmp.Compare(a.at, b.at))
}
