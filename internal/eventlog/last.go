package eventlog

import (
	"context"
	"slices"

	"github.com/varvedb/varve/store/driver"
)

// Last is which events are the last ones of the items of a query. The first page of a
// read finds them, further ones read on.
type Last struct {
	known     bool
	positions []uint64 // that were not read
	head      uint64   // of the log when they were found
}

// readLast reads a page of the last events of items.
func (l *Log) readLast(ctx context.Context, q driver.Querier, p *Page, to *pageEvents) (err error) {
	last := p.Last
	if !last.known {
		if last.positions, err = l.lastPositions(ctx, q, p); err != nil {
			return err
		}
		if p.Head != nil {
			if last.head, err = l.Head(ctx, q); err != nil {
				return err
			}
		}
		last.known = true
	}
	some := make([]candidate, min(len(last.positions), p.Limit, l.maxFetch()))
	if len(some) == 0 {
		return nil
	}
	for i := range some {
		some[i] = candidate{at: last.positions[i], sure: true}
	}
	if err := l.fetch(ctx, q, some, to); err != nil {
		return err
	}
	last.positions = last.positions[len(to.list):]
	return nil
}

// lastPositions returns the positions of the last events of items, in the order of the
// page.
func (l *Log) lastPositions(ctx context.Context, q driver.Querier, p *Page) (list []uint64, err error) {
	if l.posted {
		list, err = l.lastPosted(ctx, q, p)
	} else {
		list, err = l.lastGIN(ctx, q, p)
	}
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(at uint64) bool { return at == 0 })
	slices.Sort(list)
	list = slices.Compact(list)
	if p.Backwards {
		slices.Reverse(list)
	}
	return list, nil
}

// lastPosted looks among the events without postings, and then through the postings of
// items that have none there.
func (l *Log) lastPosted(ctx context.Context, q driver.Querier, p *Page) ([]uint64, error) {
	back := *p
	back.Backwards = true
	from, to, ok := back.ends()
	found := make([]uint64, len(p.Items))
	if !ok {
		return found, nil
	}
	if err := l.lastInTail(ctx, q, &back, found); err != nil {
		return nil, err
	}
	s := search{log: l, q: q, backwards: true, rows: 1}
	streams := make([]*stream, len(p.Items))
	for i := range p.Items {
		switch {
		case found[i] > 0:
		case p.Items[i].all():
			// Whatever is before the tail.
			var err error
			if found[i], err = l.lastOfAll(ctx, q, &back); err != nil {
				return nil, err
			}
		default:
			streams[i] = s.stream(&p.Items[i])
			streams[i].move(from)
			s.lists = append(s.lists, streams[i].lists...)
		}
	}
	if err := s.fill(ctx, s.lists); err != nil {
		return nil, err
	}
	for i, st := range streams {
		if st == nil {
			continue
		}
		at, ok, err := s.next(ctx, st, from)
		if err != nil {
			return nil, err
		}
		if ok && at >= to {
			found[i] = at
		}
		for _, list := range st.lists {
			list.idle = true
		}
	}
	return found, nil
}

// lastInTail finds the last events among those without postings.
func (l *Log) lastInTail(ctx context.Context, q driver.Querier, back *Page, found []uint64) error {
	if back.Recent != nil {
		lists, _, ok, err := back.Recent.find(ctx, q, l, back, 1)
		for i, list := range lists {
			if len(list) > 0 {
				found[i] = slices.Max(list)
			}
		}
		if ok || err != nil {
			return err
		}
	}
	s := back.span()
	text := l.texts.get([]byte{'T', flag(s.bounded)}, func() string {
		return "SELECT " + l.keyColumns() + " FROM events WHERE " + unpostedRange + " AND " +
			s.bounds("events.position") + order("events.position", true)
	})
	m := newMatcher(back.Items)
	return eachKey(ctx, q, text, back.bounds(), func(k *keyRow) (bool, error) {
		m.each(k.typ, k.tags, func(n int32) bool {
			found[n] = max(found[n], k.at)
			return true
		})
		return true, nil
	})
}

// lastOfAll returns the last position of a page, zero when there is none.
func (l *Log) lastOfAll(ctx context.Context, q driver.Querier, back *Page) (uint64, error) {
	s := back.span()
	text := l.texts.get([]byte{'z', flag(s.bounded)}, func() string {
		return "SELECT events.position FROM events WHERE " + s.bounds("events.position") + order("events.position", true) + " LIMIT 1"
	})
	return firstPosition(ctx, q, text, back.bounds()...)
}

// FirstSince returns the position of the first event that is not before a time, zero
// when there is none. Times never fall from one event to the next.
func (l *Log) FirstSince(ctx context.Context, q driver.Querier, micros int64) (uint64, error) {
	return firstPosition(ctx, q, l.schema.Statements["first_since"], micros)
}
