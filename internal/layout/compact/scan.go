package compact

import (
	"context"
	"errors"
	"math"

	"github.com/varvedb/varve/store/query"
)

// source hands out the visible versions in the tables that may match, highest
// id first, some at a time. Those of entities that the overlay has are not among
// them.
type source struct {
	v     *view
	c     candidates
	next  func(context.Context) ([]*version, error) // one of fetch, scan and scanPast
	walk  func(n int) []int64                       // of fetch: the next candidates
	below int64                                     // of scan: ids still to come are below it
	past  struct {                                  // of scanPast: closed versions that are read ahead
		list  []*version
		below int64
		ended bool
	}
	size  int // how many are read next
	ended bool
}

// How many versions are read at once: few at first, for a caller who needs little.
const (
	firstRead   = 32
	largestRead = 512
)

func (v *view) source(c candidates, below int64, hint int) *source {
	s := &source{v: v, c: c, below: below, size: firstRead}
	if hint > 0 {
		s.size = min(max(hint, 4), largestRead)
	}
	switch {
	case !c.negated:
		s.next, s.walk = s.fetch, c.ids.Walk(below).Next
	case v.past:
		s.next, s.past.below = s.scanPast, below
	default:
		s.next = s.scan
	}
	return s
}

// fetch reads the versions of the next candidates.
func (s *source) fetch(ctx context.Context) (list []*version, err error) {
	v, o := s.v, s.v.overlay()
	ids := s.walk(s.size)
	s.ended = len(ids) < s.size
	args := make([]any, 0, len(ids))
	for _, id := range ids {
		if !o.touches(id) {
			args = append(args, id)
		}
	}
	found := map[int64]bool{}
	add := func(r *version) error {
		if r.visible(v.at) && !found[r.id] {
			found[r.id] = true
			list = append(list, r)
		}
		return nil
	}
	err = v.l.versionsIn(ctx, v.q, "current_by_id", args, nil, add)
	if err == nil && v.past {
		err = v.l.versionsIn(ctx, v.q, "closed_by_id_at", args, []any{v.at, v.at}, add)
	}
	sortDescending(list)
	return list, err
}

// wanted tells whether a version that a scan came upon is to be handed out.
func (s *source) wanted(r *version) bool {
	return r.visible(s.v.at) && !s.v.overlay().touches(r.id) && !s.c.ids.Has(r.id)
}

// scan reads the next current versions.
func (s *source) scan(ctx context.Context) (list []*version, err error) {
	n := 0
	err = s.v.l.versions(ctx, s.v.q, "scan_current", []any{s.below, int64(s.size)}, func(r *version) error {
		n++
		s.below = r.id
		if s.wanted(r) {
			list = append(list, r)
		}
		return nil
	})
	s.ended = n < s.size
	return list, err
}

// scanPast is scan with the closed versions of the same ids between.
func (s *source) scanPast(ctx context.Context) ([]*version, error) {
	list, err := s.scan(ctx)
	if err != nil {
		return nil, err
	}
	low, p := s.below, &s.past
	if s.ended {
		low = math.MinInt64
	}
	for !p.ended && (len(p.list) == 0 || p.list[len(p.list)-1].id >= low) {
		n := 0
		err := s.v.l.versions(ctx, s.v.q, "scan_closed", []any{p.below, s.v.at, s.v.at, int64(largestRead)}, func(r *version) error {
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
		p.ended = n < largestRead
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

// matches calls f with each version that matches in a view, highest id first,
// until it returns an error; errStopped is none. Hint is how many the caller may need, 0
// for all.
func (v *view) matches(ctx context.Context, c candidates, e query.Expr, below int64, hint int, f func(*version, *record) error) error {
	s := v.source(c, below, hint)
	m, over := newMatcher(e, v.names), v.unmerged(e)
	see := func(r *version) error {
		rec, err := parse(r.data)
		if err != nil || !m(r, &rec) {
			return err
		}
		return f(r, &rec)
	}
	// upTo looks at what the overlay has above an id.
	upTo := func(id int64) error {
		for ; len(over) > 0 && over[0].id > id; over = over[1:] {
			if over[0].id < below && over[0].visible(v.at) {
				if err := see(over[0]); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err := func() error {
		for !s.ended {
			list, err := s.next(ctx)
			if err != nil {
				return err
			}
			s.size = min(4*s.size, largestRead)
			for _, r := range list {
				if err := upTo(r.id); err != nil {
					return err
				}
				if err := see(r); err != nil {
					return err
				}
			}
		}
		return upTo(math.MinInt64)
	}()
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}
