package compact

import (
	"context"
	"errors"
	"math"
	"slices"
)

// source hands out the visible versions in the tables that may match, in a window of ids,
// highest first, some at a time. Those of entities that the overlay has are not among them.
type source struct {
	v    *view
	c    candidates
	w    window                                    // what is still to come
	next func(context.Context) ([]*version, error) // one of fetch, scan and scanPast
	walk func(n int) []int64                       // of fetch: the next candidates
	past struct {                                  // of scanPast: closed versions that are read ahead
		list  []*version
		below int64
		ended bool
	}
	size  int  // how many are read next: few at first, for a caller who needs little
	left  *int // as walk has it
	read  int  // how many were read last, or looked for
	ended bool
}

func (v *view) source(c candidates, w window, left *int) *source {
	s := &source{v: v, c: c, w: w, left: left}
	switch {
	case !c.negated:
		s.next, s.walk = s.fetch, c.ids.Walk(w.low, w.high).Next
	case v.past:
		s.next, s.past.below = s.scanPast, w.high
	default:
		s.next = s.scan
	}
	return s
}

// fetch reads the versions of the next candidates.
func (s *source) fetch(ctx context.Context) (list []*version, err error) {
	o, ids := s.v.overlay(), s.walk(s.size)
	s.ended = len(ids) < s.size
	args := make([]any, 0, len(ids))
	for _, id := range ids {
		s.w.high = id
		if !o.touches(id) {
			args = append(args, id)
		}
	}
	s.read = len(args)
	return s.v.versionsOf(ctx, args)
}

// versionsOf returns the visible versions of ids, highest first, each once: of the past, a list that is read in
// several statements may have an id for each value that it had. It changes the list of ids.
func (v *view) versionsOf(ctx context.Context, ids []any) (list []*version, err error) {
	found := map[int64]bool{}
	add := func(r *version) error {
		if r.visible(v.at) && !found[r.id] {
			found[r.id] = true
			list = append(list, r)
		}
		return nil
	}
	start := v.ahead(ctx, currentTable, ids)
	err = v.l.versionsIn(ctx, v.q, "current_by_id", ids, nil, add)
	v.l.pace.took(start, len(ids))
	if err == nil && v.past && len(list) < len(ids) {
		ids = slices.DeleteFunc(ids, func(id any) bool { return found[id.(int64)] })
		err = v.l.versionsIn(ctx, v.q, "closed_by_id_at", ids, []any{v.at, v.at}, add)
	}
	sortDescending(list)
	return list, err
}

// wanted tells whether a version that a scan came upon is to be handed out.
func (s *source) wanted(r *version) bool {
	return r.visible(s.v.at) && !s.v.overlay().touches(r.id) && !s.c.ids.Has(r.id)
}

// passedIDs is how many ids are passed over in the time that a version is read in.
const passedIDs = 4 * pageVersions

// scan reads the next current versions. Where versions of some blocks are wanted it does not go
// further at once than to so many ids that to pass them over takes as long.
func (s *source) scan(ctx context.Context) (list []*version, err error) {
	n, w, low, most := 0, s.w, s.w.low, s.size
	if w.from > 0 || w.to < math.MaxInt64 {
		low = max(low, w.high-int64(s.size*passedIDs))
		if *s.left > 0 {
			most = min(most, max(*s.left, few/8))
		}
	}
	var ahead []any
	for id := w.high - 1; s.v.l.pace.slow() && id >= max(low, w.high-int64(most)); id-- {
		ahead = append(ahead, id)
	}
	start := s.v.ahead(ctx, currentTable, ahead)
	err = s.v.l.versions(ctx, s.v.q, "scan_current", []any{w.high, low, w.from, w.to, int64(most)}, func(r *version) error {
		n++
		s.w.high = r.id
		if s.wanted(r) {
			list = append(list, r)
		}
		return nil
	})
	if n < most {
		s.w.high = low
	}
	s.read, s.ended = n, s.w.high <= w.low
	if low > w.low {
		s.read = max(n, int(w.high-s.w.high)/passedIDs)
	}
	s.v.l.pace.took(start, s.read)
	return list, err
}

