package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// IndexEvery is how many events have no postings yet before the postings of all of
// them are written as a batch, unless an option asks for another number. More
// events need fewer pages each, because the postings of a tag that comes again
// share a page. The number is small where one append writes the whole batch.
func (l *Log) IndexEvery() int {
	if l.traits.Compiled {
		return 4096
	}
	return 128
}

// maxKept bounds the memory of a segment that is reused, in events.
const maxKept = 1 << 14

// Tail is the end of a log in the memory of a process. It takes events through
// their states, each of which is a position up to which all events have come:
//
//	        Add                Commit               Durable
//	queued ─────► accepted ───────────► committed ───────────► durable
//	                                        │      Commit
//	                                        └────────────────► indexed
//
// An event is accepted once the writer has judged its append and given it a
// position, in an open transaction. It is committed when the transaction is:
// then conditions are judged by it and views have it, but a power cut may undo
// it. It is durable when the engine promises that it stays: its append is
// acknowledged, and readers are shown it (Visible). Where a commit is durable
// when it returns, these two are one. It is indexed when postings find it: the
// events without are a batch once they are many, and the next commits write the
// postings of all of them (see batch). The memory has at most two batches, or
// three after the log was opened in the middle of one.
//
// Events without postings are in memory, by tag, type and ID: the writer judges
// conditions by them, and readers find them there. A committed event never
// changes, so the memory is true in each view that has the event. Events of
// other processes are read once.
//
// The methods of the writer, Sync to Micros, are called by one goroutine at a time, the
// others by any.
type Tail struct {
	log  *Log
	opts TailOptions

	// The writer's.
	known bool // end is that of the database
	end   ends
	next  ends   // end as the open transaction will leave it
	batch *batch // that is being written; nil if there is none, or if it is another process's

	mu sync.Mutex

	// All events above base are known: the older ones, of which the last batch
	// is, and the newer ones. The first `committed` of the newer ones are
	// committed; the others are accepted.
	base         uint64
	older, newer segment
	committed    int

	scratch []uint64

	durable     uint64
	since, last uint64 // this process alone committed events after since, up to last
}

// TailOptions depend on the engine.
type TailOptions struct {
	Shared bool // other processes may append, too
	Every  int  // events without postings that make a batch

	// Begin, unless it is nil, is called in a transaction that leaves a batch
	// half written.
	Begin func(ctx context.Context, tx driver.Tx) error

	Overlapper driver.Overlapper // nil where a commit is durable when it returns
	Keep       func(uint64)      // called with the position up to which events are durable; may be nil
}

// ends has the ends of a log: its last event with its time, the last indexed
// event, and the last event of the batch that is being written, or the last
// indexed one if there is no such batch.
type ends struct {
	head           uint64
	micros         int64
	indexed, batch uint64
}

// NewTail returns a tail that has read nothing yet.
func (l *Log) NewTail(opts TailOptions) *Tail {
	return &Tail{log: l, opts: opts, older: newSegment(), newer: newSegment()}
}

// Opened records the head of the log when it was opened.
func (t *Tail) Opened(head uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since, t.last = head, head
	t.kept(head)
}

// Sync reads what other processes have appended, or everything that is needed
// when the tail is not known.
func (t *Tail) Sync(ctx context.Context, q driver.Querier) error {
	if t.known && !t.opts.Shared {
		return nil
	}
	end, err := t.log.ends(ctx, q)
	if err != nil || t.known && end == t.end {
		return err
	}
	t.known = false
	if b := t.batch; b != nil && b.after == end.indexed && b.end == end.batch {
		b.known = false // another process may have written rows of it
	} else {
		t.batch = nil
	}
	from, ok := t.knows(end)
	if !ok || from > end.head { // the index or the log was set back: a server has lost its end
		t.batch = nil
		t.mu.Lock()
		t.restart(end.indexed)
		t.mu.Unlock()
		from = end.indexed
	}
	entries, err := t.log.readEntries(ctx, q, from)
	if err != nil {
		return err
	}
	if reached := t.extend(from, entries); reached != end.head || reached < end.batch {
		return fmt.Errorf("%w: event %d is missing", driver.ErrCorrupt, reached+1)
	}
	t.end, t.known = end, true
	return nil
}

