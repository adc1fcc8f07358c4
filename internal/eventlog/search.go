package eventlog

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/varvedb/varve/store/driver"
)

// search finds the positions of events that match items by their postings, in one
// direction, on one transaction or view.
type search struct {
	log       *Log
	q         driver.Querier
	backwards bool
	rows      int     // of each term in the first look-up
	lists     []*list // that may be read on together; none when each is read as it ends

	end  ends // how far the log goes
	told bool // and that is known
	tell bool // the next statement tells it
}

// ends returns how far the log goes.
func (s *search) ends(ctx context.Context) (_ ends, err error) {
	if !s.told {
		s.end, err = s.log.ends(ctx, s.q)
		s.told = err == nil
	}
	return s.end, err
}

// maxArms bounds the terms of one statement that has a branch for each. What several
// queries or conditions look up shares statements: each costs more than a term.
const maxArms = 16

// maxTerms bounds the terms of one statement that has them in an argument.
const maxTerms = 4096

// maxRows bounds the rows of a term in one look-up.
const maxRows = 64

// stream is the positions of events that may match an item: those that all of its
// lists have, or any of them.
type stream struct {
	lists []*list
	any   bool

	// The rarest list leads. Others are put aside when there are fewer events to look
	// at than rows of theirs to read; then each event is to be compared with the item.
	item    *Item
	aside   []*list
	check   bool
	chosen  bool
	looked  int // events that were compared
	matched int // of them

	at     uint64 // no position before this one is left
	sure   bool   // and it is one
	passed uint64 // no event before this position matches
}

// list is the postings of a term, read piece by piece.
type list struct {
	term      string
	types     []string // wanted; nil means any
	at        uint64   // what lies before is passed
	positions []uint64 // read and not passed, in the order of the search
	room      []uint64 // their memory, for the next ones
	edge      uint64   // position of the last row that was read
	rows      int      // rows to read next; zero before the first time
	end       bool     // there are no more
	got, held int      // rows that were read, and the positions in them
	start     uint64   // position of the first of them
	pending   bool     // it is about to be read
	idle      bool     // it is not followed
}

// stream returns that of an item with tags or types.
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

// before tells whether a position comes before another one in this direction.
func (s *search) before(a, b uint64) bool { return a != b && a < b != s.backwards }

// behind returns the position behind another one.
func (s *search) behind(at uint64) uint64 {
	if s.backwards {
		return at - 1
	}
	return at + 1
}

// next returns the first position of a stream at or behind a position, of an event that
// matches.
func (s *search) next(ctx context.Context, st *stream, at uint64) (found uint64, ok bool, err error) {
	for n := 1; ; n = min(4*n, maxFetch) {
		st.passed = at
		found, ok, err = s.candidate(ctx, st, at)
		if err != nil || !ok || !st.check {
			return found, ok, err
		}
		some := []uint64{found}
		for len(some) < n && ok {
			at = s.behind(some[len(some)-1])
			if found, ok, err = s.candidate(ctx, st, at); err != nil {
				return 0, false, err
			}
			if ok {
				some = append(some, found)
			}
		}
		first, err := s.log.firstMatch(ctx, s.q, st.item, some, s.backwards)
		if err != nil || first > 0 {
			return first, first > 0, err
		}
		if !ok {
			return 0, false, nil
		}
		st.judge(len(some), false)
		at = s.behind(some[len(some)-1])
	}
}

// candidate returns the first position of a stream at or behind a position, of an event
// that matches as far as the lists tell.
func (s *search) candidate(ctx context.Context, st *stream, at uint64) (found uint64, ok bool, err error) {
	for {
		if st.move(at); !st.check {
			st.passed = at
		}
		if err := s.fill(ctx, st.lists); err != nil {
			return 0, false, err
		}
		s.choose(st)
		if st.any {
			for _, l := range st.lists {
				if len(l.positions) > 0 && (!ok || s.before(l.positions[0], found)) {
					found, ok = l.positions[0], true
				}
			}
			return found, ok, nil
		}
		to, agreed, ended := s.leap(st, at)
		switch {
		case agreed:
			return to, true, nil
		case ended:
			return 0, false, nil
		}
		at = to
	}
}

// leap returns the first position at or behind one that all lists have, or how far they
// get before one of them has no more, or must be read on.
func (s *search) leap(st *stream, at uint64) (to uint64, agreed, ended bool) {
	for !agreed {
		agreed = true
		for _, l := range st.lists {
			l.at = at
			s.pass(l)
			if len(l.positions) == 0 {
				return at, false, l.end
			}
			if first := l.positions[0]; first != at {
				at, agreed = first, false
			}
		}
	}
	return at, true, false
}

