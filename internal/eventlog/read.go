package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/varvedb/varve/internal/statement"
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
	Visible bool // the reader wants events that are not durable, too; used by the store

	// Tail, unless it is nil, remembers the events without postings. The page
	// must be of a view, because uncommitted events must not be remembered.
	Tail *Tail

	// Head, unless it is nil, receives the last position that was searched when
	// the page, which is not backwards, is the end.
	Head *uint64

	// Last, unless it is nil, asks for the last event of each item alone. It is kept
	// from page to page, with Items and bounds as they were.
	Last *Last

	// Final: nothing else is asked of the view.
	Final bool
}

// PageSizes returns the number of events of the first page of a read and of the
// largest one. The first page is small, because many queries have few results.
// Where a statement costs more, both are larger.
func (l *Log) PageSizes() (first, last int) {
	if l.traits.Compiled {
		return 64, 2048
	}
	return 256, 4096
}

// tail returns the page's tail, or one that knows nothing.
func (p *Page) tail(l *Log) *Tail { return cmp.Or(p.Tail, l.NewTail(TailOptions{})) }

// span is the page's range of positions.
func (p *Page) span() span { return span{backwards: p.Backwards, bounded: p.Before > 0} }

// bounds are the arguments of span.bounds.
func (p *Page) bounds() []any {
	if p.Before > 0 {
		return []any{position(p.After), position(p.Before)}
	}
	return []any{position(p.After)}
}

// ends returns the positions at which a search begins and ends; ok reports
// whether there are any between.
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

// Wide reports whether the items have many types and tags, which each page looks up.
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
	final     bool // the next statement is the last one of the view
	row       row
	end       ends // of the log, if they were read
}

// wants reports whether the scanned event matches one of the query items for
// which its position was found.
func (to *pageEvents) wants(c *candidate) (ok bool) {
	for _, st := range c.streams {
		matches := st.item.matchesRow(to.row.typ, to.row.tags)
		st.record(1, matches)
		ok = ok || matches
	}
	return ok || c.sure
}

// Read returns a page, and whether it ended because nothing more matches.
func (l *Log) Read(ctx context.Context, q driver.Querier, p Page) (list []event.Sequenced, end bool, err error) {
	to := pageEvents{limit: p.Limit, bytes: p.Bytes, backwards: p.Backwards, gone: p.Gone}
	switch {
	case p.Last != nil:
		err = l.readLast(ctx, q, &p, &to)
	case p.Items[0].all():
		err = l.readAll(ctx, q, &p, &to)
	default:
		err = l.readPosted(ctx, q, &p, &to)
	}
	end = !to.full && len(to.list) < p.Limit
	if p.Last != nil {
		end = len(p.Last.positions) == 0
	}
	if err == nil && end && p.Head != nil {
		err = l.tellHead(ctx, q, &p, &to)
	}
	return to.list, end, err
}

