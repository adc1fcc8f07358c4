package eventlog

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/varvedb/varve/store/driver"
)

// search finds the positions of events that match items by their postings, in one
// direction, on one transaction or view.
type search struct {
	log       *Log
	q         driver.Querier
	backwards bool
	rows      int // of each term in the first look-up
}

// maxArms bounds the terms of one statement. What several queries or conditions
// look up shares statements: each costs more than a term.
const maxArms = 16

// maxRows bounds the rows of a term in one look-up.
const maxRows = 64

// stream is the positions that match an item: those that all of its lists have, or
// any of them.
type stream struct {
	lists []*list
	any   bool
}

// list is the postings of a term, read piece by piece.
type list struct {
	term      string
	types     []string // wanted; nil means any
	at        uint64   // what lies before is passed
	positions []uint64 // read and not passed, in the order of the search
	edge      uint64   // position of the last row that was read
	rows      int      // rows to read next; zero before the first time
	end       bool     // there are no more
}

// stream returns that of an item with tags or types.
func (s *search) stream(it *Item) *stream {
	if len(it.tags) == 0 {
		lists := make([]*list, len(it.types))
		for i, typ := range it.types {
			lists[i] = &list{term: typeTerm(typ)}
		}
		return &stream{lists: lists, any: true}
	}
	lists := make([]*list, len(it.tags))
	for i, tag := range it.tags {
		lists[i] = &list{term: tag, types: it.types}
	}
	return &stream{lists: lists}
}

// before tells whether a position comes before another one in this direction.
func (s *search) before(a, b uint64) bool { return a != b && a < b != s.backwards }

// next returns the first position of a stream at or behind a position.
func (s *search) next(ctx context.Context, st *stream, at uint64) (found uint64, ok bool, err error) {
	for {
		st.move(at)
		if err := s.fill(ctx, st.lists); err != nil {
			return 0, false, err
		}
		far, ends := at, 0
		for _, l := range st.lists {
			switch {
			case len(l.positions) == 0:
				ends++
			case !st.any:
				if s.before(far, l.positions[0]) {
					far = l.positions[0]
				}
			case !ok || s.before(l.positions[0], found):
				found, ok = l.positions[0], true
			}
		}
		if st.any {
			return found, ok, nil
		}
		if ends > 0 {
			return 0, false, nil
		}
		if far == at && st.all(at) {
			return at, true, nil
		}
		at = far
	}
}

// move says from which position on the lists are wanted.
func (st *stream) move(at uint64) {
	for _, l := range st.lists {
		l.at = at
	}
}

// all tells whether each list is at a position.
func (st *stream) all(at uint64) bool {
	for _, l := range st.lists {
		if l.positions[0] != at {
			return false
		}
	}
	return true
}

// fill passes what is not wanted, and reads on in the lists that have nothing left.
func (s *search) fill(ctx context.Context, lists []*list) error {
	for {
		var empty []*list
		for _, l := range lists {
			for len(l.positions) > 0 && s.before(l.positions[0], l.at) {
				l.positions = l.positions[1:]
			}
			if len(l.positions) == 0 && !l.end {
				empty = append(empty, l)
			}
		}
		if len(empty) == 0 {
			return nil
		}
		if err := s.readParts(ctx, empty); err != nil {
			return err
		}
	}
}

