package compact

import (
	"context"
	"math"
	"slices"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/query"
)

// source hands out the visible versions in the tables that may match, highest
// id first, in batches. Those of entities that the overlay has are not among
// them.
type source struct {
	v      *view
	c      candidates
	walk   *walk
	below  int64 // of a scan: ids still to come are below it
	past   *backlog
	size   int // of the next batch
	ended  bool
	pastup bool // the scan of closed versions has ended
}

// backlog holds closed versions that a scan has read ahead.
type backlog struct {
	list  []*version
	below int64
}

// The sizes of batches: the first is small, for a caller who needs little.
const (
	firstBatch = 32
	largeBatch = 512
)

func (v *view) source(c candidates, below int64, hint int) *source {
	s := &source{v: v, c: c, below: below, size: firstBatch}
	if hint > 0 {
		s.size = min(max(hint, 4), largeBatch)
	}
	if !c.negated {
		s.walk = c.ids.walk(below)
	} else if v.past {
		s.past = &backlog{below: below}
	}
	return s
}

// next returns the next batch, nil at the end.
func (s *source) next(ctx context.Context) (list []*version, err error) {
	for len(list) == 0 && !s.ended && err == nil {
		switch {
		case s.walk != nil:
			list, err = s.fetch(ctx)
		case s.past != nil:
			list, err = s.scanPast(ctx)
		default:
			list, err = s.scan(ctx)
		}
		s.size = min(4*s.size, largeBatch)
	}
	return list, err
}

// fetch reads the versions of the next candidates.
func (s *source) fetch(ctx context.Context) (list []*version, err error) {
	v := s.v
	ids := s.walk.next(s.size)
	s.ended = len(ids) < s.size
	args := make([]any, 0, len(ids))
	for _, id := range ids {
		if !v.overlay.touches(id) {
			args = append(args, id)
		}
	}
	found := map[int64]bool{}
	add := func(r *version) {
		if !found[r.id] {
			found[r.id] = true
			list = append(list, r)
		}
	}
	err = v.l.eachQuery(ctx, v.q, "current_by_id", 1, args, nil, func(rows driver.Rows) error {
		r, err := scanVersion(rows)
		if err == nil && r.visible(v.at) {
			add(r)
		}
		return err
	})
	if err == nil && v.past {
		err = v.l.eachQuery(ctx, v.q, "closed_by_id_at", 1, args, []any{v.at, v.at}, func(rows driver.Rows) error {
			var to int64
			r, err := scanVersion(rows, &to)
			if err == nil {
				add(r)
			}
			return err
		})
	}
	sortDescending(list)
	return list, err
}

func sortDescending(list []*version) {
	slices.SortFunc(list, func(a, b *version) int { return int(min(max(b.id-a.id, -1), 1)) })
}

// wanted tells whether a version that a scan came upon is to be handed out.
func (s *source) wanted(r *version) bool {
	return !s.v.overlay.touches(r.id) && !s.c.ids.has(r.id)
}

// scan reads the next current versions.
func (s *source) scan(ctx context.Context) (list []*version, err error) {
	n := 0
	err = eachRow(ctx, s.v.q, s.v.l.sql["scan_current"], []any{s.below, int64(s.size)}, func(rows driver.Rows) error {
		r, err := scanVersion(rows)
		if err != nil {
			return err
		}
		n++
		s.below = r.id
		if r.visible(s.v.at) && s.wanted(r) {
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
	low := s.below
	if s.ended {
		low = math.MinInt64
	}
	for !s.pastup && (len(s.past.list) == 0 || s.past.list[len(s.past.list)-1].id >= low) {
		n := 0
		args := []any{s.past.below, s.v.at, s.v.at, int64(largeBatch)}
		err := eachRow(ctx, s.v.q, s.v.l.sql["scan_closed_at"], args, func(rows driver.Rows) error {
			var to int64
			r, err := scanVersion(rows, &to)
			if err != nil {
				return err
			}
			n++
			s.past.below = r.id
			if s.wanted(r) {
				s.past.list = append(s.past.list, r)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		s.pastup = n < largeBatch
	}
	i := 0
	for i < len(s.past.list) && s.past.list[i].id >= low {
		i++
	}
	list = append(list, s.past.list[:i]...)
	s.past.list = s.past.list[i:]
	sortDescending(list)
	return list, nil
}

// matches calls f with each version that matches in a view, highest id first,
// until it returns false. Hint is how many the caller may need, 0 for all.
func (v *view) matches(ctx context.Context, c candidates, e query.Expr, below int64, hint int, f func(*version, *record) (bool, error)) error {
	s := v.source(c, below, hint)
	m, over := newMatcher(e, v.names), v.over(e)
	see := func(r *version) (bool, error) {
		rec, err := parse(r.data)
		if err != nil || !m(r, &rec) {
			return true, err
		}
		return f(r, &rec)
	}
	for {
		list, err := s.next(ctx)
		if err != nil {
			return err
		}
		for _, r := range list {
			for len(over) > 0 && over[0].id > r.id {
				if next := over[0]; next.id < below && next.visible(v.at) {
					if more, err := see(next); err != nil || !more {
						return err
					}
				}
				over = over[1:]
			}
			if more, err := see(r); err != nil || !more {
				return err
			}
		}
		if s.ended && len(list) == 0 {
			break
		}
	}
	for _, r := range over {
		if r.id < below && r.visible(v.at) {
			if more, err := see(r); err != nil || !more {
				return err
			}
		}
	}
	return nil
}
