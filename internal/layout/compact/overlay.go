package compact

import (
	"cmp"
	"slices"

	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// overlay is the state at a block of the entities that the log changes. For these
// entities the tables do not count.
type overlay struct {
	merged   int64
	versions map[int64]*version // by id; nil when the entity has ended
	live     []*version         // the others, highest id first
}

// newOverlay folds the nodes above merged and up to at.
func newOverlay(nodes []*node, merged, at int64) *overlay {
	o := &overlay{merged: merged, versions: map[int64]*version{}}
	for _, n := range nodes {
		if n.block <= merged || n.block > at {
			continue
		}
		for i := range n.changes {
			c := &n.changes[i]
			if c.oldID != 0 {
				o.versions[c.oldID] = nil
			}
			if c.newID != 0 {
				o.versions[c.newID] = &c.next
			}
		}
	}
	for _, v := range o.versions {
		if v != nil {
			o.live = append(o.live, v)
		}
	}
	sortDescending(o.live)
	return o
}

// touches reports whether the log changes an entity.
func (o *overlay) touches(id int64) bool {
	_, ok := o.versions[id]
	return ok
}

// overlay returns the overlay of a view at a block. The one at the head is kept,
// because folding thousands of changes takes three times as long as a query.
func (c *chain) overlay(p *progress, at int64) *overlay {
	if at < p.last {
		return newOverlay(c.nodes, p.merged, at)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil || c.last.merged != p.merged {
		c.last = newOverlay(c.nodes, p.merged, p.last)
	}
	return c.last
}

func sortDescending(list []*version) {
	slices.SortFunc(list, func(a, b *version) int { return cmp.Compare(b.id, a.id) })
}

// unmerged returns the overlay's versions that may match an expression, highest id
// first: all of them, or those that equalities narrow it down to.
func (v *view) unmerged(e query.Expr) []*version {
	o := v.overlay()
	if len(o.live) <= minCandidates {
		return o.live
	}
	equalities := v.equalities(e)
	if len(equalities) == 0 {
		return o.live
	}
	slices.SortStableFunc(equalities, func(a, b []lsm.Term) int { return cmp.Compare(len(a), len(b)) })
	var found []*version
	var places []int32
	for _, n := range v.nodes {
		if n.block > v.at {
			break
		}
		places = n.having(equalities, places[:0])
		for _, i := range places {
			// A version counts when it is still its entity's last.
			if c := &n.changes[i]; o.versions[c.newID] == &c.next {
				found = append(found, &c.next)
			}
		}
	}
	sortDescending(found)
	return slices.Compact(found)
}

// equalities returns lists of terms, of each of which every match of an expression
// has at least one. There are no lists when the expression asks for no values.
func (v *view) equalities(e query.Expr) (lists [][]lsm.Term) {
	switch e := e.(type) {
	case query.Compare:
		if e.Op == query.Equal {
			return v.valueTerms(e.Name, []query.Value{e.Value})
		}
	case query.In:
		if !e.Negated {
			return v.valueTerms(e.Name, e.Values)
		}
	case query.And:
		for _, t := range e.Terms {
			lists = append(lists, v.equalities(t)...)
		}
	case query.Or:
		// A match has a term of one alternative; of each the shortest list will do.
		all := []lsm.Term{}
		for _, t := range e.Terms {
			alternative := v.equalities(t)
			if len(alternative) == 0 {
				return nil
			}
			shortest := slices.MinFunc(alternative, func(a, b []lsm.Term) int { return cmp.Compare(len(a), len(b)) })
			all = append(all, shortest...)
		}
		return [][]lsm.Term{all}
	}
	return lists
}

// valueTerms returns one list, the terms of values, unless they are too many to look up in each node.
func (v *view) valueTerms(name string, values []query.Value) [][]lsm.Term {
	if len(values) == 0 || len(values) > 2*lookupCost || name == entity.AttrKey {
		return nil
	}
	a, ok := v.attribute(name, values[0].Kind)
	if !ok {
		return nil
	}
	terms, _ := a.terms(values)
	return [][]lsm.Term{terms}
}
