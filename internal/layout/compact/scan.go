package compact

import (
	"context"
	"iter"
	"math"
	"slices"
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
		log := v.unmerged(p.expr)
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
		w.high = min(w.high, v.p.nextID)
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
				list, cost, err := s.next(ctx, read)
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

// next reads up to n versions, or fewer when few are left to find. Cost is how
// many were read or looked for.
func (s *reader) next(ctx context.Context, n int) (list []*version, cost int, err error) {
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
	list, err = s.v.versionsOf(ctx, args)
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
func (v *view) versionsOf(ctx context.Context, ids []any) (list []*version, err error) {
	found := map[int64]bool{}
	add := func(r *version) error {
		if r.visible(v.at) && !found[r.id] {
			found[r.id] = true
			list = append(list, r)
		}
		return nil
	}
	start := v.readAhead(ctx, currentTable, ids)
	err = v.l.versionsIn(ctx, v.q, "current_by_id", ids, nil, add)
	v.l.rowTime.record(start, len(ids))
	if err == nil && v.past && len(list) < len(ids) {
		ids = slices.DeleteFunc(ids, func(id any) bool { return found[id.(int64)] })
		err = v.l.versionsIn(ctx, v.q, "closed_by_id_at", ids, []any{v.at, v.at}, add)
	}
	sortDescending(list)
	return list, err
}
