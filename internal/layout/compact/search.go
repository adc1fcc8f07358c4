package compact

import (
	"context"
	"slices"

	"github.com/varvedb/varve/internal/bitmap"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// candidates is what postings tell of the versions in the tables that match an
// expression: those of ids or, with negated, all but these. They may be too
// many, never too few; exact says that they are the matches. Exact is not said
// of past blocks.
type candidates struct {
	ids     bitmap.Set
	negated bool
	exact   bool
}

// everything is what is said of an expression that postings know nothing of.
func everything(exact bool) candidates {
	return candidates{ids: bitmap.Set{}, negated: true, exact: exact}
}

// not returns all but these.
func (c candidates) not() candidates {
	c.negated = !c.negated
	return c
}

// and returns what is in both, which must not be used after.
func (c candidates) and(other candidates) candidates {
	exact := c.exact && other.exact
	switch {
	case c.negated && other.negated:
		c.ids.Union(other.ids) // what either leaves out
	case c.negated:
		other.ids.Subtract(c.ids)
		c = other
	case other.negated:
		c.ids.Subtract(other.ids)
	default:
		c.ids.Intersect(other.ids)
	}
	c.exact = exact
	return c
}

// How many candidates are rather compared than narrowed down further: by a look-up of
// values, which takes as long as to read so many versions, and by longer ones.
const (
	fewEnough = 12
	enough    = 128
)

// enoughFor returns how many candidates are enough when a term would be next.
func enoughFor(term query.Expr) int {
	if cost(term) <= 2 {
		return fewEnough
	}
	return enough
}

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
		return c.not(), nil
	case query.Compare:
		return v.searchCompare(ctx, e, nil)
	case query.In:
		return v.searchIn(ctx, e)
	case query.Glob:
		return v.searchGlob(ctx, e)
	}
	return everything(false), nil
}

// searchAnd begins with the terms that are cheapest to look up and stops when
// few candidates are left. An inequality is looked up together with those that bound the
// same attribute.
func (v *view) searchAnd(ctx context.Context, terms []query.Expr) (candidates, error) {
	terms = slices.Clone(terms)
	slices.SortStableFunc(terms, func(a, b query.Expr) int { return cost(a) - cost(b) })
	all := everything(true)
	for i, term := range terms {
		var c candidates
		var err error
		if e, ok := term.(query.Compare); !ok || !isRange(e) {
			c, err = v.search(ctx, term)
		} else if slices.ContainsFunc(terms[:i], sameRange(e)) {
			continue
		} else {
			c, err = v.searchCompare(ctx, e, terms[i+1:])
		}
		if err != nil {
			return all, err
		}
		all = all.and(c)
		if !all.negated && i < len(terms)-1 && all.ids.Len() <= enoughFor(terms[i+1]) {
			all.exact = len(all.ids) == 0 && all.exact
			break
		}
	}
	return all, nil
}

func isRange(e query.Compare) bool { return e.Op != query.Equal && e.Op != query.NotEqual }

// sameRange tells of a term whether it bounds the same attribute.
func sameRange(e query.Compare) func(query.Expr) bool {
	return func(term query.Expr) bool {
		other, ok := term.(query.Compare)
		return ok && isRange(other) && other.Name == e.Name && other.Value.Kind == e.Value.Kind
	}
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

// searchOr finds all but what is in none of the terms.
func (v *view) searchOr(ctx context.Context, terms []query.Expr) (candidates, error) {
	rest := everything(true)
	for _, term := range terms {
		c, err := v.search(ctx, term)
		if err != nil {
			return c, err
		}
		rest = rest.and(c.not())
		if !rest.negated && len(rest.ids) == 0 && !rest.exact {
			break
		}
	}
	return rest.not(), nil
}

// searchCompare looks up a comparison. Of an inequality, more are terms that match as
// well: those that bound the same attribute bound what is looked up.
func (v *view) searchCompare(ctx context.Context, e query.Compare, more []query.Expr) (candidates, error) {
	values := []query.Value{e.Value}
	if e.Name == entity.AttrKey {
		if e.Op != query.Equal {
			return everything(false), nil
		}
		return v.searchKeys(ctx, values)
	}
	attr, ok := v.attribute(e.Name, e.Value.Kind)
	switch {
	case !ok || isRange(e) && attr.address:
		return everything(false), nil
	case e.Op == query.Equal:
		return v.searchValues(ctx, attr, values)
	case e.Op == query.NotEqual:
		return v.searchOthers(ctx, attr, values)
	}
	r, same := bounds(e), sameRange(e)
	for _, other := range more {
		if same(other) {
			r = r.intersect(bounds(other.(query.Compare)))
		}
	}
	return v.searchRange(ctx, attr, r)
}

// searchIn looks up a list.
func (v *view) searchIn(ctx context.Context, e query.In) (candidates, error) {
	if len(e.Values) == 0 {
		return candidates{ids: bitmap.Set{}, exact: true}, nil
	}
	if e.Name == entity.AttrKey && !e.Negated {
		return v.searchKeys(ctx, e.Values)
	}
	attr, ok := v.attribute(e.Name, e.Values[0].Kind)
	switch {
	case !ok:
		return everything(false), nil
	case e.Negated:
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
	r := valueRange{exact: true}
	if !e.Negated {
		if text, ok := p.Literal(); ok {
			return v.searchValues(ctx, attr, []query.Value{query.Text(text)})
		}
		prefix, onlyStar := p.Prefix()
		if prefix != "" {
			r = textRange(query.PrefixRange(prefix))
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
	c := candidates{ids: bitmap.Set{}}
	var hashes []any
	for _, value := range values {
		if key, err := entity.ParseKey(value.Text); err == nil {
			hashes = append(hashes, hashKey(key))
		}
	}
	return c, v.l.sql.EachIn(ctx, v.q, "ids_by_key", hashes, nil, func(rows driver.Rows) error {
		var id int64
		err := rows.Scan(&id)
		if err == nil {
			c.ids.Add(id)
		}
		return err
	})
}
