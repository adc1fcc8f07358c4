package eventlog

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/varvedb/varve/internal/packed"
	"github.com/varvedb/varve/internal/statement"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// Tables are all tables with their columns, that of the events first.
var Tables = []*driver.Table{eventsTable, postingsTable, idsTable, indexTable}

var indexTable = &driver.Table{Name: "event_index", Columns: []driver.Column{{Name: "position", Type: driver.Int}}}

// Checked is the result of a check.
type Checked struct {
	Events uint64
	Head   uint64
	Source bool // an event itself is damaged, not only what finds it
}

// Check compares the events with their checksums, and their positions and times
// with each other. It compares postings and IDs with the events by sums of
// hashes, because these need no memory. It calls report with each contradiction
// until that returns false, and progress after each page.
func (l *Log) Check(ctx context.Context, q driver.Querier, report func(problem string) bool, progress func(done uint64)) (Checked, error) {
	c := checker{log: l, q: q, report: report}
	end, err := l.ends(ctx, q)
	if err != nil {
		return c.done, err
	}
	c.end = end
	if err := c.events(ctx, progress); err != nil || c.stopped {
		return c.done, err
	}
	if end.batch > c.done.Head {
		c.say("postings are written up to event %d, the last is %d", end.batch, c.done.Head)
	}
	c.open.prepare()
	for _, part := range []func(context.Context) error{c.postings, c.ids} {
		if c.stopped {
			break
		}
		if err := part(ctx); err != nil {
			return c.done, err
		}
	}
	if o := &c.open; o.rows != o.last {
		c.say("of the first %d rows of the batch that is being written %d are there", o.last, o.rows)
	}
	return c.done, nil
}

type checker struct {
	log     *Log
	q       driver.Querier
	report  func(string) bool
	stopped bool
	end     ends
	done    Checked

	terms, identities uint64 // sums over entries
	open              openBatch
}

// openBatch compares the rows above the end of the postings with the rows of the
// batch that is being written. The first rows of the batch must be there, and no
// others.
type openBatch struct {
	entries []entry
	numbers map[batchRow]int // of its rows
	rows    int              // that are there
	last    int              // the highest number of them, plus one
}

// batchRow is a row of postings, or without a list a row of the IDs.
type batchRow struct {
	text string
	at   int64
	list string
}

// prepare makes the rows, once all events are known.
func (o *openBatch) prepare() {
	if len(o.entries) == 0 {
		return
	}
	b := newBatch(o.entries, false)
	o.numbers = map[batchRow]int{}
	for row := range slices.Chunk(b.postings, len(postingsTable.Columns)) {
		o.numbers[batchRow{row[0].(string), row[1].(int64), string(row[2].([]byte))}] = len(o.numbers)
	}
	for row := range slices.Chunk(b.ids, len(idsTable.Columns)) {
		o.numbers[batchRow{text: string(row[0].([]byte)), at: row[1].(int64)}] = len(o.numbers)
	}
}

// take counts a row above the end of the postings, and reports whether it
// belongs to the batch.
func (o *openBatch) take(text []byte, at int64, list []byte) bool {
	n, ok := o.numbers[batchRow{string(text), at, string(list)}]
	if ok {
		o.rows, o.last = o.rows+1, max(o.last, n+1)
	}
	return ok
}

func (c *checker) say(format string, args ...any) {
	if !c.stopped {
		c.stopped = !c.report(fmt.Sprintf(format, args...))
	}
}

// entrySum is a hash of one entry of an index. Different sets of entries have
// different sums.
func entrySum(text string, position uint64, typ string) uint64 {
	buf := binary.BigEndian.AppendUint64(make([]byte, 0, 64), position)
	buf = binary.AppendUvarint(buf, uint64(len(text)))
	sum := sha256.Sum256(append(append(buf, text...), typ...))
	return binary.BigEndian.Uint64(sum[:8])
}

// checkPage is how many events are read together.
const checkPage = 512

func (c *checker) events(ctx context.Context, progress func(uint64)) error {
	var at time.Time
	whole := uint64(0) // the first event that is not truncated
	for !c.stopped {
		if err := ctx.Err(); err != nil {
			return err
		}
		page := Page{Items: []Item{{}}, After: c.done.Head, Limit: checkPage, Bytes: 8 << 20, Gone: Gone{}}
		list, end, err := c.log.Read(ctx, c.q, page)
		for i := range list {
			e := &list[i]
			c.done.Events++
			if e.Position != c.done.Head+1 {
				c.done.Source = true
				c.say("events %d to %d are missing", c.done.Head+1, e.Position-1)
			}
			if e.Time.Before(at) {
				c.done.Source = true
				c.say("event %d is of %s, before the event before it", e.Position, e.Time.Format(time.RFC3339Nano))
			}
			if _, gone := page.Gone[e.Position]; !gone && whole == 0 {
				whole = e.Position
			} else if gone && whole > 0 {
				c.done.Source = true
				c.say("event %d is truncated, event %d before it is not", e.Position, whole)
			}
			c.done.Head, at = e.Position, e.Time
			c.add(e)
		}
		if err != nil {
			c.done.Source = c.done.Source || errors.Is(err, driver.ErrCorrupt)
			return err
		}
		progress(c.done.Events)
		if end {
			return nil
		}
	}
	return nil
}

