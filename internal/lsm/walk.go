package lsm

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/varvedb/varve/store/driver"
)

// firstWalk is how many pages of a run a walk reads first; then twice as many each time.
const firstWalk = 2

// Walk calls f with the postings of a span until that returns an error: in the order of
// keys or, with down, from the last to the first. It reads little more than f sees.
func (s *Store) Walk(ctx context.Context, q driver.Querier, t *Tree, span Span, down bool, f func(*Posting) error) error {
	if !down {
		m, err := s.merger(ctx, q, t.runs, span.lo)
		if err != nil {
			return err
		}
		return m.each(s.walker(ctx, q, "run_pages"), []Span{span}, f)
	}
	m := &merger{down: true}
	for _, r := range t.runs {
		m.cursors = append(m.cursors, &cursor{run: r.no, from: span.hi, down: true})
	}
	return m.eachDown(s.walker(ctx, q, "run_pages_down"), span, f)
}

// Values returns the values of a space, in order, or false when there are more than a limit.
func (s *Store) Values(ctx context.Context, q driver.Querier, t *Tree, space uint32, limit int) (values []string, all bool, err error) {
	for lo := ""; len(values) <= limit; lo = values[len(values)-1] + "\x00" {
		found := len(values)
		err := s.Walk(ctx, q, t, Within(space, lo, ""), false, func(p *Posting) error {
			values = append(values, string(p.Value))
			return errFound
		})
		if err != nil && !errors.Is(err, errFound) {
			return nil, false, err
		}
		if len(values) == found {
			return values, true, nil
		}
	}
	return nil, false, nil
}

var errFound = errors.New("found")

// walker returns a loader that reads few pages of a run at first.
func (s *Store) walker(ctx context.Context, q driver.Querier, statement string) loader {
	sizes := map[int64]int64{}
	return func(run int64, from []byte) (pages []Page, err error) {
		sizes[run] = min(max(2*sizes[run], firstWalk), readPages)
		return s.pages(ctx, q, statement, run, from, sizes[run])
	}
}

// eachDown calls f with the postings of a span, the last one first.
func (m *merger) eachDown(load loader, span Span, f func(*Posting) error) error {
	for _, c := range m.cursors {
		for c.key == nil || !c.ended && bytes.Compare(c.key, span.hi) >= 0 {
			if err := c.next(load); err != nil {
				return err
			}
			if c.ended {
				break
			}
		}
	}
	var p Posting
	for {
		e, ok, err := m.next(load)
		if err != nil || !ok || bytes.Compare(e.key, span.lo) < 0 {
			return err
		}
		if err := p.give(e, f); err != nil {
			return err
		}
	}
}

// nextDown moves to the entry before, or sets ended. Pages come from the last to the first,
// and each is taken apart as a whole.
func (c *cursor) nextDown(load loader) (err error) {
	for len(c.before) == 0 {
		if len(c.pages) == 0 {
			if c.pages, err = load(c.run, c.from); err != nil {
				return err
			}
		}
		if len(c.pages) == 0 {
			c.ended = true
			return nil
		}
		page := cursor{pages: c.pages[:1]}
		c.from, c.pages = c.pages[0].Low, c.pages[1:]
		for {
			if err := page.next(nil); err != nil {
				return err
			}
			if page.ended {
				break
			}
			e := page.entry
			e.key = slices.Clone(e.key)
			c.before = append(c.before, e)
		}
	}
	last := len(c.before) - 1
	c.entry, c.before = c.before[last], c.before[:last]
	return nil
}
