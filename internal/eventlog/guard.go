package eventlog

import (
	"context"
	"errors"

	"github.com/varvedb/varve/store/driver"
)

// Guard asks for an event above a position that matches any of some items, of those
// that have postings.
type Guard struct {
	Items []Item
	After uint64 // raised to where postings end once nothing up to there matches

	Found uint64 // the position of such an event, zero when there is none
	Item  int    // the item that it matches
	Left  bool   // it was not answered: that would pass the bound

	// Where it was left: items before this one match nothing up to where postings ended at
	// the beginning, and this one nothing before a position.
	item   int
	from   uint64
	posted uint64
	stuck  int // so many times it came no further within the bound
}

// Bound bounds what one call of Judge reads. The zero value is no bound.
type Bound struct {
	Each int // rows of postings for each guard
	All  int // rows for all of them; zero means any number
}

// probeRows are the rows of a term that are read first.
const probeRows = 2

// Judge answers guards as far as the bound allows, many with each statement. Posted is where
// postings end. A guard that was left goes on where it was, in a view or transaction that is
// not older; the bound of one that came no further is doubled.
func (l *Log) Judge(ctx context.Context, q driver.Querier, guards []*Guard, posted uint64, b Bound) error {
	m := &meter{q: q, limit: noLimit}
	s := search{log: l, q: m, rows: probeRows}
	if b.All == 0 {
		b.All = noLimit
	}
	parts := make([]guardPart, len(guards))
	var lists []*list
	left := b.All
	for i, g := range guards {
		parts[i] = s.part(g, posted, min(b.of(g), left))
		lists = append(lists, parts[i].lists...)
		left -= parts[i].rows
	}
	if len(lists) > 0 {
		if err := s.readParts(ctx, lists); err != nil {
			return err
		}
	}
	for i, g := range guards {
		if each := b.of(g); each < noLimit {
			m.limit = min(m.read+each-parts[i].rows, b.All)
		}
		if err := s.answer(ctx, q, g, parts[i].streams); err != nil {
			return err
		}
	}
	return nil
}

// of returns the rows for a guard.
func (b Bound) of(g *Guard) int {
	if b.Each == 0 {
		return noLimit
	}
	return b.Each << g.stuck
}

// Restart has a guard that was left begin anew.
func (g *Guard) Restart() { g.item, g.from, g.stuck = 0, 0, 0 }

// guardPart is what one call looks up of a guard: the streams of its next items, nil for one
// that matches everything, with their lists, and how many rows their first look-up has.
type guardPart struct {
	streams []*stream
	lists   []*list
	rows    int
}

// part begins with as many of a guard's items as a number of rows allows.
func (s *search) part(g *Guard, posted uint64, most int) (p guardPart) {
	g.Found, g.Left = 0, false
	if g.item == 0 && g.from == 0 {
		g.posted = posted
	}
	from := max(g.After+1, g.from)
	for i := range g.Items[g.item:] {
		it := &g.Items[g.item+i]
		if it.all() {
			p.streams = append(p.streams, nil)
			continue
		}
		st := s.stream(it)
		rows := len(st.lists) * (probeRows + 1)
		if p.rows+rows > most {
			break
		}
		st.move(from)
		from = g.After + 1
		p.streams, p.lists, p.rows = append(p.streams, st), append(p.lists, st.lists...), p.rows+rows
	}
	return p
}

// answer goes on with a guard.
func (s *search) answer(ctx context.Context, q driver.Querier, g *Guard, streams []*stream) (err error) {
	item, from := g.item, g.from
	for _, st := range streams {
		if st == nil {
			g.Found, err = s.log.firstAbove(ctx, q, g.After)
		} else {
			g.Found, _, err = s.next(ctx, st, max(g.After+1, g.from))
		}
		switch {
		case errors.Is(err, errBound):
			g.Left, g.from = true, st.passed
		case err != nil:
			return err
		case g.Found > 0:
			g.Item = g.item
			return nil
		default:
			g.item, g.from = g.item+1, 0
			continue
		}
		break
	}
	switch g.Left = g.item < len(g.Items); {
	case !g.Left:
		g.After = max(g.After, g.posted)
		g.Restart()
	case g.item == item && g.from <= from:
		g.stuck++
	default:
		g.stuck = 0
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

// firstAbove returns the first position above another one, zero when there is none.
func (l *Log) firstAbove(ctx context.Context, q driver.Querier, after uint64) (uint64, error) {
	return orZero(l.sql.Int(ctx, q, "first_above", position(after)))
}