// Abort forgets the accepted events, after a transaction that failed. The next
// Sync reads the end of the log.
func (t *Tail) Abort() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.newer.keepFirst(t.committed)
	t.known = false
	t.batch = nil // it may have events that are forgotten
}

// Head returns the position of the last committed event.
func (t *Tail) Head() uint64 { return t.end.head }

// Micros returns the time of the last committed event.
func (t *Tail) Micros() int64 { return t.end.micros }

// Indexed returns the position above which the tail answers without the database.
func (t *Tail) Indexed() uint64 { return t.end.indexed }

// Pending reports whether events were accepted that are not committed.
func (t *Tail) Pending() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pending()
}

func (t *Tail) pending() bool { return len(t.newer.entries) > t.committed }

// Add accepts events and returns their positions.
func (t *Tail) Add(records []Record) []uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	positions := make([]uint64, len(records))
	next := t.end.head + 1 + uint64(len(t.newer.entries)-t.committed)
	for i := range records {
		r := &records[i]
		positions[i] = next + uint64(i)
		t.newer.entries = append(t.newer.entries, entry{position: positions[i], typ: r.Event.Type, tags: r.tags, id: r.Event.ID, record: r})
	}
	return positions
}

// Write writes the events that were accepted, and the next postings of a batch.
// The time of the events is now, but not before that of the last event.
func (t *Tail) Write(ctx context.Context, tx driver.Tx, now int64) error {
	accepted := t.newer.entries[t.committed:]
	t.next = t.end
	t.next.head = accepted[len(accepted)-1].position
	t.next.micros = max(t.end.micros, now)
	if err := t.log.insert(ctx, tx, accepted, t.next.micros); err != nil {
		return err
	}
	return t.writeBatch(ctx, tx)
}

// writeBatch writes the next rows of the batch, and begins one when enough events
// have no postings.
func (t *Tail) writeBatch(ctx context.Context, tx driver.Tx) error {
	before, last := t.end.head, t.next.head
	b := t.batch
	switch {
	case b != nil:
	case t.end.batch > t.end.indexed: // begun by another process, or before a failure
		due := t.log.due(t.end.batch, t.end.batch-t.end.indexed)
		b = newBatch(t.between(t.end.indexed, t.end.batch), last < due)
		b.due, b.begun = due, true
	case last-t.end.indexed >= uint64(t.opts.Every):
		due := t.log.due(before, last-t.end.indexed)
		b = newBatch(t.between(t.end.indexed, last), last < due)
		b.due, b.known = due, true
	default:
		return nil
	}
	t.batch = b

	// Write rows once they are made.
	if b.made(last) {
		if !b.known {
			if err := b.find(ctx, t.log, tx); err != nil {
				return err
			}
		}
		rows := stepRows(b.left(), before, last, b.due, max(t.opts.Every/eventsARow, 1))
		if err := b.write(ctx, tx, rows); err != nil {
			return err
		}
		if b.left() == 0 {
			t.batch, t.next.indexed, t.next.batch = nil, b.end, b.end
			return t.log.finish(ctx, tx, b)
		}
	}
	if b.begun {
		return nil
	}

	// Let every process know the end of the batch, so that all make the same rows.
	b.begun, t.next.batch = true, b.end
	if t.opts.Begin != nil {
		if err := t.opts.Begin(ctx, tx); err != nil {
			return err
		}
	}
	return t.log.sql.Exec(ctx, tx, "insert_index", position(b.end))
}

// between returns a copy of the entries above a position and up to another one.
func (t *Tail) between(after, last uint64) []entry {
	return slices.Concat(t.older.between(after, last), t.newer.between(after, last))
}