// choose puts lists aside once something of each is known. How close together the
// positions of a list lie, and its rows, tells what it costs to go through it: an event
// to look at for each position, or a row to read.
func (s *search) choose(st *stream) {
	if st.chosen || st.any || len(st.lists) == 1 {
		return
	}
	st.chosen = true
	far := st.lists[0].edge
	for _, l := range st.lists {
		if l.got == 0 {
			return // nothing matches
		}
		if s.before(far, l.edge) {
			far = l.edge
		}
	}
	span := func(l *list) float64 { // in which what was read of it lies
		to := far
		if !l.end {
			to = l.edge
		}
		return math.Abs(float64(to)-float64(l.start)) + 1
	}
	leads := slices.MinFunc(st.lists, func(a, b *list) int {
		return cmp.Compare(float64(a.held)/span(a), float64(b.held)/span(b))
	})
	events := float64(leads.held) / span(leads)
	kept := st.lists[:0]
	for _, l := range st.lists {
		if l == leads || l.end || float64(l.got)/span(l) < events {
			kept = append(kept, l)
		} else {
			st.aside = append(st.aside, l)
			l.idle = true
		}
	}
	if st.lists = kept; len(st.aside) > 0 {
		st.check = true
	}
}

// enough is how many events are looked at before a stream is judged by them.
const enough = 256

// judge counts an event that was looked at. When few of them match, all lists are
// followed after all.
func (st *stream) judge(n int, matched bool) {
	st.looked += n
	if matched {
		st.matched += n
	}
	if len(st.aside) == 0 || st.looked < enough || st.matched >= st.looked/8 {
		return
	}
	for _, l := range st.aside {
		l.idle = false
	}
	st.lists, st.aside, st.check = append(st.lists, st.aside...), nil, false
}

// move says from which position on the lists are wanted.
func (st *stream) move(at uint64) {
	for _, l := range st.lists {
		l.at = at
	}
}

// fill passes what is not wanted, and reads on in the lists that have nothing left.
func (s *search) fill(ctx context.Context, lists []*list) error {
	for {
		var empty []*list
		for _, l := range lists {
			s.pass(l)
			if len(l.positions) == 0 && !l.end {
				empty = append(empty, l)
				l.pending = true
			}
		}
		if len(empty) == 0 {
			return nil
		}
		if err := s.readParts(ctx, s.withOthers(empty)); err != nil {
			return err
		}
	}
}

func (s *search) pass(l *list) {
	n := 0
	for n < len(l.positions) && s.before(l.positions[n], l.at) {
		n++
	}
	l.positions = l.positions[n:]
}

// withOthers adds to lists that must be read on the others that soon must, up to a
// statement's worth: of a thousand lists the next one is not read alone.
func (s *search) withOthers(lists []*list) []*list {
	most := s.log.termsAtOnce(lists)
	for i := 0; i < len(s.lists) && len(lists) < most; i++ {
		if l := s.lists[i]; !l.end && !l.pending && !l.idle && len(l.positions) <= 1 {
			lists = append(lists, l)
		}
	}
	return lists
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
	if s.log.listsTerms() && len(sought) > 0 {
		sought, known = append(known, sought...), nil // one statement looks for all
	}
	for _, seek := range []bool{false, true} {
		part := known
		if seek {
			part = sought
		}
		for part := range slices.Chunk(part, s.log.termsAtOnce(part)) {
			if err := s.read(ctx, part, seek); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads the next rows of some lists, from the row on that may hold what is
// wanted. Seek says that this row must be looked for: the last one that does not
// begin behind it.
func (s *search) read(ctx context.Context, lists []*list, seek bool) (err error) {
	text, args := s.statement(lists, seek)
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
		if n < 0 { // see tellEnds
			s.end.head, s.end.indexed, s.told = uint64(first), uint64(-1-n), true
			continue
		}
		counts[n]++
		if err := s.add(lists[n], uint64(first), data); err != nil {
			return err
		}
	}
	for n, l := range lists {
		l.end, l.pending = counts[n] <= l.rows, false
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
	if l.edge = first; l.got == 0 {
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
	l.got++
	l.held += len(l.positions) - from
	if s.backwards {
		slices.Reverse(l.positions[from:])
	}
	return err
}
