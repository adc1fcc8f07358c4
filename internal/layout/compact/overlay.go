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
// first. When the expression excludes few of them these are all, because to look
// through all in order then takes less time than to find some and to sort them;
// more so for a caller with a limit, who seldom needs all.
func (v *view) unmerged(e query.Expr, limited bool) (found []*version) {
	o := v.overlay()
	if len(o.live) <= minCandidates {
		return o.live
	}

	// Of a few keys look up the last changes.
	if keys, ok := keysOf(e); ok {
		for _, key := range keys {
			if c := lookup(v.nodes, v.at, key); c != nil && o.versions[c.newID] == &c.next {
				found = append(found, &c.next)
			}
		}
		sortDescending(found)
		return slices.Compact(found)
	}

	// Find what the blocks within reach have changed and has the terms. When these
	// are all blocks and no terms, nothing is excluded.
	within, lists := reachOf(e), v.required(e)
	if len(lists) == 0 && int64(within.from) <= v.nodes[0].block && v.at <= int64(within.to) {
		return o.live
	}
	slices.SortStableFunc(lists, compareLengths)
	most := len(o.live) / 2
	if limited {
		most /= 2
	}
	var places []int32
	for _, n := range v.nodes {
		if n.block > int64(within.to) {
			break
		}
		if n.block < int64(within.from) {
			continue
		}
		places = n.having(lists, places[:0])
		for _, i := range places {
			// A version counts when it is still its entity's last.
			if c := &n.changes[i]; o.versions[c.newID] == &c.next {
				found = append(found, &c.next)
			}
		}
		if len(found) > most {
			return o.live
		}
	}
	sortDescending(found)
	return slices.Compact(found)
}

// keysOf returns keys of which every match of an expression has one, or false when
// it asks for none.
func keysOf(e query.Expr) (keys []entity.Key, ok bool) {
	switch e := e.(type) {
	case query.Compare:
		if e.Name == entity.AttrKey && e.Op == query.Equal {
			return parseKeys([]query.Value{e.Value}), true
		}
	case query.In:
		if e.Name == entity.AttrKey && !e.Negated {
			return parseKeys(e.Values), true
		}
	case query.And:
		for _, t := range e.Terms {
			if keys, ok = keysOf(t); ok {
				return keys, true
			}
		}
	}
	return nil, false
}

// required returns lists of terms, of each of which every match of an expression
// has at least one.
func (v *view) required(e query.Expr) (lists [][]lsm.Term) {
	switch e := e.(type) {
	case query.Compare:
		if e.Op == query.Equal {
			return v.valueTerms(e.Name, []query.Value{e.Value})
		}
		return v.anyValue(e.Name, e.Value.Kind)
	case query.In:
		if !e.Negated {
			return v.valueTerms(e.Name, e.Values)
		}
		if len(e.Values) > 0 {
			return v.anyValue(e.Name, e.Values[0].Kind)
		}
	case query.Glob:
		return v.anyValue(e.Name, entity.String)
	case query.And:
		for _, t := range e.Terms {
			lists = append(lists, v.required(t)...)
		}
	case query.Or:
		// A match has a term of one alternative; of each the shortest list will do.
		all := []lsm.Term{}
		for _, t := range e.Terms {
			alternative := v.required(t)
			if len(alternative) == 0 {
				return nil
			}
			all = append(all, slices.MinFunc(alternative, compareLengths)...)
		}
		return [][]lsm.Term{all}
	}
	return lists
}

func compareLengths(a, b []lsm.Term) int { return cmp.Compare(len(a), len(b)) }

// valueTerms returns one list, the terms of values, unless they are too many to look up in each node.
func (v *view) valueTerms(name string, values []query.Value) [][]lsm.Term {
	if len(values) == 0 || len(values) > 2*lookupCost {
		return nil
	}
	a, ok := v.attribute(name, values[0].Kind)
	if !ok {
		return nil
	}
	terms, _ := a.terms(values)
	return [][]lsm.Term{terms}
}

// anyValue returns one list, the term of any value of an attribute, unless every
// entity has one.
func (v *view) anyValue(name string, kind entity.AttributeKind) [][]lsm.Term {
	a, ok := v.attribute(name, kind)
	switch {
	case !ok || !a.unknown && a.attr < firstName:
		return nil
	case a.unknown:
		return [][]lsm.Term{{}}
	}
	return [][]lsm.Term{{{Space: a.attr}}}
}