// add adds the entries that must find an event.
func (c *checker) add(e *event.Sequenced) {
	if e.Position > c.end.indexed {
		if e.Position <= c.end.batch {
			c.open.entries = append(c.open.entries, entryOf(e))
		}
		return
	}
	if !e.ID.IsZero() {
		c.identities += entrySum(string(e.ID[:]), e.Position, "")
	}
	seen := map[string]bool{}
	for _, t := range e.Tags {
		if text := encodeTag(t); !seen[text] {
			seen[text] = true
			c.terms += entrySum(text, e.Position, e.Type)
		}
	}
	c.terms += entrySum(typeTerm(e.Type), e.Position, "")
}

// postings compares the stored postings with the sums of the events.
func (c *checker) postings(ctx context.Context) error {
	err := statement.Each(ctx, c.q, driver.Statement{Text: "SELECT " + c.log.traits.TextColumn("term") + ", position, list FROM event_postings"}, nil, func(rows driver.Rows) error {
		var term, list []byte
		var first int64
		if err := rows.Scan(&term, &first, &list); err != nil {
			return err
		}
		if uint64(first) > c.end.indexed {
			return c.above(c.open.take(term, first, list), term, first)
		}
		err := eachPosting(uint64(first), list, func(at uint64, typ []byte) { c.terms -= entrySum(string(term), at, string(typ)) })
		if err != nil {
			c.say("%q: %v", term, err)
		}
		if c.stopped {
			return statement.ErrEnough
		}
		return nil
	})
	if err == nil && c.terms != 0 {
		c.say("the postings of tags and types are not those of the events")
	}
	return err
}

// above reports a row above the end of the postings that belongs to no batch.
func (c *checker) above(belongs bool, text []byte, at int64) error {
	if !belongs {
		c.say("%q: a row of event %d, where postings are written up to event %d", text, at, c.end.indexed)
	}
	if c.stopped {
		return statement.ErrEnough
	}
	return nil
}

// eachPosting calls f with each posting of a row and the type that it names, nil
// when the row names none.
func eachPosting(first uint64, list []byte, f func(at uint64, typ []byte)) error {
	r := packed.Reader{Rest: list}
	types := make([][]byte, 0, 4)
	for range r.Count() {
		types = append(types, r.Text())
	}
	width := typeBits(len(types))
	for at := first; len(r.Rest) > 0; {
		word := r.Uint()
		at += word >> width
		var typ []byte
		if n := int(word & (1<<width - 1)); n < len(types) {
			typ = types[n]
		} else if len(types) > 0 {
			r.Tear()
		}
		f(at, typ)
	}
	if r.Torn {
		return fmt.Errorf("%w: postings at %d", driver.ErrCorrupt, first)
	}
	return nil
}

func (c *checker) ids(ctx context.Context) error {
	err := statement.Each(ctx, c.q, driver.Statement{Text: "SELECT id, position FROM event_ids"}, nil, func(rows driver.Rows) error {
		var id []byte
		var at int64
		if err := rows.Scan(&id, &at); err != nil {
			return err
		}
		if uint64(at) > c.end.indexed {
			return c.above(c.open.take(id, at, nil), id, at)
		}
		c.identities -= entrySum(string(id), uint64(at), "")
		return nil
	})
	if err == nil && c.identities != 0 {
		c.say("the list of IDs is not that of the events")
	}
	return err
}

// Rebuild makes the postings and the list of IDs from the events.
func (l *Log) Rebuild(ctx context.Context, tx driver.Tx) error {
	for _, t := range Tables[1:] {
		if _, err := tx.Exec(ctx, "DELETE FROM "+t.Name); err != nil {
			return fmt.Errorf("empty %s: %w", t.Name, err)
		}
	}
	if err := l.sql.Exec(ctx, tx, "insert_index", position(0)); err != nil {
		return err
	}
	for after := uint64(0); ; {
		list, end, err := l.Read(ctx, tx, Page{Items: []Item{{}}, After: after, Limit: l.IndexEvery(), Bytes: 64 << 20, Gone: Gone{}})
		if err != nil {
			return err
		}
		if len(list) > 0 {
			after = list[len(list)-1].Position
			entries := make([]entry, len(list))
			for i := range list {
				entries[i] = entryOf(&list[i])
			}
			if err := l.index(ctx, tx, entries); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
	}
}

func entryOf(e *event.Sequenced) entry {
	of := entry{position: e.Position, typ: e.Type, id: e.ID}
	for _, t := range e.Tags {
		of.tags = append(of.tags, encodeTag(t))
	}
	return of
}
