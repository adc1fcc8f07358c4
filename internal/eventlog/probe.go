package eventlog

import (
	"context"
	"errors"
	"slices"

	"github.com/varvedb/varve/store/driver"
)

// Guard asks for an event above a position that matches any of some items, of those
// that have postings.
type Guard struct {
	Items []Item
	After uint64

	Found uint64 // the position of such an event, zero when there is none
	Item  int    // the item that it matches
	Left  bool   // it was not answered: that would pass the bound

	// What JudgePart has come to: items before this one have no event, and this one none
	// before a position. The next part reads so many rows.
	item int
	from uint64
	part int
}

// Bound bounds what one call of Judge reads.
type Bound struct {
	Each int // rows of postings for each guard; zero means any number
	All  int // rows for all of them

	// Head is the last position, where the engine's own index is asked.
	Head uint64
}

// probeRows are the rows of a term that are read first.
const probeRows = 2

// Judge answers guards as far as the bound allows, many with each statement.
func (l *Log) Judge(ctx context.Context, q driver.Querier, guards []*Guard, b Bound) error {
	if !l.posted {
		return l.judgeGIN(ctx, q, guards, b)
	}
	m := &meter{q: q, limit: noLimit}
	s := search{log: l, q: m, rows: probeRows}
	streams := make([][]*stream, len(guards))
	first := make([]int, len(guards)) // rows of the first look-up
	var lists []*list
	all := 0
	for i, g := range guards {
		var own []*list
		streams[i], own = s.guard(g)
		first[i] = len(own) * (probeRows + 1)
		if g.Left = b.Each > 0 && (first[i] > b.Each || all+first[i] > b.All); !g.Left {
			lists, all = append(lists, own...), all+first[i]
		}
	}
	if len(lists) > 0 {
		if err := s.readParts(ctx, lists); err != nil {
			return err
		}
	}
	for i, g := range guards {
		if g.Left {
			continue
		}
		if b.Each > 0 {
			m.limit = min(m.read+b.Each-first[i], b.All)
		}
		err := s.answer(ctx, q, g, streams[i])
		if g.Left = errors.Is(err, errBound); err != nil && !g.Left {
			return err
		}
	}
	return nil
}

// JudgePart goes on answering a guard that was left, in a view that is not older than the
// one before, and reads about a number of rows of postings: more where that many are no
// step forward.
func (l *Log) JudgePart(ctx context.Context, q driver.Querier, g *Guard, rows int) (err error) {
	if !l.posted {
		return l.judgeGIN(ctx, q, []*Guard{g}, Bound{})
	}
	g.part = max(g.part, rows)
	some := Guard{Items: g.Items[g.item:], After: max(g.After+1, g.from) - 1}
	if fit := 1 + g.part/(probeRows+1); len(some.Items) > fit {
		some.Items = some.Items[:fit]
	}
	m := &meter{q: q, limit: noLimit}
	s := search{log: l, q: m, rows: probeRows}
	streams, lists := s.guard(&some)
	for _, st := range streams[1:] {
		if st != nil {
			st.move(g.After + 1)
		}
	}
	if err := s.readParts(ctx, lists); err != nil {
		return err
	}
	m.limit = m.read + g.part
	before, from := g.item, g.from
	for _, st := range streams {
		one := Guard{Items: g.Items[g.item : g.item+1], After: max(g.After+1, g.from) - 1}
		err := s.answer(ctx, q, &one, []*stream{st})
		switch {
		case errors.Is(err, errBound):
			g.Left, g.from = true, st.passed
			if g.item == before && g.from <= from {
				g.part *= 2
			}
			return nil
		case err != nil || one.Found > 0:
			g.Found, g.Item, g.Left = one.Found, g.item, false
			return err
		}
		g.item, g.from = g.item+1, 0
	}
	g.Left = g.item < len(g.Items)
	return nil
}

