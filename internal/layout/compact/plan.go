package compact

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/varvedb/varve/store/driver"
)

// plan is what merging a batch of blocks does to the tables. It follows from
// the blocks and from the versions in the tables, which stay as they are until
// the last step; so it can be made again, and steps can be repeated.
//
// Steps may be committed one by one. Readers are not misled in between: entities
// that a batch touches are the overlay's as long as it is not merged whole, and
// what a query of the past is narrowed down by, current and past postings
// together, only ever grows before something is taken away.
type plan struct {
	merged, end int64 // the batch is the blocks above merged up to end
	endTip      tip
	changes     int64 // in these blocks
	finished    bool  // by a transaction that may not be committed, nor ever be

	sets  []set // as they become, past ones before current ones, sorted
	final []set // those by which entities that ran out are found
	keys  []any // rows: hash, id

	drop    []any // ids of current versions that change or end
	current []any // rows
	closed  []any // rows
	live    int64 // by how much the rows of current_versions grow
}

// story is what a batch does to one entity.
type story struct {
	first  *version // in current_versions before the batch, or nil
	closed []version
	now    *version // at the end, or nil
	ranOut bool     // it is only there because it ran out
}

// newPlan makes the plan for the blocks above the merged ones up to end.
func (l *Layout) newPlan(ctx context.Context, tx driver.Querier, p *progress, nodes []*node) (*plan, error) {
	pl := &plan{merged: p.merged, end: nodes[len(nodes)-1].block, endTip: nodes[len(nodes)-1].tip}
	stories, order, err := l.stories(ctx, tx, nodes)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		pl.changes += int64(len(n.changes))
		for i := range n.changes {
			if c := &n.changes[i]; c.newID != 0 && !c.nextUpdates {
				pl.keys = append(pl.keys, hashKey(c.key), c.newID)
			}
		}
	}
	if order, err = l.addExpired(ctx, tx, pl.end, stories, order); err != nil {
		return nil, err
	}
	var edits []edit
	for _, id := range order {
		s := stories[id]
		if edits, err = s.edits(edits, id); err != nil {
			return nil, err
		}
		pl.add(id, s)
	}
	pl.sets, pl.final, err = l.resolve(ctx, tx, group(edits))
	return pl, err
}

// stories follows each entity through the blocks, in the order of ids.
func (l *Layout) stories(ctx context.Context, tx driver.Querier, nodes []*node) (map[int64]*story, []int64, error) {
	stories := map[int64]*story{}
	var order []int64
	var stored []any
	at := func(id int64) *story {
		s := stories[id]
		if s == nil {
			s = &story{}
			stories[id] = s
			order = append(order, id)
		}
		return s
	}
	for _, n := range nodes {
		for i := range n.changes {
			c := &n.changes[i]
			if c.oldID != 0 && stories[c.oldID] == nil {
				at(c.oldID)
				stored = append(stored, c.oldID)
			}
			if c.newID != 0 && !c.nextUpdates {
				at(c.newID)
			}
		}
	}
	err := l.eachQuery(ctx, tx, "current_by_id", 1, stored, nil, func(rows driver.Rows) error {
		v, err := scanVersion(rows)
		if err == nil {
			stories[v.id].first = v
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	for _, id := range stored {
		if s := stories[id.(int64)]; s.first == nil {
			return nil, nil, fmt.Errorf("%w: the log changes entity %d, which is not there", driver.ErrCorrupt, id)
		}
	}
	for _, s := range stories {
		s.now = s.first
	}
	for _, n := range nodes {
		for i := range n.changes {
			c := &n.changes[i]
			if c.oldID != 0 {
				s := stories[c.oldID]
				was := *s.now
				was.to = n.block
				s.closed = append(s.closed, was)
				s.now = nil
			}
			if c.newID != 0 {
				stories[c.newID].now = &c.next
			}
		}
	}
	slices.Sort(order)
	return stories, order, nil
}

// maxPurge bounds how many expired entities one batch takes along, about.
const maxPurge = 4096

// addExpired closes entities that ran out before the batch's end and that it
// does not touch. Which these are does not depend on steps that are done.
func (l *Layout) addExpired(ctx context.Context, tx driver.Querier, end int64, stories map[int64]*story, order []int64) ([]int64, error) {
	var ids []any
	args := []any{int64(attrExpiration), []byte(encodeNumber(0)), []byte(encodeNumber(uint64(end + 1))), int64(noLimit)}
	err := eachRow(ctx, tx, l.sql["current_postings_range"], args, func(rows driver.Rows) error {
		var value, stored []byte
		var number int64
		if err := rows.Scan(&value, &number, &stored); err != nil {
			return err
		}
		var c chunk
		if err := c.merge(stored); err != nil {
			return err
		}
		for _, id := range (idSet{number: &c}).walk(noLimit).next(chunkIDs) {
			if stories[id] == nil {
				ids = append(ids, id)
			}
		}
		if len(ids) >= maxPurge {
			return errStopped
		}
		return nil
	})
	if err != nil && !errors.Is(err, errStopped) {
		return nil, err
	}
	err = l.eachQuery(ctx, tx, "current_by_id", 1, ids, nil, func(rows driver.Rows) error {
		v, err := scanVersion(rows)
		if err != nil || v.expires > end || stories[v.id] != nil {
			return err
		}
		was := *v
		was.to = v.expires
		stories[v.id] = &story{first: v, closed: []version{was}, ranOut: true}
		order = append(order, v.id)
		return nil
	})
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
	for _, t := range before {
		if !slices.Contains(now, t) {
			list = append(list, edit{term: t, id: id, last: s.ranOut && t.attr == attrExpiration})
		}
	}
	for _, t := range now {
		if !slices.Contains(before, t) {
			list = append(list, edit{term: t, id: id, add: true})
		}
	}
	var gone []term
	for i := range s.closed {
		terms, err := s.closed[i].terms()
		if err != nil {
			return nil, err
		}
		for _, t := range terms {
			if !slices.Contains(now, t) && !slices.Contains(gone, t) {
				gone = append(gone, t)
				list = append(list, edit{term: t, past: true, id: id, add: true})
			}
		}
	}
	return list, nil
}

// add appends an entity's rows.
func (pl *plan) add(id int64, s *story) {
	if s.first != nil {
		pl.drop = append(pl.drop, id)
		pl.live--
	}
	if s.now != nil {
		pl.current = append(pl.current, id, s.now.from, s.now.expires, s.now.key[:], s.now.content, s.now.data)
		pl.live++
	}
	for i := range s.closed {
		v := &s.closed[i]
		pl.closed = append(pl.closed, id, v.from, v.to, v.expires, v.key[:], v.content, v.data)
	}
}
