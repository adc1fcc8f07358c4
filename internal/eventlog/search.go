package eventlog

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/varvedb/varve/store/driver"
)

// search finds the positions of events that match items by their postings, in
// one direction, on one transaction or view.
type search struct {
	log       *Log
	q         driver.Querier
	backwards bool
	to        uint64  // the last position that is wanted
	firstRows int     // rows of each term in its first look-up
	shared    []*list // lists that are read ahead together; nil: each alone

	// The end of the log, once it was read.
	end      ends
	endKnown bool
	withEnd  bool // the next statement about postings reads it, too

	rows    int            // rows that were read
	limit   int            // of them; zero is no limit
	atLimit bool           // the search has ended at the limit
	pause   func(rows int) // see Bound
}

// ends returns the end of the log.
func (s *search) ends(ctx context.Context) (_ ends, err error) {
	if !s.endKnown {
		s.end, err = s.log.ends(ctx, s.q)
		s.endKnown = err == nil
	}
	return s.end, err
}

// left returns how many rows may still be read, and ends the search when none.
func (s *search) left() int {
	if s.limit == 0 {
		return math.MaxInt
	}
	s.atLimit = s.atLimit || s.rows >= s.limit
	return s.limit - s.rows
}

// count counts the rows of a statement.
func (s *search) count(rows int) {
	s.rows += rows
	if s.pause != nil {
		s.pause(rows)
	}
}

// maxArms is the most terms of a statement that has a branch for each. Queries
// and conditions share statements, because a statement costs more than a term.
const maxArms = 16

// maxTerms is the most terms of a statement that has them in one argument.
const maxTerms = 4096

// maxRows is the most rows of a term in one look-up.
const maxRows = 64

// stream has the positions of the events that may match an item: the union of
// the postings of its types, or the intersection of the postings of its tags.
//
// An intersection is found in one of two ways. Either all lists are read, and
// each skips to where the others are. Or only some are read, and the events at
// their positions are compared with the item, because a rare tag has fewer
// events than a frequent one has rows.
type stream struct {
	item  *Item
	any   bool // a union
	lists []*list

	compare  bool    // events are compared with the item
	unread   []*list // lists that are not read because of that
	planned  bool    // plan has chosen
	compared int     // events
	matched  int     // of them

	at   uint64 // no position before this one is left
	sure bool   // and there is one at it
}

// list is the postings of a term, read piece by piece.
type list struct {
	term      string
	types     []string // of the wanted events; nil is any
	at        uint64   // positions before this one are not wanted
	positions []uint64 // read and not passed, in the order of the search
	room      []uint64 // the memory of positions, for the next rows

	lastRow   uint64 // position of the last row that was read
	nextRows  int    // rows of the next look-up; zero before the first one
	end       bool   // all rows were read
	rows      int    // rows that were read
	postings  int    // the positions in them
	start     uint64 // position of the first row
	requested bool   // it is among the lists of the next statement
	idle      bool   // it is not read ahead
}

// stream returns the stream of an item with tags or types.
func (s *search) stream(it *Item) *stream {
	st := &stream{any: len(it.tags) == 0, item: it}
	terms := it.tags
	if len(it.tags) == 0 {
		terms = make([]string, len(it.types))
		for i, typ := range it.types {
			terms[i] = typeTerm(typ)
		}
	}
	lists := make([]list, len(terms))
	st.lists = make([]*list, len(terms))
	for i, term := range terms {
		lists[i].term = term
		if st.lists[i] = &lists[i]; len(it.tags) > 0 {
			lists[i].types = it.types
		}
	}
	return st
}

// before reports whether a comes before b in the direction of the search.
func (s *search) before(a, b uint64) bool { return a != b && a < b != s.backwards }

// passed reports whether a position is behind the last one that is wanted.
func (s *search) passed(at uint64) bool { return s.before(s.to, at) }

// behind returns the position after another one in the direction of the search.
func (s *search) behind(at uint64) uint64 {
	if s.backwards {
		return at - 1
	}
	return at + 1
}

