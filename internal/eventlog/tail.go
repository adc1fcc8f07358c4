package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// DefaultIndexEvery is how many events lie without postings before theirs are
// written. Each posting changes a page of its own, so one event alone would cost a
// commit four or five pages where the log itself costs one. A reader looks through
// what has none, at 0.2 µs an event.
const DefaultIndexEvery = 128

// Tail is the end of the log as its writer knows it: the last position, and what
// conditions and IDs ask of the events that have no postings yet. Every method is
// called under the writer's lock.
type Tail struct {
	log    *Log
	shared bool // other processes may append
	every  int  // events from which on postings are written

	known   bool
	head    uint64 // of what is stored
	indexed uint64 // postings are complete up to here
	micros  int64  // time of the last event

	entries []entry // at positions above indexed, in order
	stored  int     // so many of entries; the rest is of the open transaction

	mapped int // so many of entries are in the maps
	tags   map[string][]int32
	types  map[string][]int32
	ids    map[event.ID]int32
}

// entry is an event of the tail.
type entry struct {
	position uint64
	typ      string
	tags     []string // encoded
	id       event.ID
	record   *Record // while it is not stored
}

// NewTail returns a tail that has read nothing yet. Shared says that other
// processes may append, too; every, from how many events on postings are written.
func (l *Log) NewTail(shared bool, every int) *Tail {
	if !l.posted {
		every = 1
	}
	return &Tail{
		log: l, shared: shared, every: every,
		tags: map[string][]int32{}, types: map[string][]int32{}, ids: map[event.ID]int32{},
	}
}

// Sync reads what other processes have appended, or everything that is needed
// when the tail is not known.
func (t *Tail) Sync(ctx context.Context, q driver.Querier) error {
	if t.known && !t.shared {
		return nil
	}
	head, micros, indexed, err := t.log.state(ctx, q)
	if err != nil {
		return err
	}
	if t.known && head == t.head && indexed == t.indexed {
		return nil
	}
	if !t.known || indexed != t.indexed {
		t.drop(indexed)
	}
	t.known = false
	from := max(indexed, t.head)
	if len(t.entries) == 0 {
		from = indexed
	}
	if from < head {
		if t.entries, err = t.log.readEntries(ctx, q, t.entries, from); err != nil {
			return err
		}
	}
	t.head, t.micros, t.indexed, t.stored, t.known = head, micros, indexed, len(t.entries), true
	return nil
}

// drop forgets the entries up to a position, all of them when the tail is not
// known.
func (t *Tail) drop(indexed uint64) {
	kept := t.entries[:0]
	for _, e := range t.entries[:t.stored] {
		if t.known && e.position > indexed {
			kept = append(kept, e)
		}
	}
	clear(t.entries[len(kept):])
	if cap(kept) > 8*DefaultIndexEvery {
		kept = append([]entry(nil), kept...) // a large append does not stay in memory
	}
	t.entries, t.stored, t.indexed = kept, len(kept), indexed
	t.unmap()
}

func (t *Tail) unmap() {
	clear(t.tags)
	clear(t.types)
	clear(t.ids)
	t.mapped = 0
}

// Forget makes the next Sync read everything, after a transaction that failed.
func (t *Tail) Forget() { t.known = false }

// Head returns the position of the last stored event.
func (t *Tail) Head() uint64 { return t.head }

// Micros returns the time of the last stored event.
func (t *Tail) Micros() int64 { return t.micros }

// Indexed returns the position above which the tail answers without the database.
func (t *Tail) Indexed() uint64 { return t.indexed }

// Pending tells whether events were added that are not stored.
func (t *Tail) Pending() bool { return len(t.entries) > t.stored }

// Add appends events and returns their positions.
func (t *Tail) Add(records []Record) []uint64 {
	positions := make([]uint64, len(records))
	next := t.head + 1 + uint64(len(t.entries)-t.stored)
	for i := range records {
		r := &records[i]
		positions[i] = next + uint64(i)
		t.entries = append(t.entries, entry{position: positions[i], typ: r.Event.Type, tags: r.tags, id: r.Event.ID, record: r})
	}
	return positions
}