// readParts reads on in lists: those that know a row to begin with apart from
// those that must look for it.
func (s *search) readParts(ctx context.Context, lists []*list) error {
	var known, sought []*list
	for _, l := range lists {
		if s.backwards || l.at <= 1 || l.edge > 0 && !s.before(l.edge, l.at) {
			known = append(known, l)
		} else {
			sought = append(sought, l)
		}
	}
	for part := range slices.Chunk(known, maxArms) {
		if err := s.read(ctx, part, false); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(sought, maxArms) {
		if err := s.read(ctx, part, true); err != nil {
			return err
		}
	}
	return nil
}

// read reads the next rows of some lists, from the row on that may hold what is
// wanted. Seek says that this row must be looked for: the last one that does not
// begin behind it.
func (s *search) read(ctx context.Context, lists []*list, seek bool) (err error) {
	text := s.log.texts.get([]byte{'l', flag(s.backwards), flag(seek), byte(len(lists))}, func() string { return s.text(len(lists), seek) })
	args := make([]any, 0, 4*len(lists))
	for _, l := range lists {
		if l.rows = min(4*l.rows, maxRows); l.rows == 0 {
			l.rows = s.rows
		}
		args = append(args, l.term)
		if seek {
			args = append(args, l.term)
		}
		args = append(args, position(s.resume(l)), int64(l.rows+1))
	}
	rows, err := s.q.Query(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	counts := make([]int, len(lists))
	for rows.Next() {
		var n, first int64
		var data []byte
		if err := rows.Scan(&n, &first, &data); err != nil {
			return err
		}
		counts[n]++
		if err := s.add(lists[n], uint64(first), data); err != nil {
			return err
		}
	}
	for n, l := range lists {
		l.end = counts[n] <= l.rows
	}
	return rows.Err()
}

// resume returns where to read on: where the list is wanted, or at the row that was
// read last if that lies behind it. That row comes again, and the next ones.
func (s *search) resume(l *list) uint64 {
	if l.edge > 0 && s.before(l.at, l.edge) {
		return l.edge
	}
	return l.at
}

// add appends a row to a list, unless it was read before.
func (s *search) add(l *list, first uint64, data []byte) (err error) {
	if l.edge > 0 && !s.before(l.edge, first) {
		return nil
	}
	l.edge = first
	from := len(l.positions)
	l.positions, err = readPostings(l.positions, first, data, l.types)
	if s.backwards {
		slices.Reverse(l.positions[from:])
	}
	return err
}

// text reads rows of n terms. Each term gives its number, so that it does not
// matter in which order the engine answers for them; the rows of one are in order.
func (s *search) text(n int, seek bool) string {
	from := "position >= ?"
	switch {
	case s.backwards:
		from = "position <= ?"
	case seek:
		from = "position >= coalesce((SELECT max(position) FROM event_postings WHERE term = ? AND position <= ?), 0)"
	}
	return arms(" AS n, position, list FROM event_postings WHERE term = ? AND "+from+order("position", s.backwards)+s.log.limit(), n)
}

func arms(arm string, n int) string {
	if n == 1 {
		return "SELECT 0" + arm
	}
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(" UNION ALL ")
		}
		b.WriteString("SELECT * FROM (SELECT ")
		b.WriteString(digits[i])
		b.WriteString(arm)
		b.WriteString(") AS a")
		b.WriteString(digits[i])
	}
	return b.String()
}

var digits = [maxArms]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"}

// head is a stream and the position that it is at.
type head struct {
	*stream
	at   uint64 // zero before the first one
	done bool
}

// positions returns up to a number of positions that match any item, from one
// position to another, both included.
func (s *search) positions(ctx context.Context, items []Item, from, to uint64, limit int) (found []uint64, err error) {
	heads := make([]head, len(items))
	var all []*list
	for i := range items {
		heads[i].stream = s.stream(&items[i])
		heads[i].move(from)
		all = append(all, heads[i].lists...)
	}
	if err := s.fill(ctx, all); err != nil {
		return nil, err
	}
	for at := from; len(found) < limit; {
		next, ok, err := s.nearest(ctx, heads, at)
		if err != nil || !ok || s.before(to, next) {
			return found, err
		}
		found = append(found, next)
		if at = next + 1; s.backwards {
			at = next - 1
		}
	}
	return found, nil
}

// nearest returns the first position of any stream at or behind a position.
func (s *search) nearest(ctx context.Context, heads []head, at uint64) (next uint64, ok bool, err error) {
	for i := range heads {
		h := &heads[i]
		if !h.done && (h.at == 0 || s.before(h.at, at)) {
			var more bool
			if h.at, more, err = s.next(ctx, h.stream, at); err != nil {
				return 0, false, err
			}
			h.done = !more
		}
		if !h.done && (!ok || s.before(h.at, next)) {
			next, ok = h.at, true
		}
	}
	return next, ok, nil
}