// next returns the first position of a stream, not before a given one, at which
// an event matches. It finds none when the postings end or when the limit of the
// search is reached, which s.atLimit reports.
func (s *search) next(
	ctx context.Context, st *stream, at uint64,
) (found uint64, ok bool, err error) {
	for n := 1; ; n = min(4*n, maxFetch) {
		// Most streams compare no events: the candidate is the answer.
		found, ok, err = s.candidate(ctx, st, at)
		if err != nil || !ok || !st.compare {
			return found, ok, err
		}
		// Collect candidates for one statement, at first few of them, because the
		// first one may match.
		n = min(n, s.left())
		if s.atLimit {
			return 0, false, nil
		}
		some := []uint64{found}
		for len(some) < n && ok {
			at = s.behind(some[len(some)-1])
			if found, ok, err = s.candidate(ctx, st, at); err != nil || s.atLimit {
				return 0, false, err
			}
			if ok {
				some = append(some, found)
			}
		}
		// Compare the events at these positions with the item.
		s.count(len(some))
		first, err := s.log.firstMatch(ctx, s.q, st.item, some, s.backwards)
		if err != nil || first > 0 || !ok {
			return first, first > 0, err
		}
		st.record(len(some), false)
		at = s.behind(some[len(some)-1])
	}
}

// candidate returns the first position of a stream, not before a given one, of an
// event that matches by the lists that are read.
func (s *search) candidate(
	ctx context.Context, st *stream, at uint64,
) (found uint64, ok bool, err error) {
	for !s.passed(at) {
		st.move(at)
		if err := s.fill(ctx, st.lists); err != nil || s.atLimit {
			return 0, false, err
		}
		if st.any {
			for _, l := range st.lists {
				if len(l.positions) > 0 && !s.passed(l.positions[0]) && (!ok || s.before(l.positions[0], found)) {
					found, ok = l.positions[0], true
				}
			}
			return found, ok, nil
		}
		s.plan(st)
		next, outcome := s.intersect(st, at)
		switch {
		case outcome == ended:
			return 0, false, nil
		case outcome == agreed && !s.passed(next):
			return next, true, nil
		}
		at = next
	}
	return 0, false, nil
}

// outcome is how far the lists of an intersection got.
type outcome int

const (
	readOn outcome = iota // a list has passed all positions that were read
	agreed                // all lists have a position
	ended                 // a list has no more positions
)

// intersect returns the first position, not before a given one, that all lists
// have, or how far they got.
func (s *search) intersect(st *stream, at uint64) (uint64, outcome) {
	for same := false; !same; {
		same = true
		for _, l := range st.lists {
			l.at = at
			s.pass(l)
			switch {
			case len(l.positions) == 0 && l.end:
				return at, ended
			case len(l.positions) == 0:
				return at, readOn
			case l.positions[0] != at:
				at, same = l.positions[0], false
			}
		}
	}
	return at, agreed
}

// plan chooses which lists of an intersection are read, from their first rows.
// The list with the fewest events in a range of positions is read. Another one
// is read when it has fewer rows in that range than there are events to compare.
func (s *search) plan(st *stream) {
	if st.planned || len(st.lists) == 1 {
		return
	}
	st.planned = true
	farthest := st.lists[0].lastRow
	for _, l := range st.lists {
		if l.rows == 0 {
			return // no event has this term
		}
		if s.before(farthest, l.lastRow) {
			farthest = l.lastRow
		}
	}
	// density is how many of a list's rows or events there are for each position
	// of the log. The rows of a list that has ended are all that there are.
	density := func(n int, l *list) float64 {
		to := l.lastRow
		if l.end {
			to = farthest
		}
		return float64(n) / (math.Abs(float64(to)-float64(l.start)) + 1)
	}
	rarest := slices.MinFunc(st.lists, func(a, b *list) int {
		return cmp.Compare(density(a.postings, a), density(b.postings, b))
	})
	events := density(rarest.postings, rarest)
	read := st.lists[:0]
	for _, l := range st.lists {
		if l == rarest || l.end || density(l.rows, l) < events {
			read = append(read, l)
		} else {
			st.unread = append(st.unread, l)
			l.idle = true
		}
	}
	st.lists, st.compare = read, len(st.unread) > 0
}

// minCompared is how many events are compared before a plan is reconsidered.
const minCompared = 256

// record counts events that were compared with the item. When fewer than an
// eighth of them match, all lists are read from then on, because a tag that
// became frequent later would have every event of another tag read.
func (st *stream) record(events int, matched bool) {
	st.compared += events
	if matched {
		st.matched += events
	}
	if len(st.unread) == 0 || st.compared < minCompared || st.matched >= st.compared/8 {
		return
	}
	for _, l := range st.unread {
		l.idle = false
	}
	st.lists, st.unread, st.compare = append(st.lists, st.unread...), nil, false
}