// tellHead sets the page's Head to that of the log, or to the end of the page's positions.
func (l *Log) tellHead(ctx context.Context, q driver.Querier, p *Page, to *pageEvents) (err error) {
	head := to.end.head
	switch all := p.Last == nil && p.Items[0].all(); {
	case p.Last != nil:
		head = p.Last.head
	case all && p.Before == 0 && len(to.list) > 0:
		head = to.list[len(to.list)-1].Position
	case head == 0:
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
	s := p.span()
	limit, shape, n := l.limit(p.Limit)
	to.final = p.Final && p.Head == nil
	text := l.texts.Get([]byte{'a', flag(s.backwards), flag(s.bounded), shape}, func() string {
		return "SELECT " + l.columns() + " FROM events WHERE " + s.bounds() + order("events.position", s.backwards) + limit
	})
	return to.readRows(ctx, q, text, append(p.bounds(), n...), nil)
}

// firstRows returns how many rows of a term a page reads first. Without an ordered
// index the statement reads all rows of a term in any case. Of many terms a few
// rows each are sufficient. Where a statement is dear, the rows of a single tag are
// read to their end unless few events are wanted, because a second statement costs
// more than the rows.
func (l *Log) firstRows(p *Page, lists []*list) int {
	switch {
	case !l.traits.OrderedIndexes:
		return maxRows
	case len(lists) > 8*maxArms:
		return 2
	case !l.traits.Compiled && !slices.ContainsFunc(p.Items, func(it Item) bool { return len(it.tags) != 1 }):
		return min(4*p.Limit, 16)
	}
	return 8
}

// readPosted reads events by their postings, and events that have none yet.
func (l *Log) readPosted(ctx context.Context, q driver.Querier, p *Page, to *pageEvents) error {
	from, last, ok := p.ends()
	if !ok {
		return nil
	}
	s := search{log: l, q: q, backwards: p.Backwards, to: last}

	// Leave out the postings of a batch that is half written, because its events
	// are found in memory. Where a statement is dear, there is no such batch.
	if l.traits.Compiled {
		end, err := s.ends(ctx)
		switch {
		case err != nil:
			return err
		case p.Backwards:
			from = min(from, end.indexed)
		default:
			s.to = min(s.to, end.indexed)
		}
	}
	f := newFinder(s, p, from)
	f.firstRows = l.firstRows(p, f.shared)
	for n := 0; !to.full && len(to.list) < p.Limit; {
		n = min(max(2*n, p.Limit-len(to.list)), l.maxFetch())
		some, err := f.take(ctx, n)
		if err != nil {
			return err
		}
		unsure := func(c candidate) bool { return !c.sure }
		enough := len(to.list)+n == p.Limit && !slices.ContainsFunc(some, unsure)
		to.final = p.Final && f.endKnown && (enough || len(some) < n)
		if len(some) > 0 {
			if err := l.fetch(ctx, q, some, to); err != nil {
				return err
			}
		}
		if len(some) < n {
			break
		}
	}
	to.end = f.end
	return nil
}

// ReadAt returns the events at some positions, which are given in order, as many
// as have a number of bytes of data, and at least one. What remains of truncated
// ones is in gone.
func (l *Log) ReadAt(ctx context.Context, q driver.Querier, positions []uint64, bytes int, gone Gone) ([]event.Sequenced, error) {
	to := pageEvents{limit: math.MaxInt, bytes: bytes, gone: gone}
	some := make([]candidate, min(len(positions), maxFetch))
	for i := range some {
		some[i] = candidate{at: positions[i], sure: true}
	}
	err := l.fetch(ctx, q, some, &to)
	return to.list, err
}

// maxFetch bounds the positions of one statement that has each as an argument.
const maxFetch = 512

// maxFetch bounds the positions of one statement.
func (l *Log) maxFetch() int {
	if l.traits.Compiled {
		return maxFetch
	}
	return 8 * maxFetch
}

// fetch reads the events at some positions.
func (l *Log) fetch(ctx context.Context, q driver.Querier, some []candidate, to *pageEvents) error {
	size, args := l.positionArgs(some)
	text := l.texts.Get([]byte{'f', flag(to.backwards), byte(size >> 8), byte(size)}, func() string {
		return "SELECT " + l.columns() + " FROM events WHERE events.position " + l.listed(size) + order("events.position", to.backwards)
	})
	return to.readRows(ctx, q, text, args, some)
}

// firstMatch returns the first of some positions whose event matches, zero when none does.
func (l *Log) firstMatch(ctx context.Context, q driver.Querier, it *Item, positions []uint64, backwards bool) (first uint64, err error) {
	some := make([]candidate, len(positions))
	for i := range some {
		some[i].at = positions[i]
	}
	size, args := l.positionArgs(some)
	text := l.texts.Get([]byte{'k', flag(backwards), byte(size >> 8), byte(size)}, func() string {
		return "SELECT " + l.keyColumns() + " FROM events WHERE events.position " + l.listed(size) + order("events.position", backwards)
	})
	err = eachKey(ctx, q, text, args, func(k *keyRow) error {
		if it.matchesRow(k.typ, k.tags) {
			first = k.at
			return statement.ErrEnough
		}
		return nil
	})
	return first, err
}

// positionArgs returns the arguments for listed. A compiled statement has one for
// each position; the last position is repeated up to a power of two, so that there
// are few texts. Others would plan a long list for longer than they run it, so
// they get it as one argument.
func (l *Log) positionArgs(some []candidate) (size int, args []any) {
	if !l.traits.Compiled {
		list := make([]byte, 0, 8*len(some)+2)
		for i := range some {
			list = strconv.AppendUint(append(list, "{,"[min(i, 1)]), some[i].at, 10)
		}
		return 0, []any{string(append(list, '}'))}
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
	if n == 0 {
		return l.schema.Statements["listed_positions"]
	}
	return "IN (?" + strings.Repeat(", ?", n-1) + ")"
}

// readRows appends the events that a statement selects. With candidates, all of
// their events must be there.
func (to *pageEvents) readRows(ctx context.Context, q driver.Querier, text string, args []any, some []candidate) (err error) {
	rows, err := driver.Statement{Text: text, Final: to.final}.Query(ctx, q, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	missing := some
	for rows.Next() {
		if err := to.row.scan(rows); err != nil {
			return err
		}
		if len(some) > 0 {
			if len(missing) == 0 || missing[0].at != uint64(to.row.position) {
				break
			}
			c := &missing[0]
			if missing = missing[1:]; !to.wants(c) {
				continue
			}
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
		return fmt.Errorf("%w: event %d is missing", driver.ErrCorrupt, missing[0].at)
	}
	return nil
}
