package compact

import (
	"context"
	"slices"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// candidates is what postings tell of the versions in the tables that match an
// expression: those of ids or, with negated, all but these. They may be too
// many, never too few; exact says that they are the matches. Exact is not said
// of past blocks.
type candidates struct {
	ids     idSet
	negated bool
	exact   bool
}

// everything is what is said of an expression that postings know nothing of.
func everything(exact bool) candidates { return candidates{ids: idSet{}, negated: true, exact: exact} }

// How many candidates are rather compared than narrowed down further: by a look-up of
// values, which takes as long as to read so many versions, and by longer ones.
const (
	fewEnough = 12
	enough    = 128
)

// search finds the candidates of an expression in a view.
func (v *view) search(ctx context.Context, e query.Expr) (candidates, error) {
	switch e := e.(type) {
	case query.All, nil:
		return everything(true), nil
	case query.And:
		return v.searchAnd(ctx, e.Terms)
	case query.Or:
		return v.searchOr(ctx, e.Terms)
	case query.Not:
		c, err := v.search(ctx, e.Term)
		if err != nil || !c.exact || v.past {
			return everything(false), err
		}
		c.negated = !c.negated
		return c, nil
	case query.Compare:
		return v.searchCompare(ctx, e)
	case query.In:
		return v.searchIn(ctx, e)
	case query.Glob:
		return v.searchGlob(ctx, e)
	}
	return everything(false), nil
}

// searchAnd begins with the terms that are cheapest to look up and stops when
// few candidates are left.
func (v *view) searchAnd(ctx context.Context, terms []query.Expr) (candidates, error) {
	terms = slices.Clone(terms)
	slices.SortStableFunc(terms, func(a, b query.Expr) int { return cost(a) - cost(b) })
	all := everything(true)
	for i, term := range terms {
		if e, ok := term.(query.Compare); ok && isRange(e) && slices.ContainsFunc(terms[:i], sameRange(e)) {
			continue // looked up together with that one
		}
		c, err := v.searchTerm(ctx, term, terms[i+1:])
		if err != nil {
			return all, err
		}
		all = all.and(c)
		if !all.negated && i < len(terms)-1 && all.ids.count() <= enoughFor(terms[i+1]) {
			all.exact = len(all.ids) == 0 && all.exact
			break
		}
	}
	return all, nil
}

// enoughFor returns how many candidates are enough when a term would be next.
func enoughFor(next query.Expr) int {
	if cost(next) <= 2 {
		return fewEnough
	}
	return enough
}

func isRange(e query.Compare) bool { return e.Op != query.Equal && e.Op != query.NotEqual }

// sameRange tells of a term whether it bounds the same attribute.
func sameRange(e query.Compare) func(query.Expr) bool {
	return func(term query.Expr) bool {
		other, ok := term.(query.Compare)
		return ok && isRange(other) && other.Name == e.Name && other.Value.Kind == e.Value.Kind
	}
}

// searchTerm looks up a term of an And: an inequality together with those among
// the rest that bound the same attribute.
func (v *view) searchTerm(ctx context.Context, term query.Expr, rest []query.Expr) (candidates, error) {
	e, ok := term.(query.Compare)
	if !ok || !isRange(e) {
		return v.search(ctx, term)
	}
	attr, ok := v.attribute(e.Name, e.Value.Kind)
	if !ok || attr.address {
		return everything(false), nil
	}
	s, same := bounds(e), sameRange(e)
	for _, other := range rest {
		if same(other) {
			s = s.intersect(bounds(other.(query.Compare)))
		}
	}
	return v.searchRange(ctx, attr, s)
}

func (a candidates) and(b candidates) candidates {
	exact := a.exact && b.exact
	switch {
	case a.negated && b.negated:
		// All but what either leaves out.
		a.ids.union(b.ids)
	case a.negated:
		b.ids.subtract(a.ids)
		a.ids, a.negated = b.ids, false
	case b.negated:
		a.ids.subtract(b.ids)
	default:
		a.ids.intersect(b.ids)
	}
	a.exact = exact
	return a
}

// cost orders terms by how much is read to look them up.
func cost(e query.Expr) int {
	switch e := e.(type) {
	case query.All:
		return 0
	case query.Compare:
		switch {
		case e.Name == entity.AttrKey:
			return 0
		case e.Op == query.Equal:
			return 1
		case e.Op == query.NotEqual:
			return 6
		}
		return 3
	case query.In:
		if e.Negated {
			return 6
		}
		return 2
	case query.Glob:
		return 5
	case query.Or:
		return 4
	case query.And:
		low := 6
		for _, t := range e.Terms {
			low = min(low, cost(t))
		}
		return low
	}
	return 7
}

func (v *view) searchOr(ctx context.Context, terms []query.Expr) (candidates, error) {
	all := candidates{ids: idSet{}, exact: true}
	for _, term := range terms {
		c, err := v.search(ctx, term)
		if err != nil {
			return all, err
		}
		exact := all.exact && c.exact
		switch {
		case all.negated && c.negated:
			all.ids.intersect(c.ids)
		case all.negated:
			all.ids.subtract(c.ids)
		case c.negated:
			c.ids.subtract(all.ids)
			all.ids, all.negated = c.ids, true
		default:
			all.ids.union(c.ids)
		}
		all.exact = exact
		if all.negated && len(all.ids) == 0 && !all.exact {
			return all, nil
		}
	}
	return all, nil
}

// searchCompare looks up a comparison.
func (v *view) searchCompare(ctx context.Context, e query.Compare) (candidates, error) {
	if e.Name == entity.AttrKey {
		if e.Op != query.Equal {
			return everything(false), nil
		}
		return v.searchKeys(ctx, []query.Value{e.Value})
	}
	attr, ok := v.attribute(e.Name, e.Value.Kind)
	if !ok {
		return everything(false), nil
	}
	switch e.Op {
	case query.Equal:
		return v.searchValues(ctx, attr, []query.Value{e.Value})
	case query.NotEqual:
		return v.searchOthers(ctx, attr, []query.Value{e.Value})
	}
	if attr.address {
		return everything(false), nil
	}
	return v.searchRange(ctx, attr, bounds(e))
}

// searchIn looks up a list.
func (v *view) searchIn(ctx context.Context, e query.In) (candidates, error) {
	if len(e.Values) == 0 {
		return candidates{ids: idSet{}, exact: true}, nil
	}
	if e.Name == entity.AttrKey {
		if e.Negated {
			return everything(false), nil
		}
		return v.searchKeys(ctx, e.Values)
	}
	attr, ok := v.attribute(e.Name, e.Values[0].Kind)
	if !ok {
		return everything(false), nil
	}
	if e.Negated {
		return v.searchOthers(ctx, attr, e.Values)
	}
	return v.searchValues(ctx, attr, e.Values)
}

// searchGlob looks up a pattern by its prefix, and tries it on values that
// stand in postings whole.
func (v *view) searchGlob(ctx context.Context, e query.Glob) (candidates, error) {
	attr, ok := v.attribute(e.Name, entity.String)
	if !ok || attr.address {
		return everything(false), nil
	}
	p := query.CompileGlob(e.Pattern)
	r := span{exact: true}
	if !e.Negated {
		if text, ok := p.Literal(); ok {
			return v.searchValues(ctx, attr, []query.Value{query.Text(text)})
		}
		prefix, onlyStar := p.Prefix()
		if prefix != "" {
			r = textSpan(query.PrefixRange(prefix))
		}
		if onlyStar {
			return v.searchRange(ctx, attr, r)
		}
	}
	r.test = func(value []byte) (match, sure bool) {
		if len(value) > wholeText {
			return true, false
		}
		return p.Match(string(value)) != e.Negated, true
	}
	return v.searchRange(ctx, attr, r)
}

// searchKeys finds entities by key.
func (v *view) searchKeys(ctx context.Context, values []query.Value) (candidates, error) {
	c := candidates{ids: idSet{}}
	var hashes []any
	for _, value := range values {
		if key, err := entity.ParseKey(value.Text); err == nil {
			hashes = append(hashes, hashKey(key))
		}
	}
	return c, v.l.eachQuery(ctx, v.q, "ids_by_key", 1, hashes, nil, func(rows driver.Rows) error {
		var id int64
		err := rows.Scan(&id)
		if err == nil {
			c.ids.add(id)
		}
		return err
	})
}
