package eventlog

import (
	"context"
	"sort"
	"sync"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// entry is an event without postings, or one that had none a short while ago.
type entry struct {
	position uint64
	typ      string
	tags     []string // encoded
	id       event.ID
	record   *Record // while it is not stored
}

// unposted is such events in memory, in order and without a gap, by what conditions,
// queries and IDs ask for.
type unposted struct {
	entries []entry

	mapped int // so many of entries are in the maps
	tags   map[string][]int32
	types  map[string][]int32
	ids    map[event.ID]int32
}

func newUnposted() unposted {
	return unposted{tags: map[string][]int32{}, types: map[string][]int32{}, ids: map[event.ID]int32{}}
}

// fill brings the maps up to date. A large append that nobody asks about is never
// put there.
func (u *unposted) fill() {
	for ; u.mapped < len(u.entries); u.mapped++ {
		n, e := int32(u.mapped), &u.entries[u.mapped]
		u.types[e.typ] = append(u.types[e.typ], n)
		for _, tag := range e.tags {
			u.tags[tag] = append(u.tags[tag], n)
		}
		if !e.id.IsZero() {
			u.ids[e.id] = n
		}
	}
}

// keep forgets the entries that are not of a list, which is the end of them.
func (u *unposted) keep(list []entry, room int) {
	if kept := copy(u.entries, list); cap(u.entries) > room {
		u.entries = append([]entry(nil), u.entries[:kept]...) // a large append does not stay in memory
	} else {
		clear(u.entries[kept:])
		u.entries = u.entries[:kept]
	}
	clear(u.tags)
	clear(u.types)
	clear(u.ids)
	u.mapped = 0
}

// between returns the entries above a position and up to another one.
func (u *unposted) between(after, last uint64) []entry {
	return part(u.entries, after, last, func(e entry) uint64 { return e.position })
}

// part cuts a list in order of position to what is above a position and up to another one.
func part[T any](list []T, after, last uint64, position func(T) uint64) []T {
	behind := func(of uint64) int {
		return sort.Search(len(list), func(i int) bool { return position(list[i]) > of })
	}
	from := behind(after)
	return list[from:max(from, behind(last))]
}

// match appends the positions above one and up to another one of events that match an
// item: for each of its types, or alternatives among tags, as many as are asked for, from
// the first on or from the last.
func (u *unposted) match(to []uint64, it *Item, after, last uint64, backwards bool, n int) []uint64 {
	pick := func(list []int32) {
		list = part(list, after, last, func(n int32) uint64 { return u.entries[n].position })
		for i, left := 0, n; left > 0 && i < len(list); i++ {
			at := list[i]
			if backwards {
				at = list[len(list)-1-i]
			}
			if e := &u.entries[at]; it.matches(e.typ, e.tags) {
				to = append(to, e.position)
				left--
			}
		}
	}
	u.fill()
	switch {
	case it.any:
		for _, tag := range it.tags {
			pick(u.tags[tag])
		}
	case len(it.tags) > 0:
		rarest := u.tags[it.tags[0]]
		for _, tag := range it.tags[1:] {
			if other := u.tags[tag]; len(other) < len(rarest) {
				rarest = other
			}
		}
		pick(rarest)
	case len(it.types) > 0:
		for _, typ := range it.types {
			pick(u.types[typ])
		}
	default:
		some := u.between(after, last)
		if skip := len(some) - n; skip > 0 && backwards {
			some = some[skip:]
		}
		for i := range min(n, len(some)) {
			to = append(to, some[i].position)
		}
	}
	return to
}

// Recent is what a process knows of the last events, for its readers: in place of looking
// through those without postings they look them up. A committed event does not change, so
// what is known is true in each view that has it.
type Recent struct {
	mu   sync.Mutex
	base uint64 // all events above this one are known, up to
	head uint64 // this one
	unposted

	looked uint64 // events that were looked through since some were read
}

// maxRecent bounds the events that are known; twice as many are the most at any time.
const maxRecent = 2 * manyUnposted

// add takes events that were committed, unless some before them are not known. It does not
// wait for readers, who read for themselves what they miss.
func (r *Recent) add(entries []entry) {
	if !r.mu.TryLock() {
		return
	}
	defer r.mu.Unlock()
	if skip := len(entries) - maxRecent; skip > 0 {
		r.forget(entries[skip-1].position)
	}
	r.append(entries)
}

// forget leaves nothing known, from a position on.
func (r *Recent) forget(at uint64) {
	r.keep(nil, 4*maxRecent)
	r.base, r.head = at, at
}

func (r *Recent) append(entries []entry) {
	for i := range entries {
		if e := &entries[i]; e.position == r.head+1 { // not one that another has told
			r.entries = append(r.entries, entry{position: e.position, typ: e.typ, tags: e.tags, id: e.id})
			r.head++
		}
	}
	if len(r.entries) > 2*maxRecent {
		r.base = r.head - maxRecent
		r.keep(r.between(r.base, r.head), 4*maxRecent)
	}
}

// To read what is not known takes some time for each event, and looking through it an
// eighth of that. So many are read only once it would have been worth it.
const (
	fewMissing   = 256
	readsForLook = 8
)

// reach makes everything known that a view has above a position. It returns false when
// that is too much or too long ago.
func (r *Recent) reach(ctx context.Context, q driver.Querier, l *Log, indexed, head uint64) (bool, error) {
	if head > indexed+maxRecent {
		return false, nil
	}
	if r.head < indexed {
		r.forget(indexed)
	}
	if r.base > indexed {
		return false, nil
	}
	if r.base < indexed && len(r.entries)-r.mapped > manyUnposted { // nobody has asked for long
		r.keep(r.between(indexed, r.head), 4*maxRecent)
		r.base = indexed
	}
	if missing := head - min(r.head, head); missing > 0 {
		if missing > fewMissing && r.looked < readsForLook*missing {
			r.looked += head - indexed
			return false, nil
		}
		r.looked = 0
		entries, err := l.readEntries(ctx, q, nil, r.head)
		if err != nil {
			return false, err
		}
		r.append(entries)
	}
	return r.head >= head && r.base <= indexed, nil
}

// find returns the positions of up to a number of events of a view without postings that
// match some items, of each item in any order, and the last position of the view. It
// returns false when they are to be looked through.
func (r *Recent) find(ctx context.Context, q driver.Querier, l *Log, p *Page, n int) (found [][]uint64, head uint64, ok bool, err error) {
	head, _, indexed, err := l.state(ctx, q)
	if err != nil {
		return nil, 0, false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if ok, err = r.reach(ctx, q, l, indexed, head); !ok {
		return nil, head, false, err
	}
	last := head
	if p.Before > 0 {
		last = min(last, p.Before-1)
	}
	found = make([][]uint64, len(p.Items))
	for i := range p.Items {
		found[i] = r.match(nil, &p.Items[i], max(indexed, p.After), last, p.Backwards, n)
	}
	return found, head, true, nil
}
