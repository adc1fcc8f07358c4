package compact

import (
	"context"
	"iter"
	"math"
	"slices"
	"sync"

	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/store/driver"
)

// match is a version that matches a query.
type match struct {
	v   *version
	rec record
}

// scan yields the versions that match a plan, highest id first. Left is how many
// matches the caller still needs, or 0 for all; the caller lowers it meanwhile.
func (v *view) scan(ctx context.Context, p *plan, left *int) iter.Seq2[match, error] {
	return func(yield func(match, error) bool) {
		// test yields a version if it matches, and reports whether to go on.
		test := func(r *version) bool {
			var rec record
			err := ctx.Err() // versions in the log are read without the engine, which would return it
			if err == nil {
				rec, err = parse(r.data)
			}
			switch {
			case err != nil:
				yield(match{}, err)
				return false
			case !p.match(r, &rec):
				return true
			}
			return yield(match{r, rec}, nil)
		}
		log := v.unmerged(p.expr, *left > 0)
		testLogAbove := func(id int64) bool {
			for ; len(log) > 0 && log[0].id > id; log = log[1:] {
				if log[0].id < p.below && log[0].visible(v.at) && !test(log[0]) {
					return false
				}
			}
			return true
		}
		for r, err := range v.walk(ctx, p.filter, p.window, left) {
			if err != nil {
				yield(match{}, err)
				return
			}
			if !testLogAbove(r.id) || !test(r) {
				return
			}
		}
		testLogAbove(math.MinInt64)
	}
}

// walk yields the visible versions in the tables that may match a filter and lie
// in a window, highest id first. Left is as scan has it.
func (v *view) walk(ctx context.Context, f filter, w window, left *int) iter.Seq2[*version, error] {
	return func(yield func(*version, error) bool) {
		w.high, w.whole = min(w.high, v.p.nextID), w.whole && *left > 0
		bottom, wanted, spent := w.low, *left, 0 // spent: versions read so far
		for size := v.l.opts.Window; w.high > bottom; size = min(size, noLimit) * growth {
			// Find the candidates in the next window, which is growth times as large
			// as the one before. When nothing more can be looked up, it is the last.
			if w.low = max(w.high-size, bottom); f.cost() <= costKnown {
				w.low = bottom
			}
			c, err := f.within(ctx, w)
			if err != nil {
				yield(nil, err)
				return
			}

			// Read them, a few at first for a caller who needs few. Stop when so many
			// were read that another look-up costs no more than the rest, if as many
			// of the rest match as did.
			read := lookupCost
			if *left > 0 {
				read = min(max(*left, lookupCost/8), maxPerStatement)
			}
			rest, most := 0, spent+int(size/(defaultWindow/minCandidates))
			for s := v.newReader(c, w); !s.ended && (spent < most || rest <= spent); {
				// Payloads come along when each is wanted, or as many are read as are wanted.
				list, cost, err := s.next(ctx, read, w.whole && (c.exact || read <= *left))
				if err != nil {
					yield(nil, err)
					return
				}
				for _, r := range list {
					if !yield(r, nil) {
						return
					}
				}
				if w.high = s.w.high; s.ended {
					w.high = w.low
				}
				if cost == 0 {
					continue // the overlay answers for all of them
				}
				spent += cost
				rest = math.MaxInt
				if *left > 0 && *left < wanted {
					rest = *left*spent/(wanted-*left) + 1
				}
				read = min(2*read, max(rest, lookupCost/8), maxPerStatement)
			}

			// Look up whole what takes no longer than all reads so far.
			if w.high > bottom && rest > spent {
				if err := f.find(ctx, int64(spent/pageCost)); err != nil {
					yield(nil, err)
					return
				}
			}
		}
	}
}

// reader reads the visible versions in the tables that may match, in a window of
// ids, highest first. It leaves out entities that the overlay answers for.
type reader struct {
	v     *view
	c     candidates
	w     window              // not read yet
	ids   func(n int) []int64 // the next candidates, unless they are negated
	ended bool
}

func (v *view) newReader(c candidates, w window) *reader {
	s := &reader{v: v, c: c, w: w}
	if !c.negated {
		s.ids = c.ids.Walk(w.low, w.high).Next
	}
	return s
}

// next reads up to n versions, or fewer when few are left to find, whole ones with
// their payloads where versionsOf can. Cost is how many were read or looked for.
func (s *reader) next(ctx context.Context, n int, whole bool) (list []*version, cost int, err error) {
	if s.ids == nil {
		return s.scan(ctx, n)
	}
	ids := s.ids(n)
	s.ended = len(ids) < n
	args := make([]any, 0, len(ids))
	for _, id := range ids {
		s.w.high = id
		if !s.v.overlay().touches(id) {
			args = append(args, id)
		}
	}
	list, err = s.v.versionsOf(ctx, args, whole)
	return list, len(args), err
}