// Commit records that the transaction was committed, with everything that Write
// has written in it.
func (t *Tail) Commit() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last != t.end.head {
		t.since = t.end.head
	}
	for i := t.committed; i < len(t.newer.entries); i++ {
		t.newer.entries[i].record = nil
	}
	if t.pending() {
		t.end = t.next
	}
	t.committed, t.last = len(t.newer.entries), t.end.head
	t.dropIndexed(t.end)
	if t.opts.Overlapper == nil {
		t.kept(t.end.head)
	}
}

// Find returns where an event with an ID is, and the event itself when it is not
// committed yet.
func (t *Tail) Find(id event.ID) (at uint64, pending *event.Event, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.newer.find(id)
	if e == nil {
		e = t.older.find(id)
	}
	switch {
	case e == nil:
		return 0, nil, false
	case e.record != nil:
		return e.position, e.record.Event, true
	}
	return e.position, nil, true
}

// First returns the position of the first event above a position that matches an
// item, among the events in memory; zero when there is none.
func (t *Tail) First(it *Item, after uint64) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.scratch = t.older.match(t.scratch[:0], it, after, math.MaxUint64, false, 1)
	if len(t.scratch) == 0 {
		t.scratch = t.newer.match(t.scratch, it, after, math.MaxUint64, false, 1)
	}
	if len(t.scratch) == 0 {
		return 0
	}
	return slices.Min(t.scratch)
}

// reached returns the last committed position that is known. The caller holds mu.
func (t *Tail) reached() uint64 { return t.base + uint64(len(t.older.entries)+t.committed) }

// restart drops all events. Those above a position will be known again. The caller holds mu.
func (t *Tail) restart(at uint64) {
	t.older.keepFirst(0)
	t.newer.keepFirst(0)
	t.base, t.committed = at, 0
}

// dropIndexed drops the older events once they are indexed and a batch has some
// of the newer ones, which become the older ones. The caller holds mu, and no
// event is accepted.
func (t *Tail) dropIndexed(end ends) {
	middle := t.base + uint64(len(t.older.entries))
	switch {
	case end.indexed < middle || end.batch <= middle:
	case len(t.newer.entries) > maxKept && t.reached() == end.indexed: // a large append
		t.restart(end.indexed)
	default:
		t.older.keepFirst(0)
		t.older, t.newer = t.newer, t.older
		t.base, t.committed = middle, 0
	}
}

// knows reports whether all events without postings of a view or transaction
// are in memory, and up to which position. They are not for a view that is
// older than the memory.
func (t *Tail) knows(end ends) (to uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.pending() {
		t.dropIndexed(end)
	}
	return max(t.reached(), end.indexed), t.base <= end.indexed
}

// extend takes the committed events above a position into memory, and returns the last
// one that is there.
func (t *Tail) extend(from uint64, entries []entry) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending() {
		return t.reached()
	}
	if t.reached() < from {
		t.restart(from)
	}
	for _, e := range entries {
		if e.position == t.reached()+1 { // not one that another has brought
			t.newer.entries = append(t.newer.entries, e)
			t.committed++
		}
	}
	return t.reached()
}

// match returns the positions of events of a view without postings that match the items of a
// page, for each item and each of its types up to a number of them, in any order.
func (t *Tail) match(ctx context.Context, q driver.Querier, end ends, p *Page, n int) ([][]uint64, error) {
	known, ok := t.knows(end)
	if !ok {
		known = end.indexed
	}
	var own segment // what only this view has
	if known < end.head {
		entries, err := t.log.readEntries(ctx, q, known)
		if err != nil {
			return nil, err
		}
		own = newSegment()
		if own.entries = entries; ok {
			t.extend(known, entries)
		}
	}
	after, last := max(end.indexed, p.After), end.head
	if p.Before > 0 {
		last = min(last, p.Before-1)
	}
	found := make([][]uint64, len(p.Items))
	for i := range p.Items {
		found[i] = own.match(nil, &p.Items[i], max(after, known), last, p.Backwards, n)
	}
	if after >= min(known, last) {
		return found, nil
	}
	t.mu.Lock()
	if t.base > end.indexed { // they were forgotten meanwhile
		t.mu.Unlock()
		return t.match(ctx, q, end, p, n)
	}
	defer t.mu.Unlock()
	for i := range p.Items {
		for _, s := range []*segment{&t.older, &t.newer} {
			found[i] = s.match(found[i], &p.Items[i], after, min(known, last), p.Backwards, n)
		}
	}
	return found, nil
}

