package eventlog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// Page is a request for a bounded number of events that match one of Items, in
// order, with positions above After and, unless it is zero, below Before.
type Page struct {
	Items         []Item
	After, Before uint64
	Backwards     bool
	Limit         int // events
	Bytes         int // of data after which the page ends early
}

// Read returns a page, and whether it ended because nothing more matches.
func (l *Log) Read(ctx context.Context, q driver.Querier, p Page) (list []event.Sequenced, end bool, err error) {
	s := span{backwards: p.Backwards, bounded: p.Before > 0}
	shape := append(make([]byte, 0, 32), 'r', flag(s.backwards), flag(s.bounded))
	for i := range p.Items {
		shape = p.Items[i].shape(shape)
	}
	text := l.texts.get(shape, func() string { return l.readText(p.Items, s) })
	rows, err := q.Query(ctx, text, l.readArgs(&p)...)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var r row
	for total := 0; rows.Next(); {
		if err := r.scan(rows); err != nil {
			return nil, false, err
		}
		list = append(list, r.event)
		total += len(r.event.Data) + len(r.event.Metadata)
		if total >= p.Bytes {
			return list, false, nil
		}
	}
	return list, len(list) < p.Limit, rows.Err()
}

func flag(b bool) byte {
	if b {
		return '1'
	}
	return '0'
}

func (l *Log) readArgs(p *Page) []any {
	rest := []any{position(p.After)}
	if p.Before > 0 {
		rest = append(rest, position(p.Before))
	}
	rest = append(rest, int64(p.Limit))
	var args []any
	for i := range p.Items {
		args = l.args(args, &p.Items[i], rest...)
	}
	if len(args) > 0 && l.merged(p.Items) {
		args = append(args, int64(p.Limit))
	}
	return args
}

// merged tells whether positions come from several branches.
func (l *Log) merged(items []Item) bool { return len(items) > 1 || len(l.branches(&items[0])) > 1 }

// readText selects events. Positions of one branch come in order from an index
// and are joined with the events one by one. Of several branches, each gives as
// many as the page takes.
func (l *Log) readText(items []Item, s span) string {
	if !l.merged(items) {
		b := l.branches(&items[0])[0]
		if b.position != "events.position" {
			b.from += l.crossJoin() + "events"
			b.where += " AND events.position = " + b.position
		}
		return b.text(l.columns(), s)
	}
	var parts []string
	for i := range items {
		for _, b := range l.branches(&items[i]) {
			parts = append(parts, "SELECT position FROM ("+b.text(b.position+" AS position", s)+") AS b")
		}
	}
	return "SELECT " + l.columns() + " FROM (" + strings.Join(parts, " UNION ") + order("position", s.backwards) +
		" LIMIT ?) AS p" + l.crossJoin() + "events WHERE events.position = p.position" + order("events.position", s.backwards)
}

// columns lists what row scans. SQLite's text is read as blobs, so that no driver
// interprets it.
func (l *Log) columns() string {
	if l.dialect == driver.SQLite {
		return "events.position, CAST(events.type AS BLOB), events.time, events.id, CAST(events.tags AS BLOB), events.data, events.metadata"
	}
	return "events.position, events.type, events.time, events.id, events.tags, events.data, events.metadata"
}

// row scans events.
type row struct {
	event          event.Sequenced
	position, time int64
	typ, id, tags  []byte
	lastType       string // types repeat, and need no copy of their own
}

func (r *row) scan(rows driver.Rows) error {
	r.event = event.Sequenced{}
	e := &r.event
	if err := rows.Scan(&r.position, &r.typ, &r.time, &r.id, &r.tags, &e.Data, &e.Metadata); err != nil {
		return err
	}
	if r.lastType != string(r.typ) {
		r.lastType = string(r.typ)
	}
	e.Position, e.Time, e.Type = uint64(r.position), time.UnixMicro(r.time).UTC(), r.lastType
	switch len(r.id) {
	case 0:
	case len(e.ID):
		e.ID = event.ID(r.id)
	default:
		return fmt.Errorf("event %d: %w: an ID of %d bytes", e.Position, driver.ErrCorrupt, len(r.id))
	}
	var err error
	if e.Tags, err = decodeTags(string(r.tags)); err != nil {
		return fmt.Errorf("event %d: %w: %w", e.Position, driver.ErrCorrupt, err)
	}
	if len(e.Data) == 0 {
		e.Data = nil
	}
	if len(e.Metadata) == 0 {
		e.Metadata = nil
	}
	return nil
}