// guard returns the streams of a guard, nil for an item that matches everything, and
// all of their lists.
func (s *search) guard(g *Guard) (streams []*stream, lists []*list) {
	streams = make([]*stream, len(g.Items))
	for i := range g.Items {
		if it := &g.Items[i]; !it.all() {
			streams[i] = s.stream(it)
			streams[i].move(g.After + 1)
			lists = append(lists, streams[i].lists...)
		}
	}
	return streams, lists
}

// answer answers a guard.
func (s *search) answer(ctx context.Context, q driver.Querier, g *Guard, streams []*stream) (err error) {
	for i, st := range streams {
		if st == nil {
			g.Found, err = s.log.firstAbove(ctx, q, g.After)
		} else {
			g.Found, _, err = s.next(ctx, st, g.After+1)
		}
		if err != nil || g.Found > 0 {
			g.Item = i
			return err
		}
	}
	return nil
}

// meter counts the rows that are read through it, and ends what reads too many.
type meter struct {
	q     driver.Querier
	read  int
	limit int // of read
}

const noLimit = int(^uint(0) >> 1)

// errBound ends a search that has read as many rows as it may.
var errBound = errors.New("too many rows of postings")

// Query implements driver.Querier.
func (m *meter) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	if m.read >= m.limit {
		return nil, errBound
	}
	rows, err := m.q.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	return &metered{Rows: rows, meter: m}, nil
}

type metered struct {
	driver.Rows
	meter *meter
	over  bool
}

// Next implements driver.Rows.
func (r *metered) Next() bool {
	if r.over = r.meter.read >= r.meter.limit; r.over || !r.Rows.Next() {
		return false
	}
	r.meter.read++
	return true
}

// Err implements driver.Rows.
func (r *metered) Err() error {
	if r.over {
		return errBound
	}
	return r.Rows.Err()
}

// Probe asks for the first event above a position that matches an item.
type Probe struct {
	Item  *Item
	After uint64
	Found uint64 // its position, zero when there is none
}

// ginSpan are the events that a look-up by the engine's own index is taken to read for
// as much as a row of postings is. What it does read nobody tells beforehand.
const ginSpan = 64

// judgeGIN answers guards by the engine's index. Only the distance bounds the work, so
// what asks far back is left.
func (l *Log) judgeGIN(ctx context.Context, q driver.Querier, guards []*Guard, b Bound) error {
	var probes []*Probe
	for _, g := range guards {
		if g.Left = b.Each > 0 && b.Head > g.After && (b.Head-g.After)/ginSpan >= uint64(b.Each); g.Left {
			continue
		}
		for i := range g.Items {
			probes = append(probes, &Probe{Item: &g.Items[i], After: g.After})
		}
	}
	asked := slices.Clone(probes) // they are sorted
	if err := l.probeGIN(ctx, q, probes); err != nil {
		return err
	}
	for _, g := range guards {
		if g.Left {
			continue
		}
		for i := range g.Items {
			if p := asked[i]; g.Found == 0 && p.Found > 0 {
				g.Found, g.Item = p.Found, i
			}
		}
		asked = asked[len(g.Items):]
	}
	return nil
}

// firstAbove returns the first position above another one, zero when there is none.
func (l *Log) firstAbove(ctx context.Context, q driver.Querier, after uint64) (uint64, error) {
	return firstPosition(ctx, q, l.schema.Statements["first_above"], position(after))
}

// all tells whether an item matches every event.
func (it *Item) all() bool { return len(it.types) == 0 && len(it.tags) == 0 }

func sameShape(a, b *Item) bool { return len(a.types) == len(b.types) && len(a.tags) == len(b.tags) }

// sortProbes puts probes of one shape side by side.
func sortProbes(probes []*Probe) {
	slices.SortStableFunc(probes, func(a, b *Probe) int {
		if d := len(a.Item.tags) - len(b.Item.tags); d != 0 {
			return d
		}
		return len(a.Item.types) - len(b.Item.types)
	})
}
