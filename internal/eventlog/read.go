package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

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

	// Gone, unless it is nil, lets truncated events pass, without their data, and
	// receives what remains of them. Otherwise one ends the page with an error.
	Gone    Gone
	Visible bool // events that are not durable are wanted, too; the store's affair

	// Recent, unless it is nil, is asked for the events without postings. The page must be
	// of a view, for what is not committed must not be remembered.
	Recent *Recent

	// Head, unless it is nil, receives the last position of what was looked at when the
	// page, which is not backwards, is the end.
	Head *uint64

	// Last, unless it is nil, asks for the last event of each item alone. It is kept
	// from page to page, with Items and bounds as they were.
	Last *Last
}

// PageSizes are the events of the first page of a read, which is small for the many
// queries with few results, and of the largest. Where a statement is dear, both are
// larger; in the layout "gin" each page costs as much as all that is left.
func (l *Log) PageSizes() (first, last int) {
	switch {
	case l.dialect == driver.SQLite:
		return 64, 2048
	case !l.posted:
		return 512, 1 << 15
	}
	return 256, 4096
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

// ends are the positions at which a search begins and ends; ok tells whether any lies
// between.
func (p *Page) ends() (from, to uint64, ok bool) {
	from, to = p.After+1, uint64(math.MaxInt64)
	if p.Before > 0 {
		to = p.Before - 1
	}
	ok = from > 0 && from <= to
	if p.Backwards {
		from, to = to, from
	}
	return from, to, ok
}

// Wide tells whether the items have too many types and tags for the text of a
// statement.
func (p *Page) Wide() bool {
	terms := 0
	for i := range p.Items {
		terms += len(p.Items[i].types) + len(p.Items[i].tags)
	}
	return terms > maxArms
}

// pageEvents are the events of a page as they are read.
type pageEvents struct {
	list      []event.Sequenced
	limit     int
	bytes     int  // that may still come
	full      bool // no more may come
	backwards bool
	gone      Gone
	row       row

	items   []Item
	compare bool     // rows that are no candidates with the items, too
	match   *matcher // of the items, made when it is needed
	head    uint64   // of the log, if the statement told it
}

func (l *Log) newPageEvents(p *Page) pageEvents {
	return pageEvents{limit: p.Limit, bytes: p.Bytes, backwards: p.Backwards, items: p.Items, gone: p.Gone, row: row{summed: !l.unsummed}}
}

// wants tells whether the row that was scanned is one of the page's.
func (to *pageEvents) wants(c *candidate) bool {
	if c == nil && !to.compare || c != nil && c.sure {
		return true
	}
	if to.match == nil {
		to.match = newMatcher(to.items)
	}
	ok := to.match.matches(to.row.typ, to.row.tags)
	if c != nil {
		c.stream.judge(1, ok)
	}
	return ok
}

// Read returns a page, and whether it ended because nothing more matches.
func (l *Log) Read(ctx context.Context, q driver.Querier, p Page) (list []event.Sequenced, end bool, err error) {
	to := l.newPageEvents(&p)
	switch {
	case p.Last != nil:
		err = l.readLast(ctx, q, &p, &to)
	case p.Items[0].all():
		err = l.readAll(ctx, q, &p, &to)
	case !l.posted:
		err = l.readGIN(ctx, q, &p, &to)
	default:
		err = l.readPosted(ctx, q, &p, &to)
	}
	end = !to.full && len(to.list) < p.Limit
	if p.Last != nil {
		end = len(p.Last.positions) == 0
	}
	if err == nil && end && p.Head != nil {
		err = l.tellHead(ctx, q, &p, to.head)
	}
	return to.list, end, err
}

// tellHead sets the page's Head to that of the log, or to the end of the page's
// positions.
func (l *Log) tellHead(ctx context.Context, q driver.Querier, p *Page, head uint64) (err error) {
	if p.Last != nil {
		head = p.Last.head
	} else if head == 0 {
		if head, err = l.Head(ctx, q); err != nil {
			return err
		}
	}
	if p.Before > 0 {
		head = min(head, p.Before-1)
	}
	*p.Head = head
	return nil
}

// readAll reads events of any kind.
func (l *Log) readAll(ctx context.Context, q driver.Querier, p *Page, to *pageEvents) error {
	s, head := p.span(), l.headToo(p)
	limit, shape, n := l.limit(p.Limit)
	text := l.texts.get([]byte{'a', flag(s.backwards), flag(s.bounded), flag(head), shape}, func() string {
		return withHead("SELECT "+l.columns()+" FROM events WHERE "+s.bounds("events.position")+order("events.position", s.backwards)+limit, head)
	})
	return to.read(ctx, q, text, append(p.bounds(), n...), nil)
}

// headToo tells whether a statement that may be the page's last one is to tell the
// head, too: where a statement is dear.
func (l *Log) headToo(p *Page) bool {
	return p.Head != nil && p.Last == nil && l.dialect != driver.SQLite
}

// headRow is the position of the row that tells the head, which comes last.
const headRow = math.MaxInt64

// withHead adds a row with the head as its time to a statement.
func withHead(text string, head bool) string {
	if !head {
		return text
	}
	return "SELECT * FROM (" + text + ") AS found UNION ALL SELECT * FROM (SELECT 9223372036854775807, events.type, events.id, events.tags," +
		" events.position, events.id, events.id FROM events ORDER BY events.position DESC LIMIT 1) AS head ORDER BY 1"
}

// tail selects up to a number of events that have no postings, with its arguments and
// what its text depends on. It compares them unless the items are too many.
func (l *Log) tail(shape []byte, args []any, p *Page, n int) (func() string, []byte, []any) {
	s := p.span()
	shape = append(shape, flag(s.backwards), flag(s.bounded), flag(p.Wide()))
	args = append(args, p.bounds()...)
	end := order("events.position", s.backwards)
	if !p.Wide() {
		for i := range p.Items {
			shape = p.Items[i].shape(shape)
			args = predicateArgs(args, &p.Items[i])
		}
		limit, kind, more := l.limit(n)
		end, shape, args = end+limit, append(shape, kind), append(args, more...)
	}
	return func() string {
		text := "SELECT " + l.columns() + " FROM events WHERE " + unpostedRange + " AND " + s.bounds("events.position")
		if !p.Wide() {
			predicates := make([]string, len(p.Items))
			for i := range p.Items {
				predicates[i] = "(" + l.predicate(&p.Items[i]) + ")"
			}
			text += " AND (" + strings.Join(predicates, " OR ") + ")"
		}
		return text + end
	}, shape, args
}

// readTail reads events that have no postings.
func (l *Log) readTail(ctx context.Context, q driver.Querier, p *Page, to *pageEvents) error {
	if to.full || len(to.list) >= p.Limit {
		return nil
	}
	if p.Recent != nil {
		found, head, ok, err := p.Recent.find(ctx, q, l, p, p.Limit-len(to.list))
		if err != nil {
			return err
		}
		if to.head = head; ok {
			return l.fetchFound(ctx, q, p, found, to)
		}
	}
	to.compare = p.Wide()
	text, shape, args := l.tail(append(make([]byte, 0, 32), 't'), nil, p, p.Limit-len(to.list))
	return to.read(ctx, q, l.texts.get(shape, text), args, nil)
}

// fetchFound reads the events at the positions that were found for each item.
func (l *Log) fetchFound(ctx context.Context, q driver.Querier, p *Page, found [][]uint64, to *pageEvents) error {
	all := slices.Concat(found...)
	slices.Sort(all)
	all = slices.Compact(all)
	if p.Backwards {
		slices.Reverse(all)
	}
	for part := range slices.Chunk(all[:min(len(all), p.Limit-len(to.list))], l.maxFetch()) {
		some := make([]candidate, len(part))
		for i := range some {
			some[i] = candidate{at: part[i], sure: true}
		}
		if err := l.fetch(ctx, q, some, to); err != nil || to.full {
			return err
		}
	}
	return nil
}

// readRows are the rows of a term that a page reads first. To DuckDB a statement is
// dear and a row cheap. Of many terms few rows each will do.
func (l *Log) readRows(terms int) int {
	switch {
	case l.dialect == driver.DuckDB:
		return maxRows
	case terms > 8*maxArms:
		return 2
	}
	return 8
}

// readPosted reads events by their postings, and those that have none. The latter and
// the head come with the last statement where one is dear.
func (l *Log) readPosted(ctx context.Context, q driver.Querier, p *Page, to *pageEvents) error {
	apart := l.dialect == driver.SQLite
	if apart && p.Backwards {
		if err := l.readTail(ctx, q, p, to); err != nil {
			return err
		}
	}
	from, last, some := p.ends()
	f := newFinder(search{log: l, q: q, backwards: p.Backwards}, p.Items, from, last)
	if !some {
		f.heap = nil
	} else if !to.full && len(to.list) < p.Limit {
		f.rows = l.readRows(len(f.lists))
		if err := f.begin(ctx); err != nil {
			return err
		}
	}
	tail := !apart // and it was not read
	for n := p.Limit - len(to.list); !to.full && len(to.list) < p.Limit; n = min(2*n, l.maxFetch()) {
		n = min(max(n, p.Limit-len(to.list)), l.maxFetch())
		some, err := f.take(ctx, n)
		if err != nil {
			return err
		}
		ended := len(some) < n
		if tail && (ended || p.Backwards) {
			err = l.fetchWithTail(ctx, q, p, some, to)
			tail = false
		} else if len(some) > 0 {
			err = l.fetch(ctx, q, some, to)
		}
		if err != nil {
			return err
		}
		if ended {
			break
		}
	}
	if apart && !p.Backwards {
		return l.readTail(ctx, q, p, to)
	}
	return nil
}

// ReadAt returns the events at some positions, which are given in order or backwards,
// as many as have a number of bytes of data, and at least one. What remains of truncated
// ones is in gone.
func (l *Log) ReadAt(ctx context.Context, q driver.Querier, positions []uint64, bytes int, gone Gone) ([]event.Sequenced, error) {
	to := pageEvents{limit: math.MaxInt, bytes: bytes, gone: gone, row: row{summed: !l.unsummed}}
	some := make([]candidate, min(len(positions), maxFetch))
	for i := range some {
		some[i] = candidate{at: positions[i], sure: true}
	}
	to.backwards = len(positions) > 1 && positions[0] > positions[1]
	err := l.fetch(ctx, q, some, &to)
	return to.list, err
}

// maxFetch bounds the positions of one statement that has each as an argument.
const maxFetch = 512

// maxFetch bounds the positions of one statement.
func (l *Log) maxFetch() int {
	if l.dialect == driver.SQLite {
		return maxFetch
	}
	return 8 * maxFetch
}

// fetch reads the events at some positions.
func (l *Log) fetch(ctx context.Context, q driver.Querier, some []candidate, to *pageEvents) error {
	size, args := l.positionArgs(some)
	text := l.texts.get([]byte{'f', flag(to.backwards), byte(size >> 8), byte(size)}, func() string {
		return "SELECT " + l.columns() + " FROM events WHERE events.position " + l.listed(size) + order("events.position", to.backwards)
	})
	return to.read(ctx, q, text, args, some)
}

// fetchWithTail reads the events at some positions, those that have no postings, and
// the head if it is asked for.
func (l *Log) fetchWithTail(ctx context.Context, q driver.Querier, p *Page, some []candidate, to *pageEvents) error {
	to.compare = p.Wide()
	head := l.headToo(p)
	var size int
	var args []any
	if len(some) > 0 {
		size, args = l.positionArgs(some)
	}
	shape := append(make([]byte, 0, 32), 'b', flag(head), flag(len(some) > 0), byte(size>>8), byte(size))
	tail, shape, args := l.tail(shape, args, p, p.Limit-len(to.list))
	text := l.texts.get(shape, func() string {
		text := tail()
		if len(some) > 0 {
			text = "SELECT " + l.columns() + " FROM events WHERE events.position " + l.listed(size) +
				" UNION ALL SELECT * FROM (" + text + ") AS tail" + order("1", p.Backwards)
		}
		return withHead(text, head)
	})
	return to.read(ctx, q, text, args, some)
}

// firstMatch returns the first of some positions whose event matches, zero when none
// does.
func (l *Log) firstMatch(ctx context.Context, q driver.Querier, m *matcher, positions []uint64, backwards bool) (first uint64, err error) {
	some := make([]candidate, len(positions))
	for i := range some {
		some[i].at = positions[i]
	}
	size, args := l.positionArgs(some)
	text := l.texts.get([]byte{'k', flag(backwards), byte(size >> 8), byte(size)}, func() string {
		return "SELECT " + l.keyColumns() + " FROM events WHERE events.position " + l.listed(size) + order("events.position", backwards)
	})
	err = eachKey(ctx, q, text, args, func(k *keyRow) (bool, error) {
		if m.matches(k.typ, k.tags) {
			first = k.at
		}
		return first == 0, nil
	})
	return first, err
}

// positionArgs are the arguments for listed. SQLite looks up a list of arguments one by
// one; the last one fills it up to a power of two, so that there are few texts. The
// others plan a long list for longer than they run it, so it is one argument to them.
func (l *Log) positionArgs(some []candidate) (size int, args []any) {
	if l.dialect != driver.SQLite {
		list := make([]byte, 0, 8*len(some))
		for i := range some {
			if i > 0 {
				list = append(list, ',')
			}
			list = strconv.AppendUint(list, some[i].at, 10)
		}
		return 0, []any{string(list)}
	}
	size = 1 << bits.Len(uint(len(some)-1))
	args = make([]any, size)
	for i := range args {
		args[i] = position(some[min(i, len(some)-1)].at)
	}
	return size, args
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

// read appends the events that a statement selects. Those of candidates must all be
// there; they and any others come in one order.
func (to *pageEvents) read(ctx context.Context, q driver.Querier, text string, args []any, some []candidate) (err error) {
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	missing := some
	for rows.Next() {
		if err := to.row.scan(rows); err != nil {
			return err
		}
		if to.row.position == headRow {
			to.head = uint64(to.row.time)
			continue
		}
		at := uint64(to.row.position)
		var c *candidate
		if len(missing) > 0 {
			switch first := missing[0].at; {
			case first == at:
				c, missing = &missing[0], missing[1:]
			case first < at != to.backwards:
				return lost(first)
			}
		}
		if !to.wants(c) {
			continue
		}
		if err := to.gone.note(&to.row); err != nil {
			return err
		}
		if err := to.row.decode(); err != nil {
			return err
		}
		to.list = append(to.list, to.row.event)
		to.bytes -= len(to.row.event.Data) + len(to.row.event.Metadata)
		if to.full = to.bytes <= 0; to.full || len(to.list) == to.limit {
			return nil
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if len(missing) > 0 {
		return lost(missing[0].at)
	}
	return nil
}

func lost(at uint64) error { return fmt.Errorf("%w: event %d is missing", driver.ErrCorrupt, at) }
