package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
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

	Visible bool // events that are not durable are wanted, too; the store's affair

	// Head, unless it is nil, receives the last position of what was looked at when the
	// page is the end.
	Head *uint64
}

// span is the page's range of positions.
func (p *Page) span() span { return span{backwards: p.Backwards, bounded: p.Before > 0} }

// bounds are the arguments of span.bounds.
func (p *Page) bounds() []any {
	if p.Before > 0 {
		return []any{position(p.After), position(p.Before)}
	}
	return []any{position(p.After)}
}

// pageEvents are the events of a page as they are read.
type pageEvents struct {
	list  []event.Sequenced
	bytes int  // that may still come
	full  bool // no more may come
	row   row
}

// Read returns a page, and whether it ended because nothing more matches.
func (l *Log) Read(ctx context.Context, q driver.Querier, p Page) (list []event.Sequenced, end bool, err error) {
	to := pageEvents{bytes: p.Bytes, row: row{summed: !l.unsummed}}
	switch {
	case p.Items[0].all():
		err = l.readAll(ctx, q, &p, &to)
	case !l.posted:
		err = l.readGIN(ctx, q, &p, &to)
	case p.Backwards:
		if err = l.readTail(ctx, q, &p, &to); err == nil {
			err = l.readPosted(ctx, q, &p, &to)
		}
	default:
		if err = l.readPosted(ctx, q, &p, &to); err == nil {
			err = l.readTail(ctx, q, &p, &to)
		}
	}
	end = !to.full && len(to.list) < p.Limit
	if err == nil && end && p.Head != nil {
		*p.Head, err = l.Head(ctx, q)
	}
	return to.list, end, err
}

// readAll reads events of any kind.
func (l *Log) readAll(ctx context.Context, q driver.Querier, p *Page, to *pageEvents) error {
	s := p.span()
	text := l.texts.get([]byte{'a', flag(s.backwards), flag(s.bounded)}, func() string {
		return "SELECT " + l.columns() + " FROM events WHERE " + s.bounds("events.position") + order("events.position", s.backwards) + l.limit()
	})
	return to.read(ctx, q, text, append(p.bounds(), int64(p.Limit)))
}

// readTail reads events that have no postings, and compares them themselves.
func (l *Log) readTail(ctx context.Context, q driver.Querier, p *Page, to *pageEvents) error {
	limit := p.Limit - len(to.list)
	if limit <= 0 || to.full {
		return nil
	}
	s := p.span()
	shape := append(make([]byte, 0, 32), 't', flag(s.backwards), flag(s.bounded))
	args := p.bounds()
	for i := range p.Items {
		shape = p.Items[i].shape(shape)
		args = predicateArgs(args, &p.Items[i])
	}
	text := l.texts.get(shape, func() string {
		predicates := make([]string, len(p.Items))
		for i := range p.Items {
			predicates[i] = "(" + l.predicate(&p.Items[i]) + ")"
		}
		return "SELECT " + l.columns() + " FROM events WHERE events.position > (SELECT position FROM event_index) AND " +
			s.bounds("events.position") + " AND (" + strings.Join(predicates, " OR ") + ")" + order("events.position", s.backwards) + l.limit()
	})
	return to.read(ctx, q, text, append(args, int64(limit)))
}

// readRows are the rows of a term that a page reads first. To DuckDB a statement is
// dear and a row cheap.
func (l *Log) readRows() int {
	if l.dialect == driver.DuckDB {
		return maxRows
	}
	return 8
}

// readPosted reads events by their postings.
func (l *Log) readPosted(ctx context.Context, q driver.Querier, p *Page, to *pageEvents) error {
	limit := p.Limit - len(to.list)
	if limit <= 0 || to.full {
		return nil
	}
	first, last := p.After+1, uint64(math.MaxInt64)
	if p.Before > 0 {
		last = p.Before - 1
	}
	if first == 0 || first > last {
		return nil // after the end of all numbers
	}
	if p.Backwards {
		first, last = last, first
	}
	s := search{log: l, q: q, backwards: p.Backwards, rows: l.readRows()}
	positions, err := s.positions(ctx, p.Items, first, last, limit)
	if err != nil {
		return err
	}
	for len(positions) > 0 && !to.full {
		n := min(len(positions), maxFetch)
		if err := l.fetch(ctx, q, positions[:n], p.Backwards, to); err != nil {
			return err
		}
		positions = positions[n:]
	}
	return nil
}

