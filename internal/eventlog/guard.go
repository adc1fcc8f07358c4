package eventlog

import (
	"cmp"
	"context"
	"math"

	"github.com/varvedb/varve/store/driver"
)

// Guard asks for an event above a position that matches any of some items, among
// the events that have postings.
type Guard struct {
	Items []Item
	After uint64 // raised to the end of the postings when no event up to there matches

	Found uint64 // the position of such an event, zero when there is none
	Item  int    // the item that it matches
	Left  bool   // not answered, because the answer takes more rows than the bound
}

// Bound bounds what one call of Judge reads. The zero value is no bound.
type Bound struct {
	Each int // rows for each guard
	All  int // rows for all guards together

	// Pause, unless it is nil, is called after each statement with the number of
	// rows that it returned.
	Pause func(rows int)
}

// probeRows is how many rows of each term are read first. Most conditions are
// about the few events after a decision, so one or two rows answer them.
const probeRows = 2

// Judge answers the guards as far as the bound allows. Indexed is the position
// at which the postings end.
func (l *Log) Judge(
	ctx context.Context, q driver.Querier, guards []*Guard, indexed uint64, b Bound,
) error {
	each, all := cmp.Or(b.Each, math.MaxInt/2), cmp.Or(b.All, math.MaxInt/2)
	s := search{log: l, q: q, to: indexed, firstRows: probeRows, pause: b.Pause}

	// Read the first rows of all guards together, because a statement costs more
	// than a row. An item whose rows are beyond the bound is left out.
	streams := make([][]*stream, len(guards))
	prepaid := make([]int, len(guards)) // rows that this look-up may read for a guard
	var lists []*list
	for i, g := range guards {
		most := min(each, all)
		for item := range g.Items {
			var st *stream // nil for an item that matches every event
			if it := &g.Items[item]; !it.all() {
				st = s.stream(it)
				rows := len(st.lists) * (probeRows + 1)
				if prepaid[i]+rows > most {
					break
				}
				st.move(g.After + 1)
				prepaid[i] += rows
				lists = append(lists, st.lists...)
			}
			streams[i] = append(streams[i], st)
		}
		all -= prepaid[i]
	}
	if len(lists) > 0 {
		if err := s.readLists(ctx, lists); err != nil {
			return err
		}
	}

	// Answer one guard after the other. The rows that a guard leaves unread of
	// its share of the first look-up are not given to another one, so that the
	// total stays bounded.
	for i, g := range guards {
		budget := min(each-prepaid[i], all)
		s.limit, s.atLimit = s.rows+max(budget, 0), false
		before := s.rows
		if err := s.answer(ctx, g, streams[i]); err != nil {
			return err
		}
		all -= s.rows - before
		if !g.Left && g.Found == 0 {
			g.After = max(g.After, indexed)
		}
	}
	return nil
}

// answer looks for a match of each item, one after the other.
func (s *search) answer(ctx context.Context, g *Guard, streams []*stream) (err error) {
	g.Found, g.Left = 0, false
	for item, st := range streams {
		if st == nil {
			g.Found, err = positionOrZero(s.log.sql.Int(ctx, s.q, "first_above", position(g.After)))
		} else {
			g.Found, _, err = s.next(ctx, st, g.After+1)
		}
		switch {
		case err != nil:
			return err
		case g.Found > 0:
			g.Item = item
			return nil
		case s.atLimit:
			g.Left = true
			return nil
		}
	}
	g.Left = len(streams) < len(g.Items)
	return nil
}
