package compact

import (
	"context"
	"sync"

	"github.com/varvedb/varve/internal/lsm"
)

// valueCache keeps which attributes have few values, and these, and what is long. To find that out takes as long as
// some queries, and it is the same for all views between two batches. Did queries not remember what is long, those of
// mix C for the latest of a type would read 29 pages of postings of 400,000 entities, and not 9.
type valueCache struct {
	mu    sync.Mutex
	tree  lsm.Tree            // that has all of this, but for many
	lists map[uint32][]string // by space
	long  lsm.Spans           // parts of spans, enough of them to be long
	many  map[uint32]bool     // that had more than few, at some time: they are not looked at again
}

// of returns the cache of a tree, locked.
func (c *valueCache) of(t *lsm.Tree) *valueCache {
	c.mu.Lock()
	if c.many == nil {
		c.many = map[uint32]bool{}
	}
	if !c.tree.Same(t) || c.lists == nil || len(c.long) > 2*maxPerStatement {
		c.tree, c.lists, c.long = *t, map[uint32][]string{}, nil
	}
	return c
}

// valuesOf returns the values that postings of a space have, or false when they are many.
func (v *view) valuesOf(ctx context.Context, space uint32) ([]string, bool, error) {
	c := v.l.values.of(&v.p.tree)
	values, known := c.lists[space]
	many := c.many[space]
	c.mu.Unlock()
	if known || many {
		return values, known, nil
	}
	values, few, err := v.l.postings.Values(ctx, v.q, &v.p.tree, space, lookupCost)
	if err != nil {
		return nil, false, err
	}
	c = v.l.values.of(&v.p.tree)
	defer c.mu.Unlock()
	if few {
		c.lists[space] = values
	} else {
		c.many[space] = true
	}
	return values, few, nil
}

// long tells whether a part of a span is known to be long.
func (v *view) long(spans []lsm.Span) bool {
	c := v.l.values.of(&v.p.tree)
	defer c.mu.Unlock()
	return len(spans) == 1 && c.long.In(spans[0])
}

// foundLong keeps what was found to be long.
func (v *view) foundLong(s lsm.Span) {
	c := v.l.values.of(&v.p.tree)
	defer c.mu.Unlock()
	if !c.long.In(s) {
		c.long.Add(s)
	}
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
