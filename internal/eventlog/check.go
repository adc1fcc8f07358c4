package eventlog

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/varvedb/varve/internal/packed"
	"github.com/varvedb/varve/internal/statement"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// Tables are all tables with their columns, that of the events first.
var Tables = []*driver.Table{eventsTable, postingsTable, idsTable, indexTable}

var indexTable = &driver.Table{Name: "event_index", Columns: []driver.Column{{Name: "position", Type: driver.Int}}}

// Checked is what Check has counted.
type Checked struct {
	Events uint64
	Head   uint64
	Source bool // an event itself is damaged, not only what finds it
}

// Check compares the events with their checksums, their positions and times with
// each other, and what finds them with them, by sums of hashes of all entries, in
// memory that does not grow. It calls report with each contradiction until that
// returns false, and progress after each page.
func (l *Log) Check(ctx context.Context, q driver.Querier, report func(problem string) bool, progress func(done uint64)) (Checked, error) {
	c := checker{log: l, q: q, report: report}
	end, err := l.ends(ctx, q)
	if err != nil {
		return c.done, err
	}
	c.indexed = end.indexed
	if err := c.events(ctx, progress); err != nil || c.stopped {
		return c.done, err
	}
	if c.indexed > c.done.Head {
		c.say("postings are written up to event %d, the last is %d", c.indexed, c.done.Head)
	}
	for _, part := range []func(context.Context) error{c.postings, c.ids} {
		if c.stopped {
			break
		}
		if err := part(ctx); err != nil {
			return c.done, err
		}
	}
	return c.done, nil
}

type checker struct {
	log     *Log
	q       driver.Querier
	report  func(string) bool
	stopped bool
	indexed uint64
	done    Checked

	terms, identities uint64 // sums over entries
}

func (c *checker) say(format string, args ...any) {
	if !c.stopped {
		c.stopped = !c.report(fmt.Sprintf(format, args...))
	}
}

// entrySum is a number for one entry of an index. Sums of them tell sets apart.
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

// add counts what must lead to an event.
func (c *checker) add(e *event.Sequenced) {
	if e.Position > c.indexed {
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
		err := rows.Scan(&id, &at)
		c.identities -= entrySum(string(id), uint64(at), "")
		return err
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
	if err := l.sql.Exec(ctx, tx, "insert_index"); err != nil {
		return err
	}
	for after := uint64(0); ; {
		list, end, err := l.Read(ctx, tx, Page{Items: []Item{{}}, After: after, Limit: l.IndexEvery(), Bytes: 64 << 20, Gone: Gone{}})
		if err != nil {
			return err
		}
		if len(list) > 0 {
			after = list[len(list)-1].Position
			if err := l.index(ctx, tx, entriesOf(list)); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
	}
}

func entriesOf(list []event.Sequenced) []entry {
	entries := make([]entry, len(list))
	for i := range list {
		e := &list[i]
		entries[i] = entry{position: e.Position, typ: e.Type, id: e.ID}
		for _, t := range e.Tags {
			entries[i].tags = append(entries[i].tags, encodeTag(t))
		}
	}
	return entries
}