// ReadAt returns the events at some positions, which are given in order, as many as
// have a number of bytes of data, and at least one.
func (l *Log) ReadAt(ctx context.Context, q driver.Querier, positions []uint64, bytes int) ([]event.Sequenced, error) {
	to := pageEvents{bytes: bytes, row: row{summed: !l.unsummed}}
	err := l.fetch(ctx, q, positions[:min(len(positions), maxFetch)], false, &to)
	return to.list, err
}

// maxFetch bounds the positions of one statement.
const maxFetch = 512

// fetch reads the events at some positions.
func (l *Log) fetch(ctx context.Context, q driver.Querier, positions []uint64, backwards bool, to *pageEvents) error {
	text, args := l.fetchStatement(positions, backwards)
	before := len(to.list)
	if err := to.read(ctx, q, text, args); err != nil {
		return err
	}
	got := to.list[before:]
	for i, at := range positions {
		switch {
		case i == len(got) && to.full:
			return nil
		case i == len(got) || got[i].Position != at:
			return fmt.Errorf("%w: event %d is missing", driver.ErrCorrupt, at)
		}
	}
	return nil
}

// fetchStatement selects the events at some positions. SQLite looks up a list of
// arguments one by one; the last one fills it up to a power of two, so that there
// are few texts. The others plan a long list for longer than they run it, so it is
// one argument to them.
func (l *Log) fetchStatement(positions []uint64, backwards bool) (text string, args []any) {
	size := 1 << bits.Len(uint(len(positions)-1))
	if l.dialect != driver.SQLite {
		size = 0
	}
	text = l.texts.get([]byte{'f', flag(backwards), byte(size >> 8), byte(size)}, func() string {
		return "SELECT " + l.columns() + " FROM events WHERE events.position " + l.listed(size) + order("events.position", backwards)
	})
	if size == 0 {
		list := make([]byte, 0, 8*len(positions))
		for i, at := range positions {
			if i > 0 {
				list = append(list, ',')
			}
			list = strconv.AppendUint(list, at, 10)
		}
		return text, []any{string(list)}
	}
	args = make([]any, size)
	for i := range args {
		args[i] = position(positions[min(i, len(positions)-1)])
	}
	return text, args
}

// listed compares with n arguments, or with a list in one argument.
func (l *Log) listed(n int) string {
	switch l.dialect {
	case driver.DuckDB:
		return "IN (SELECT unnest(CAST(string_split(?, ',') AS BIGINT[])))"
	case driver.Postgres:
		return "= ANY (CAST(string_to_array(?, ',') AS BIGINT[]))"
	}
	return "IN (?" + strings.Repeat(", ?", n-1) + ")"
}

// read appends the events that a statement selects.
func (to *pageEvents) read(ctx context.Context, q driver.Querier, text string, args []any) (err error) {
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := to.row.scan(rows); err != nil {
			return err
		}
		to.list = append(to.list, to.row.event)
		to.bytes -= len(to.row.event.Data) + len(to.row.event.Metadata)
		if to.full = to.bytes <= 0; to.full {
			return nil
		}
	}
	return rows.Err()
}

func flag(b bool) byte {
	if b {
		return '1'
	}
	return '0'
}

// columns lists what row scans. SQLite's text is read as blobs, so that no driver
// interprets it.
func (l *Log) columns() string {
	return l.keyColumns() + ", events.time, events.data, events.metadata"
}

func (l *Log) keyColumns() string {
	if l.dialect == driver.SQLite {
		return "events.position, CAST(events.type AS BLOB), events.id, CAST(events.tags AS BLOB)"
	}
	return "events.position, events.type, events.id, events.tags"
}

// row scans events.
type row struct {
	event          event.Sequenced
	position, time int64
	typ, id, tags  []byte
	lastType       string // types repeat, and need no copy of their own
	summed         bool   // rows have checksums
}

func (r *row) scan(rows driver.Rows) error {
	r.event = event.Sequenced{}
	e := &r.event
	if err := rows.Scan(&r.position, &r.typ, &r.id, &r.tags, &r.time, &e.Data, &e.Metadata); err != nil {
		return err
	}
	if r.summed {
		if err := r.unseal(); err != nil {
			return err
		}
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
