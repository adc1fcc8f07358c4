package compact

import (
	"cmp"
	"slices"

	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// terms returns where in a node's changes a value is, of all its values. It is
// made when it is first asked for.
func (n *node) terms() map[term][]int32 {
	n.once.Do(func() {
		n.index = make(map[term][]int32, 12*len(n.changes))
		for i := range n.changes {
			c := &n.changes[i]
			if c.newID == 0 {
				continue
			}
			// Torn data is met again, and reported, when it is compared.
			list, _ := c.next.terms()
			for _, t := range list {
				n.index[t] = append(n.index[t], int32(i))
			}
		}
	})
	return n.index
}

// over returns the overlay's versions that may match an expression, highest id
// first: all of them, or those that equalities narrow it down to.
func (v *view) over(e query.Expr) []*version {
	if len(v.overlay.live) <= enough {
		return v.overlay.live
	}
	terms, ok := v.equalities(e)
	if !ok {
		return v.overlay.live
	}
	var found []*version
	for _, n := range v.nodes {
		if n.block > v.at {
			break
		}
		index := n.terms()
		for _, t := range terms {
			for _, i := range index[t] {
				// A version counts when it is still its entity's last.
				if c := &n.changes[i]; v.overlay.versions[c.newID] == &c.next {
					found = append(found, &c.next)
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b *version) int { return cmp.Compare(b.id, a.id) })
	return slices.Compact(found)
}

// equalities returns terms of which every match of an expression has one, or
// false when there are none to be had.
func (v *view) equalities(e query.Expr) ([]term, bool) {
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
		var best []term
		found := false
		for _, t := range e.Terms {
			if terms, ok := v.equalities(t); ok && (!found || len(terms) < len(best)) {
				best, found = terms, true
			}
		}
		return best, found
	case query.Or:
		var all []term
		for _, t := range e.Terms {
			terms, ok := v.equalities(t)
			if !ok {
				return nil, false
			}
			all = append(all, terms...)
		}
		return all, true
	}
	return nil, false
}

// maxTerms bounds how many values are looked up in each node.
const maxTerms = 64

func (v *view) valueTerms(name string, values []query.Value) ([]term, bool) {
	if len(values) == 0 || len(values) > maxTerms || name == entity.AttrKey {
		return nil, false
	}
	a, ok := v.attribute(name, values[0].Kind)
	if !ok {
		return nil, false
	}
	var terms []term
	for _, value := range values {
		if text, ok, _ := a.encode(value); ok && !a.unknown {
			terms = append(terms, term{a.attr, text})
		}
	}
	return terms, true
}