// scan reads the next versions of all ids but the negated candidates.
func (s *reader) scan(ctx context.Context, n int) (list []*version, cost int, err error) {
	w, v := s.w, s.v
	statement, args := "scan_current", []any{w.high, w.low, w.from, w.to}
	if v.past {
		args = []any{w.high, w.low, w.from, min(w.to, v.at), v.at}
		statement, args = "scan_past", slices.Concat(args, args)
	}
	var ids []any
	for id := w.high - 1; v.l.rowTime.slow() && id >= max(w.low, w.high-int64(n)); id-- {
		ids = append(ids, id)
	}
	start := v.readAhead(ctx, currentTable, ids)
	err = v.l.versions(ctx, v.q, statement, append(args, int64(n)), func(r *version) error {
		cost++
		s.w.high = r.id
		if r.visible(v.at) && !v.overlay().touches(r.id) && !s.c.ids.Has(r.id) {
			list = append(list, r)
		}
		return nil
	})
	v.l.rowTime.record(start, cost)
	s.ended = cost < n || s.w.high <= w.low
	return list, cost, err
}

// versionsOf returns the visible versions of ids, highest first, each once. In the
// past an id may come once for each value that it had. It changes the list of ids.
// Whole versions that are few come with their payloads, unless these are long.
func (v *view) versionsOf(ctx context.Context, ids []any, whole bool) (list []*version, err error) {
	found := map[int64]bool{}
	add := func(r *version) error {
		if r.visible(v.at) && !found[r.id] {
			found[r.id] = true
			list = append(list, r)
		}
		return nil
	}
	start := v.readAhead(ctx, currentTable, ids)
	if whole && len(ids) <= 2*lookupCost {
		err = v.l.sql.EachIn(ctx, v.q, "current_whole", ids, nil, func(rows driver.Rows) error {
			var payload []byte
			r, err := scanVersion(rows, &payload)
			if err != nil {
				return err
			}
			r.payload = payload
			return add(r)
		})
	} else {
		err = v.l.versionsIn(ctx, v.q, "current_by_id", ids, nil, add)
	}
	v.l.rowTime.record(start, len(ids))
	if err == nil && v.past && len(list) < len(ids) {
		ids = slices.DeleteFunc(ids, func(id any) bool { return found[id.(int64)] })
		err = v.l.versionsIn(ctx, v.q, "closed_by_id_at", ids, []any{v.at, v.at}, add)
	}
	sortDescending(list)
	return list, err
}

// valueCache keeps the values of attributes that have few, and which spans are
// long, because to find that out takes as long as some queries, and it is the same
// for all views between two batches. Of 400,000 entities, the latest of a type take
// 39 pages without it and 12 with it, and a range of three values 2.3 times the CPU.
type valueCache struct {
	mu    sync.Mutex
	tree  lsm.Tree            // all of this is of it
	lists map[uint32][]string // by space; nil: the values are many
	long  lsm.Spans           // spans that are long enough
}

// of returns the cache of a tree, locked.
func (c *valueCache) of(t *lsm.Tree) *valueCache {
	c.mu.Lock()
	if !c.tree.Same(t) || c.lists == nil || len(c.long) > 2*maxPerStatement {
		c.tree, c.lists, c.long = *t, map[uint32][]string{}, nil
	}
	return c
}

// valuesOf returns the values that postings of a space have, or nil when they are
// many.
func (v *view) valuesOf(ctx context.Context, space uint32) ([]string, error) {
	c := v.l.values.of(&v.p.tree)
	values, known := c.lists[space]
	c.mu.Unlock()
	if known {
		return values, nil
	}
	values, err := v.l.postings.Values(ctx, v.q, &v.p.tree, space, lookupCost)
	if err == nil {
		c = v.l.values.of(&v.p.tree)
		defer c.mu.Unlock()
		c.lists[space] = values
	}
	return values, err
}

// long reports whether a part of a span is known to be long.
func (v *view) long(spans []lsm.Span) bool {
	c := v.l.values.of(&v.p.tree)
	defer c.mu.Unlock()
	return len(spans) == 1 && c.long.In(spans[0])
}

// foundLong keeps what was found to be long.
func (v *view) foundLong(s lsm.Span) {
	c := v.l.values.of(&v.p.tree)
	defer c.mu.Unlock()
	if !c.long.In(s) {
		c.long.Add(s)
	}
}

// termsIn returns the terms within a range, nil when the attribute has many, and whether
// they are all that match and nothing else.
func (v *view) termsIn(ctx context.Context, a posted, r valueRange) (terms []lsm.Term, exact bool, err error) {
	spaces := []uint32{a.attr}
	if v.past {
		spaces = append(spaces, a.attr|past)
	}
	terms, exact = []lsm.Term{}, r.exact
	for _, space := range spaces {
		values, err := v.valuesOf(ctx, space)
		if err != nil || values == nil {
			return nil, false, err
		}
		for _, value := range values {
			match, sure := true, true
			if r.test != nil {
				match, sure = r.test([]byte(value))
			}
			if match && value >= r.lo && (r.hi == "" || value < r.hi) {
				terms, exact = append(terms, lsm.Term{Space: space, Value: value}), exact && sure
			}
		}
	}
	return terms, exact, nil
}
