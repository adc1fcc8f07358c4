package eventlog

import (
	"bytes"
	"context"
	"slices"
	"sort"
	"strings"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

var (
	postingsTable = &driver.Table{Name: "event_postings", Columns: []driver.Column{
		{Name: "term", Type: driver.Text}, {Name: "position", Type: driver.Int}, {Name: "list", Type: driver.Blob},
	}}
	idsTable = &driver.Table{Name: "event_ids", Columns: []driver.Column{
		{Name: "id", Type: driver.Blob}, {Name: "position", Type: driver.Int},
	}}
)

// batch is the events whose postings are written together, because the postings
// of a term then share pages: the events above after, up to end. One transaction
// of all its rows would take a hundred times as long as others and hold up every
// append that waits for it. So each of the following commits writes the next few
// rows.
//
// Meanwhile event_index has a second row, which is the end of the batch, and
// readers ignore postings above the first one. How many rows are written is
// recorded nowhere, because that would be one more page in each commit. It can
// be found out: every process makes the same rows of the same events, in the
// same order, and goes on behind the rows that are there.
type batch struct {
	after, end uint64
	due        uint64 // the commit with the event at this position writes the remaining rows

	// The rows in the order of their tables. Another goroutine may make them,
	// and has these fields for itself until it closes ready.
	ready    chan struct{}
	postings []any
	ids      []any

	begun   bool // the tables have its end
	known   bool // written is the number of rows in the tables
	written int  // rows that are in the tables, of postings first
}

// dueParts: a batch of n events must be written before n more have come, because
// then the next batch begins. It is due a dueParts-th of them earlier.
const dueParts = 4

// eventsARow bounds the rows of a step from below: one for each eventsARow
// events of TailOptions.Every. A step writes again the pages that lead to its
// rows, so short steps cost more: with a quarter of the rows, 16 clients wrote a
// fifth more pages.
const eventsARow = 16

// due returns the position at which a batch that begins behind another position
// must be written. It is zero, that is at once, where a statement costs more
// than its rows.
func (l *Log) due(behind, events uint64) uint64 {
	if !l.traits.Compiled {
		return 0
	}
	return behind + events - events/dueParts
}

// stepRows returns how many of the rows that are left a commit writes. Its
// events are in (before, last]. The rows are spread evenly over the events up to
// due, but a commit writes at least a given number of them.
func stepRows(left int, before, last, due uint64, least int) int {
	if last >= due {
		return left
	}
	rest := due - before
	share := (uint64(left)*(last-before) + rest - 1) / rest
	return min(left, max(least, int(share)))
}

// minAside is the number of events from which another goroutine makes the rows
// of a batch, because sorting the rows of thousands of events takes
// milliseconds.
const minAside = 256

// newBatch returns the batch of some events, which it keeps. With aside another
// goroutine may make its rows.
func newBatch(entries []entry, aside bool) *batch {
	b := &batch{after: entries[0].position - 1, end: entries[len(entries)-1].position, ready: make(chan struct{})}
	rows := func() {
		defer close(b.ready)
		b.postings, b.ids = postingRows(entries), idRows(entries)
	}
	if aside && len(entries) >= minAside {
		go rows()
	} else {
		rows()
	}
	return b
}

// made reports whether the rows are made. From the middle between the batch's
// end and the position at which it is due it waits for them, because the
// remaining steps would become large.
func (b *batch) made(last uint64) bool {
	if last >= (b.end+b.due)/2 {
		<-b.ready
	}
	select {
	case <-b.ready:
		return true
	default:
		return false
	}
}

// rows returns the number of rows, and how many of them are postings.
func (b *batch) rows() (all, postings int) {
	postings = len(b.postings) / len(postingsTable.Columns)
	return postings + len(b.ids)/len(idsTable.Columns), postings
}

// left returns the number of rows that are not written.
func (b *batch) left() int {
	all, _ := b.rows()
	return all - b.written
}

// find counts the rows that are in the tables, by bisection.
func (b *batch) find(ctx context.Context, l *Log, q driver.Querier) (err error) {
	all, _ := b.rows()
	b.written = sort.Search(all, func(i int) bool {
		has := false
		if err == nil {
			has, err = b.has(ctx, l, q, i)
		}
		return !has
	})
	b.known = err == nil
	return err
}

// has reports whether a row is in its table.
func (b *batch) has(ctx context.Context, l *Log, q driver.Querier, i int) (bool, error) {
	if _, postings := b.rows(); i >= postings {
		id := cut(b.ids, idsTable, i-postings, i-postings+1)[0].([]byte)
		found, err := l.Positions(ctx, q, []event.ID{event.ID(id)})
		return len(found) > 0, err
	}
	key := cut(b.postings, postingsTable, i, i+1)
	n, err := l.sql.Int(ctx, q, "count_postings", key[0], key[1])
	return n > 0, err
}

// write writes the next rows.
func (b *batch) write(ctx context.Context, tx driver.Tx, rows int) error {
	_, postings := b.rows()
	from, to := b.written, b.written+rows
	if some := cut(b.postings, postingsTable, from, to); len(some) > 0 {
		if err := tx.Insert(ctx, postingsTable, some); err != nil {
			return err
		}
	}
	if some := cut(b.ids, idsTable, from-postings, to-postings); len(some) > 0 {
		if err := tx.Insert(ctx, idsTable, some); err != nil {
			return err
		}
	}
	b.written = to
	return nil
}

// cut returns the rows of a table with the numbers from one up to another, as
// far as they exist.
func cut(rows []any, of *driver.Table, from, to int) []any {
	width := len(of.Columns)
	at := func(n int) int { return min(max(n, 0)*width, len(rows)) }
	return rows[at(from):at(to)]
}

// finish records that all rows are written.
func (l *Log) finish(ctx context.Context, tx driver.Tx, b *batch) error {
	if b.begun {
		return l.sql.Exec(ctx, tx, "end_batch", position(b.end))
	}
	return l.sql.Exec(ctx, tx, "update_index", position(b.end))
}

// index writes the postings of events at once.
func (l *Log) index(ctx context.Context, tx driver.Tx, entries []entry) error {
	b := newBatch(entries, false)
	if err := b.write(ctx, tx, b.left()); err != nil {
		return err
	}
	return l.finish(ctx, tx, b)
}

// term is a tag or a type, and the entries that have it.
type term struct {
	text string
	at   []int32
	one  [1]int32 // memory for at, since most tags are of one event
}

// postingRows returns the rows of the postings in the order of their table's
// tree, so that neighbouring rows share pages.
func postingRows(entries []entry) []any {
	list := terms(entries)
	order := make([]int32, len(list))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return strings.Compare(list[a].text, list[b].text) })
	rows := make([]any, 0, 3*len(list))
	buf := make([]byte, 0, 64*len(list))
	for _, n := range order {
		t := &list[n]
		text := any(t.text)
		for at := range slices.Chunk(t.at, maxPostings) {
			from := len(buf)
			buf = appendPostings(buf, entries, at, t.text[0] != typeMark)
			rows = append(rows, text, position(entries[at[0]].position), buf[from:len(buf):len(buf)])
		}
	}
	return rows
}

