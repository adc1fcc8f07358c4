package eventlog

import (
	"sort"

	"github.com/varvedb/varve/store/event"
)

// entry is what conditions, queries and IDs ask of an event.
type entry struct {
	position uint64
	typ      string
	tags     []string // encoded
	id       event.ID
	record   *Record // while it is not committed
}

// segment is events in memory, in order and without a gap, with maps by tag,
// type and ID.
type segment struct {
	entries []entry

	mapped int // so many of entries are in the maps
	tags   map[string][]int32
	types  map[string][]int32
	ids    map[event.ID]int32
}

// newSegment returns a segment without entries.
func newSegment() segment {
	return segment{tags: map[string][]int32{}, types: map[string][]int32{}, ids: map[event.ID]int32{}}
}

// fill brings the maps up to date. It runs at the first question, because no
// question may ever be asked about the events of a large append.
func (s *segment) fill() {
	for ; s.mapped < len(s.entries); s.mapped++ {
		n, e := int32(s.mapped), &s.entries[s.mapped]
		s.types[e.typ] = append(s.types[e.typ], n)
		for _, tag := range e.tags {
			s.tags[tag] = append(s.tags[tag], n)
		}
		if !e.id.IsZero() {
			s.ids[e.id] = n
		}
	}
}

// cut forgets all but the first n entries. Memory for more than room entries is not kept.
func (s *segment) cut(n, room int) {
	if n < s.mapped {
		clear(s.tags)
		clear(s.types)
		clear(s.ids)
		s.mapped = 0
	}
	if clear(s.entries[n:]); cap(s.entries) > room {
		s.entries = append([]entry(nil), s.entries[:n]...)
	} else {
		s.entries = s.entries[:n]
	}
}

// find returns the entry that has an ID, nil when there is none.
func (s *segment) find(id event.ID) *entry {
	s.fill()
	if n, ok := s.ids[id]; ok {
		return &s.entries[n]
	}
	return nil
}

// between returns the entries above a position and up to another one.
func (s *segment) between(after, last uint64) []entry {
	return part(s.entries, after, last, func(e entry) uint64 { return e.position })
}

// part cuts a list in order of position to the positions in (after, last].
func part[T any](list []T, after, last uint64, position func(T) uint64) []T {
	behind := func(of uint64) int {
		return sort.Search(len(list), func(i int) bool { return position(list[i]) > of })
	}
	from := behind(after)
	return list[from:max(from, behind(last))]
}

// match appends the positions above one and up to another one of events that match an
// item: for each of its types as many as are asked for, from the first on or from the last.
func (s *segment) match(to []uint64, it *Item, after, last uint64, backwards bool, n int) []uint64 {
	if len(s.entries) == 0 || s.entries[len(s.entries)-1].position <= after {
		return to
	}
	pick := func(list []int32) {
		list = part(list, after, last, func(n int32) uint64 { return s.entries[n].position })
		for i, left := 0, n; left > 0 && i < len(list); i++ {
			at := list[i]
			if backwards {
				at = list[len(list)-1-i]
			}
			if e := &s.entries[at]; it.matches(e.typ, e.tags) {
				to = append(to, e.position)
				left--
			}
		}
	}
	s.fill()
	switch {
	case len(it.tags) > 0:
		rarest := s.tags[it.tags[0]]
		for _, tag := range it.tags[1:] {
			if other := s.tags[tag]; len(other) < len(rarest) {
				rarest = other
			}
		}
		pick(rarest)
	case len(it.types) > 0:
		for _, typ := range it.types {
			pick(s.types[typ])
		}
	default:
		some := s.between(after, last)
		if skip := len(some) - n; skip > 0 && backwards {
			some = some[skip:]
		}
		for i := range min(n, len(some)) {
			to = append(to, some[i].position)
		}
	}
	return to
}
