package eventlog

import (
	"context"
	"slices"

	"github.com/varvedb/varve/store/driver"
)

// Last has the positions of the last event of each item of a query. The first
// page of a read finds them, and all pages read the events.
type Last struct {
	known     bool
	positions []uint64 // that were not read
	head      uint64   // of the log when they were found
}

// readLast reads a page of the last events of items.
func (l *Log) readLast(ctx context.Context, q driver.Querier, p *Page, to *pageEvents) (err error) {
	last := p.Last
	if !last.known {
		if last.positions, last.head, err = l.lastPositions(ctx, q, p); err != nil {
			return err
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
// page, and the head of the log. It looks among the events without postings, and then
// through the postings of items that have none there.
func (l *Log) lastPositions(ctx context.Context, q driver.Querier, p *Page) (list []uint64, head uint64, err error) {
	s := search{log: l, q: q, backwards: true, firstRows: 1}
	end, err := s.ends(ctx)
	if err != nil {
		return nil, 0, err
	}
	back := *p
	back.Backwards = true
	from, to, ok := back.ends()
	if !ok {
		return nil, end.head, nil
	}
	s.to = to
	found, err := p.tail(l).match(ctx, q, end, &back, 1)
	if err != nil {
		return nil, 0, err
	}
	var streams []*stream
	for i, positions := range found {
		switch it := &p.Items[i]; {
		case len(positions) > 0:
			list = append(list, slices.Max(positions))
		case it.all(): // whatever has postings
			at, err := l.lastOfAll(ctx, q, &back)
			if err != nil {
				return nil, 0, err
			}
			list = append(list, at)
		default:
			st := s.stream(it)
			st.move(from)
			streams, s.shared = append(streams, st), append(s.shared, st.lists...)
		}
	}
	if err := s.fill(ctx, s.shared); err != nil {
		return nil, 0, err
	}
	for _, st := range streams {
		at, ok, err := s.next(ctx, st, from)
		if err != nil {
			return nil, 0, err
		}
		if ok {
			list = append(list, at)
		}
		for _, l := range st.lists {
			l.idle = true
		}
	}
	list = slices.DeleteFunc(list, func(at uint64) bool { return at == 0 })
	slices.Sort(list)
	if list = slices.Compact(list); p.Backwards {
		slices.Reverse(list)
	}
	return list, end.head, nil
}

// lastOfAll returns the position of the last event within the bounds of a page;
// zero when there is none.
func (l *Log) lastOfAll(ctx context.Context, q driver.Querier, back *Page) (uint64, error) {
	s := back.span()
	text := l.texts.Get([]byte{'z', flag(s.bounded)}, func() string {
		return "SELECT events.position FROM events WHERE " + s.bounds() + order("events.position", true) + " LIMIT 1"
	})
	return positionOrZero(driver.QueryInt(ctx, q, text, back.bounds()...))
}

// FirstSince returns the position of the first event that is not before a time, zero
// when there is none. Times never fall from one event to the next.
func (l *Log) FirstSince(ctx context.Context, q driver.Querier, micros int64) (uint64, error) {
	return positionOrZero(l.sql.Int(ctx, q, "first_since", micros))
}