// scanPast is scan with the closed versions of the same ids between.
func (s *source) scanPast(ctx context.Context) ([]*version, error) {
	list, err := s.scan(ctx)
	if err != nil {
		return nil, err
	}
	if s.ended {
		s.w.high = s.w.low
	}
	low, p := s.w.high, &s.past
	for !p.ended && (len(p.list) == 0 || p.list[len(p.list)-1].id >= low) {
		n := 0
		err := s.v.l.versions(ctx, s.v.q, "scan_closed", []any{p.below, s.w.low, s.v.at, s.v.at, int64(together)}, func(r *version) error {
			n++
			p.below = r.id
			if s.wanted(r) {
				p.list = append(p.list, r)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		p.ended = n < together
	}
	i := 0
	for i < len(p.list) && p.list[i].id >= low {
		i++
	}
	list = append(list, p.list[:i]...)
	p.list = p.list[i:]
	sortDescending(list)
	return list, nil
}

// walk calls f with the visible versions in the tables that may match a filter and lie in a window, highest id first.
// It goes through windows that become larger. After one, the filter looks up whole what takes no longer than what was
// read so far. Left is how many matches the caller still needs, which falls meanwhile, or 0 for all.
func (v *view) walk(ctx context.Context, f filter, w window, left *int, each func(*version) error) error {
	w.high = min(w.high, v.p.nextID)
	bottom, wanted, read, spent := w.low, *left, few, 0
	for size := v.l.opts.Window; w.high > bottom; size = min(size, noLimit) * growth {
		if w.low = max(w.high-size, bottom); f.cost() <= costKnown {
			w.low = bottom
		}
		c, err := f.within(ctx, w)
		if err != nil {
			return err
		}
		if *left > 0 {
			read = min(max(*left, few/8), together)
		}
		// Versions that are still to be read, if as many match as did, and that are read before the
		// next window is begun: of the first, as many as are compared rather than looked up.
		rest, most := 0, spent+int(size/(defaultWindow/enough))
		for s := v.source(c, w, left); !s.ended && (spent < most || rest <= spent); {
			s.size = read
			list, err := s.next(ctx)
			if err != nil {
				return err
			}
			for _, r := range list {
				if err := each(r); err != nil {
					return err
				}
			}
			if w.high = s.w.high; s.ended {
				w.high = w.low
			}
			if spent += s.read; s.read == 0 {
				continue // they are the overlay's
			}
			rest = math.MaxInt
			if *left > 0 && *left < wanted {
				rest = *left*spent/(wanted-*left) + 1
			}
			read = min(2*read, max(rest, few/8), together)
		}
		if w.high > bottom && rest > spent {
			if err := f.find(ctx, int64(spent/pageVersions)); err != nil {
				return err
			}
		}
	}
	return nil
}

// scan calls f with each version that matches a plan, highest id first, until it returns an
// error; errStopped is none. Left is as walk has it.
func (v *view) scan(ctx context.Context, p *plan, left *int, f func(*version, *record) error) error {
	over := v.unmerged(p.expr)
	see := func(r *version) error {
		if err := ctx.Err(); err != nil { // the log is read without the engine, which would see to that
			return err
		}
		rec, err := parse(r.data)
		if err != nil || !p.match(r, &rec) {
			return err
		}
		return f(r, &rec)
	}
	// upTo looks at what the overlay has above an id.
	upTo := func(id int64) error {
		for ; len(over) > 0 && over[0].id > id; over = over[1:] {
			if over[0].id < p.below && over[0].visible(v.at) {
				if err := see(over[0]); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err := v.walk(ctx, p.filter, p.window, left, func(r *version) error {
		if err := upTo(r.id); err != nil {
			return err
		}
		return see(r)
	})
	if err == nil {
		err = upTo(math.MinInt64)
	}
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}
