package compact

import (
	"context"
	"fmt"
	"slices"

	"github.com/varvedb/varve/store/driver"
)

// story is what a batch does to one entity.
type story struct {
	first  *version // in current_versions before the batch, or nil
	closed []version
	now    *version // at the end, or nil

	touched bool // since the last stage
	staged  int  // of closed: those of the stages so far
	stored  bool // in current_versions after the stages so far
}

// stage is the versions of some blocks: the last steps of a merge. After it, the
// tables are as these blocks left them.
type stage struct {
	block   int64 // the last one
	changes int64
	live    int64 // by how much the rows of current_versions grow

	drop    []any // ids of current versions that change or end
	current []any // rows
	closed  []any // rows
}

// add appends an entity's rows.
func (g *stage) add(id int64, s *story) {
	if s.stored {
		g.drop = append(g.drop, id)
		g.live--
	}
	if s.now != nil {
		g.current = append(g.current, id, s.now.from, s.now.expires, s.now.key[:], s.now.content, s.now.data)
		g.live++
	}
	for i := range s.closed[s.staged:] {
		v := &s.closed[s.staged+i]
		g.closed = append(g.closed, id, v.from, v.to, v.expires, v.key[:], v.content, v.data)
	}
	s.stored, s.staged, s.touched = s.now != nil, len(s.closed), false
}

// follow follows each entity through the blocks and makes the stages, each of a
// number of changes. It returns the ids in order.
func (pl *plan) follow(ctx context.Context, t ahead, nodes []*node, changes int) (order []int64, err error) {
	if order, err = pl.begin(ctx, t, nodes); err != nil {
		return nil, err
	}
	var touched []int64
	touch := func(id int64) *story {
		s := pl.stories[id]
		if !s.touched {
			s.touched = true
			touched = append(touched, id)
		}
		return s
	}
	var g stage
	for at, n := range nodes {
		for i := range n.changes {
			c := &n.changes[i]
			if c.oldID != 0 {
				s := touch(c.oldID)
				was := *s.now
				was.to = n.block
				s.closed = append(s.closed, was)
				s.now = nil
			}
			if c.newID != 0 {
				touch(c.newID).now = &c.next
			}
		}
		if g.changes += int64(len(n.changes)); g.changes < int64(changes) && at < len(nodes)-1 {
			continue
		}
		g.block = n.block
		slices.Sort(touched)
		for _, id := range touched {
			g.add(id, pl.stories[id])
		}
		pl.stages = append(pl.stages, g)
		g, touched = stage{}, touched[:0]
	}
	return order, nil
}

// begin starts the stories of the entities that blocks touch.
func (pl *plan) begin(ctx context.Context, t ahead, nodes []*node) (order []int64, err error) {
	pl.stories = make(map[int64]*story, pl.changes)
	var stored []int64
	at := func(id int64) bool {
		if pl.stories[id] != nil {
			return false
		}
		pl.stories[id] = &story{}
		order = append(order, id)
		return true
	}
	for _, n := range nodes {
		for i := range n.changes {
			c := &n.changes[i]
			if c.oldID != 0 && at(c.oldID) {
				stored = append(stored, c.oldID)
			}
			if c.newID != 0 && !c.nextUpdates {
				at(c.newID)
			}
		}
	}
	err = t.versions(ctx, stored, func(v *version) {
		s := pl.stories[v.id]
		s.first, s.now, s.stored = v, v, true
	})
	if err != nil {
		return nil, err
	}
	for _, id := range stored {
		if pl.stories[id].first == nil {
			return nil, fmt.Errorf("%w: the log changes entity %d, which is not there", driver.ErrCorrupt, id)
		}
	}
	slices.Sort(order)
	return order, nil
}

// maxPurge bounds how many expired entities one batch takes along, about.
const maxPurge = 4096

// addExpired closes entities that ran out before the batch's end and that it does
// not touch, in a stage of their own.
func (pl *plan) addExpired(ctx context.Context, t ahead, order []int64) ([]int64, error) {
	var ids []int64
	err := t.expiring(ctx, pl.end, func(some []int64) bool {
		for _, id := range some {
			if pl.stories[id] == nil {
				ids = append(ids, id)
			}
		}
		return len(ids) < maxPurge
	})
	if err != nil {
		return nil, err
	}
	from := len(order)
	err = t.versions(ctx, ids, func(v *version) {
		if v.expires > pl.end || pl.stories[v.id] != nil {
			return
		}
		was := *v
		was.to = v.expires
		pl.stories[v.id] = &story{first: v, closed: []version{was}, stored: true}
		order = append(order, v.id)
	})
	slices.Sort(order[from:])
	for _, id := range order[from:] {
		pl.expired.add(id, pl.stories[id])
	}
	slices.Sort(order)
	return order, err
}

// edits appends what becomes of an entity's postings.
func (s *story) edits(list []edit, id int64) ([]edit, error) {
	var before, now []term
	var err error
	if s.first != nil {
		if before, err = s.first.terms(); err != nil {
			return nil, err
		}
	}
	if s.now != nil {
		if now, err = s.now.terms(); err != nil {
			return nil, err
		}
	}
	// The lists are short: to search them is faster than to make maps.
	for _, t := range now {
		if !slices.Contains(before, t) {
			list = append(list, edit{term: t, id: id, add: true})
		}
	}
	var gone []term
	for i := range s.closed {
		terms := before
		if i > 0 || s.first == nil {
			if terms, err = s.closed[i].terms(); err != nil {
				return nil, err
			}
		}
		for _, t := range terms {
			if !slices.Contains(now, t) && !slices.Contains(gone, t) {
				gone = append(gone, t)
				list = append(list, edit{term: t, past: true, id: id, add: true})
			}
		}
		if i == 0 && s.first != nil { // the first version is the one that ended first
			for _, t := range gone {
				list = append(list, edit{term: t, id: id})
			}
		}
	}
	return list, nil
}