// Write writes the events that were added, and the postings when they are due.
// The time of the events is now, but not before that of the last event.
func (t *Tail) Write(ctx context.Context, tx driver.Tx, now int64) error {
	t.micros = max(t.micros, now)
	if err := t.log.insert(ctx, tx, t.entries[t.stored:], t.micros); err != nil {
		return err
	}
	if len(t.entries) < t.every {
		return nil
	}
	return t.log.index(ctx, tx, t.entries)
}

// Commit tells that what was written is stored.
func (t *Tail) Commit() {
	t.head += uint64(len(t.entries) - t.stored)
	for i := t.stored; i < len(t.entries); i++ {
		t.entries[i].record = nil
	}
	t.stored = len(t.entries)
	if t.stored >= t.every {
		t.drop(t.head)
	}
}

// Find returns where an event with an ID is, and the event itself when it is not
// stored yet.
func (t *Tail) Find(id event.ID) (at uint64, pending *event.Event, ok bool) {
	t.fill()
	n, ok := t.ids[id]
	if !ok {
		return 0, nil, false
	}
	if e := &t.entries[n]; e.record != nil {
		return e.position, e.record.Event, true
	}
	return t.entries[n].position, nil, true
}

// First returns the position of the first event above a position that matches an
// item, of those without postings; zero when there is none.
func (t *Tail) First(it *Item, after uint64) uint64 {
	if len(t.entries) == 0 || t.entries[len(t.entries)-1].position <= after {
		return 0
	}
	t.fill()
	switch {
	case len(it.tags) > 0:
		return t.firstIn(t.shortest(it.tags), it, after)
	case len(it.types) > 0:
		first := uint64(0)
		for _, typ := range it.types {
			if at := t.firstIn(t.types[typ], it, after); at > 0 && (first == 0 || at < first) {
				first = at
			}
		}
		return first
	}
	for i := range t.entries {
		if at := t.entries[i].position; at > after {
			return at
		}
	}
	return 0
}

// shortest returns the entries of the tag that has the fewest.
func (t *Tail) shortest(tags []string) []int32 {
	list := t.tags[tags[0]]
	for _, tag := range tags[1:] {
		if other := t.tags[tag]; len(other) < len(list) {
			list = other
		}
	}
	return list
}

func (t *Tail) firstIn(list []int32, it *Item, after uint64) uint64 {
	for _, n := range list {
		if e := &t.entries[n]; e.position > after && it.matches(e.typ, e.tags) {
			return e.position
		}
	}
	return 0
}

// fill brings the maps up to date. A large append that nobody asks about is never
// put there.
func (t *Tail) fill() {
	for ; t.mapped < len(t.entries); t.mapped++ {
		n, e := int32(t.mapped), &t.entries[t.mapped]
		t.types[e.typ] = append(t.types[e.typ], n)
		for _, tag := range e.tags {
			t.tags[tag] = append(t.tags[tag], n)
		}
		if !e.id.IsZero() {
			t.ids[e.id] = n
		}
	}
}

// state reads the last position and time, and up to where there are postings.
func (l *Log) state(ctx context.Context, q driver.Querier) (head uint64, micros int64, indexed uint64, err error) {
	var at, postings int64
	err = driver.QueryRow(ctx, q, l.schema.Statements["state"], nil, &at, &micros, &postings)
	if errors.Is(err, driver.ErrNoRows) {
		err = nil // no event
	}
	return uint64(at), micros, uint64(postings), err
}

// Posted returns the position up to which there are postings.
func (l *Log) Posted(ctx context.Context, q driver.Querier) (uint64, error) {
	_, _, indexed, err := l.state(ctx, q)
	return indexed, err
}

// readEntries appends the events above a position.
func (l *Log) readEntries(ctx context.Context, q driver.Querier, list []entry, after uint64) ([]entry, error) {
	text := l.texts.get([]byte("e"), func() string {
		return "SELECT " + l.keyColumns() + " FROM events WHERE events.position > ? ORDER BY events.position"
	})
	err := eachKey(ctx, q, text, []any{position(after)}, func(k *keyRow) (bool, error) {
		e := entry{position: k.at, typ: string(k.typ), tags: splitTags(string(k.tags))}
		if len(k.id) > 0 && len(k.id) != len(e.id) {
			return false, fmt.Errorf("event %d: %w: an ID of %d bytes", k.at, driver.ErrCorrupt, len(k.id))
		}
		copy(e.id[:], k.id)
		list = append(list, e)
		return true, nil
	})
	return list, err
}
