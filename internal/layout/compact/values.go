package compact

import (
	"context"
	"sync"

	"github.com/varvedb/varve/internal/lsm"
)

// fewValues is how many values an attribute may have for a range of them to be looked up
// value by value, in windows.
const fewValues = 32

// valueCache keeps which attributes have few values, and these. To find them out takes as
// long as some queries, and it is the same for all views between two batches.
type valueCache struct {
	mu    sync.Mutex
	lists map[uint32]valueList // by space
}

type valueList struct {
	tree   lsm.Tree // that has them
	values []string
	many   bool // more than few, at some time: it is not looked at again
}

// valuesOf returns the values that postings of a space have, or false when they are many.
func (v *view) valuesOf(ctx context.Context, space uint32) ([]string, bool, error) {
	c := &v.l.values
	c.mu.Lock()
	list, ok := c.lists[space]
	c.mu.Unlock()
	if ok && (list.many || list.tree.Same(&v.p.tree)) {
		return list.values, !list.many, nil
	}
	values, few, err := v.l.postings.Values(ctx, v.q, &v.p.tree, space, fewValues)
	if err != nil {
		return nil, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lists == nil {
		c.lists = map[uint32]valueList{}
	}
	c.lists[space] = valueList{v.p.tree, values, !few}
	return values, few, nil
}

// termsIn returns the terms within a range, nil when the attribute has many, and whether
// they are all that match and nothing else.
func (v *view) termsIn(ctx context.Context, a posted, r valueRange) (terms []lsm.Term, exact bool, err error) {
	spaces := []uint32{a.attr}
	if v.past {
		spaces = append(spaces, a.attr|past)
	}
	terms, exact = []lsm.Term{}, r.exact
	for _, space := range spaces {
		values, few, err := v.valuesOf(ctx, space)
		if err != nil || !few {
			return nil, false, err
		}
		for _, value := range values {
			match, sure := true, true
			if r.test != nil {
				match, sure = r.test([]byte(value))
			}
			if match && value >= r.lo && (r.hi == "" || value < r.hi) {
				terms, exact = append(terms, lsm.Term{Space: space, Value: value}), exact && sure
			}
		}
	}
	return terms, exact, nil
}