// terms groups entries by their tags and types.
func terms(entries []entry) []term {
	list := make([]term, 0, 2*len(entries))
	byText := make(map[string]int32, 2*len(entries))
	add := func(text string, n int) {
		i, ok := byText[text]
		if !ok {
			i = int32(len(list))
			byText[text] = i
			list = append(list, term{text: text})
			list[i].at = list[i].one[:0]
		}
		list[i].at = append(list[i].at, int32(n))
	}
	types := map[string]string{}
	for n := range entries {
		e := &entries[n]
		for _, tag := range e.tags {
			add(tag, n)
		}
		text, ok := types[e.typ]
		if !ok {
			text = typeTerm(e.typ)
			types[e.typ] = text
		}
		add(text, n)
	}
	return list
}

// idRows returns the rows of the IDs, in the order of their table's tree.
func idRows(entries []entry) []any {
	var order []*entry
	for i := range entries {
		if !entries[i].id.IsZero() {
			order = append(order, &entries[i])
		}
	}
	slices.SortFunc(order, func(a, b *entry) int { return bytes.Compare(a.id[:], b.id[:]) })
	rows := make([]any, 0, len(order)*len(idsTable.Columns))
	for _, e := range order {
		rows = append(rows, e.id[:], position(e.position))
	}
	return rows
}
