package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// How many events lie without postings before theirs are written. Each posting changes a
// page of its own, and those of a tag that comes again share one: so the more events, the
// fewer pages. Where readers look through them, at 0.2 µs an event, there are few; where
// they have them in memory (see Recent), many.
const (
	fewUnposted  = 128
	manyUnposted = 4096
)

// IndexEvery is how many events lie without postings unless somebody wants another number.
func (l *Log) IndexEvery() int {
	if l.remembers() {
		return manyUnposted
	}
	return fewUnposted
}

// remembers tells whether readers have the events without postings in memory: where a
// statement is not dear. Elsewhere they come with what else is read.
func (l *Log) remembers() bool { return l.posted && l.dialect == driver.SQLite }

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

	unposted      // at positions above indexed
	stored   int  // so many of entries; the rest is of the open transaction
	posting  bool // the open transaction has written the postings of all entries

	recent  *Recent // nil where readers do not remember
	scratch []uint64
}

// NewTail returns a tail that has read nothing yet. Shared says that other
// processes may append, too; every, from how many events on postings are written.
func (l *Log) NewTail(shared bool, every int) *Tail {
	if !l.posted {
		every = 1
	}
	t := &Tail{log: l, shared: shared, every: every, unposted: newUnposted()}
	if l.remembers() {
		t.recent = &Recent{unposted: newUnposted()}
	}
	return t
}

// Recent returns what readers remember, nil where they do not. It may be called without
// the lock.
func (t *Tail) Recent() *Recent { return t.recent }

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
	list := t.entries[:t.stored]
	if !t.known {
		list = nil
	}
	t.entries = list
	t.keep(t.between(indexed, math.MaxUint64), 8*t.every)
	t.stored, t.indexed = len(t.entries), indexed
}

// Forget makes the next Sync read everything, after a transaction that failed.
func (t *Tail) Forget() { t.known, t.posting = false, false }

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
	if t.posting = len(t.entries) >= t.every; !t.posting {
		return nil
	}
	return t.log.index(ctx, tx, t.entries)
}

// Commit tells that the transaction is, and with it whatever Write has written in it, which
// may be nothing: events count as indexed only when it was their postings.
func (t *Tail) Commit() {
	t.head += uint64(len(t.entries) - t.stored)
	if t.recent != nil {
		t.recent.add(t.entries[t.stored:])
	}
	for i := t.stored; i < len(t.entries); i++ {
		t.entries[i].record = nil
	}
	t.stored = len(t.entries)
	if t.posting {
		t.drop(t.head)
	}
	t.posting = false
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
	t.scratch = t.match(t.scratch[:0], it, after, math.MaxUint64, false, 1)
	if len(t.scratch) == 0 {
		return 0
	}
	return slices.Min(t.scratch)
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