// Durable notes that events up to a position are durable, and returns the position
// up to which any process knows that they are, because what one process has read
// every other one must read from then on.
func (t *Tail) Durable(at uint64) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.raise(at)
}

// raise is Durable. The caller holds mu.
func (t *Tail) raise(at uint64) uint64 {
	t.durable = t.opts.Overlapper.Durable(max(t.durable, at))
	t.kept(at)
	return t.durable
}

func (t *Tail) kept(at uint64) {
	if t.opts.Keep != nil {
		t.opts.Keep(at)
	}
}

// Visible returns the last position that a reader may return, when its view has
// events up to seen. If this process alone has written the events that are not
// durable, the reader leaves them out, because none was acknowledged yet. Events of
// other processes may be acknowledged already: then ok is false, and the reader
// makes them durable first.
//
// An engine of one process, whose commits are durable when they return, may show a
// commit to views before it returns. There the end is what this process has
// committed.
func (t *Tail) Visible(seen uint64) (to uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.opts.Overlapper == nil && t.opts.Shared:
		return seen, true
	case t.opts.Overlapper == nil:
		return min(seen, t.last), true
	}
	durable := t.raise(0)
	switch {
	case seen <= durable:
		return seen, true
	case t.since <= durable && seen <= t.last:
		return durable, true
	}
	return seen, false
}

// ends reads the ends of the log.
func (l *Log) ends(ctx context.Context, q driver.Querier) (e ends, err error) {
	var at, postings, batch int64
	err = l.sql.Row(ctx, q, "state", nil, &at, &e.micros, &postings, &batch)
	if errors.Is(err, driver.ErrNoRows) {
		err = nil // no event
	}
	e.head, e.indexed, e.batch = uint64(at), uint64(postings), uint64(batch)
	return e, err
}

// Posted returns the position up to which there are postings.
func (l *Log) Posted(ctx context.Context, q driver.Querier) (uint64, error) {
	e, err := l.ends(ctx, q)
	return e.indexed, err
}

// readEntries reads the events above a position.
func (l *Log) readEntries(ctx context.Context, q driver.Querier, after uint64) (list []entry, err error) {
	text := l.texts.Get([]byte("e"), func() string {
		return "SELECT " + l.keyColumns() + " FROM events WHERE events.position > ? ORDER BY events.position"
	})
	err = eachKey(ctx, q, text, []any{position(after)}, func(k *keyRow) error {
		e := entry{position: k.at, typ: string(k.typ), tags: splitTags(string(k.tags))}
		if len(k.id) > 0 && len(k.id) != len(e.id) {
			return fmt.Errorf("event %d: %w: an ID of %d bytes", k.at, driver.ErrCorrupt, len(k.id))
		}
		copy(e.id[:], k.id)
		list = append(list, e)
		return nil
	})
	return list, err
}

// entry has the parts of an event by which conditions, queries and IDs find it.
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

// keepFirst drops all but the first n entries. Memory for more than room entries is not kept.
func (s *segment) keepFirst(n int) {
	if n < s.mapped {
		clear(s.tags)
		clear(s.types)
		clear(s.ids)
		s.mapped = 0
	}
	if clear(s.entries[n:]); cap(s.entries) > maxKept {
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