// move passes the positions before a given one in all lists.
func (st *stream) move(at uint64) {
	for _, l := range st.lists {
		l.at = at
	}
}

// fill reads further postings of each list until the list has a position in the
// wanted range or is exhausted.
func (s *search) fill(ctx context.Context, lists []*list) error {
	for !s.atLimit {
		var empty []*list
		for _, l := range lists {
			s.pass(l)
			if len(l.positions) == 0 && !l.end {
				empty = append(empty, l)
				l.requested = true
			}
		}
		if len(empty) == 0 {
			return nil
		}
		if err := s.readLists(ctx, s.readAhead(empty)); err != nil {
			return err
		}
	}
	return nil
}

// pass drops the positions that are not wanted any more.
func (s *search) pass(l *list) {
	n := 0
	for n < len(l.positions) && s.before(l.positions[n], l.at) {
		n++
	}
	l.positions = l.positions[n:]
}

// readAhead adds to lists that must be read others that will soon be empty, up
// to the terms of one statement, because a query of a thousand tags would
// otherwise run a statement for each list that becomes empty.
func (s *search) readAhead(lists []*list) []*list {
	most := s.log.termsAtOnce(lists)
	for i := 0; i < len(s.shared) && len(lists) < most; i++ {
		if l := s.shared[i]; !l.end && !l.requested && !l.idle && len(l.positions) <= 1 {
			lists = append(lists, l)
		}
	}
	return lists
}

// readLists reads on in lists. A list that knows the row to begin with needs a
// simpler statement than one that must look for it.
func (s *search) readLists(ctx context.Context, lists []*list) error {
	var known, sought []*list
	for _, l := range lists {
		if s.backwards || l.at <= 1 || l.lastRow > 0 && !s.before(l.lastRow, l.at) {
			known = append(known, l)
		} else {
			sought = append(sought, l)
		}
	}
	if s.log.listsTerms() && len(sought) > 0 {
		sought, known = append(known, sought...), nil // one statement looks for all
	}
	for i, part := range [][]*list{known, sought} {
		for some := range slices.Chunk(part, s.log.termsAtOnce(part)) {
			if s.left(); s.atLimit {
				return nil
			}
			if err := s.read(ctx, some, i == 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads the next rows of lists, beginning with the row that may hold what
// is wanted. With seek the statement looks for this row, the last one that begins
// at or before the wanted position.
func (s *search) read(ctx context.Context, lists []*list, seek bool) (err error) {
	text, args := s.statement(lists, seek)
	rows, err := s.q.Query(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	left, read := s.left(), 0
	counts := make([]int, len(lists))
	for read < left && rows.Next() {
		var n, first int64
		var data []byte
		if err := rows.Scan(&n, &first, &data); err != nil {
			return err
		}
		read++
		if n < 0 { // the row of endRow
			indexed := uint64(-1 - n) // no batch is left half written; see due
			s.end, s.endKnown = ends{head: uint64(first), indexed: indexed, batch: indexed}, true
			continue
		}
		counts[n]++
		if err := s.add(lists[n], uint64(first), data); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	s.count(read)
	if read == left { // rows may be missing, so the ends of the lists are unknown
		s.atLimit = true
		return nil
	}
	for n, l := range lists {
		l.end, l.requested = counts[n] <= l.nextRows, false
	}
	return nil
}

// resume returns where to read on: at the wanted position, or at the row that was
// read last if that is farther. That row comes again, and the next ones.
func (s *search) resume(l *list) uint64 {
	if l.lastRow > 0 && s.before(l.at, l.lastRow) {
		return l.lastRow
	}
	return l.at
}

// add appends a row to a list, unless it was read before.
func (s *search) add(l *list, first uint64, data []byte) (err error) {
	if l.lastRow > 0 && !s.before(l.lastRow, first) {
		return nil
	}
	if l.lastRow = first; l.rows == 0 {
		l.start = first
	}
	from := len(l.positions)
	if from == 0 {
		l.positions = l.room[:0]
	}
	l.positions, err = readPostings(l.positions, first, data, l.types)
	if cap(l.positions) > cap(l.room) {
		l.room = l.positions
	}
	l.rows++
	l.postings += len(l.positions) - from
	if s.backwards {
		slices.Reverse(l.positions[from:])
	}
	return err
}
