package compact

import (
	"context"
	"slices"

	"github.com/varvedb/varve/internal/bitmap"
	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// A query is planned (plan*.go), scanned (scan*.go) and emitted (emit*.go), in this order.

// plan is what is known of a query before versions are read: within which ids and blocks
// matches lie, which postings tell of them, and what versions are compared with.
type plan struct {
	expr   query.Expr
	below  int64  // an id that matches are below
	window window // that those in the tables lie within
	filter filter
	match  matcher
}

// plan plans an expression, of whose matches those below an id are asked for. What is short it looks up.
func (v *view) plan(ctx context.Context, e query.Expr, below int64) (*plan, error) {
	w, err := v.bound(ctx, e, window{high: below})
	p := &plan{expr: e, below: below, window: w, filter: v.filter(e), match: newMatcher(e, v.names)}
	if err == nil && w.low < w.high {
		err = p.filter.find(ctx, 0)
	}
	return p, err
}

// filter compiles an expression.
func (v *view) filter(e query.Expr) filter {
	switch e := e.(type) {
	case query.All, nil:
		return anything{exact: true}
	case query.And:
		return v.filterAnd(e.Terms)
	case query.Or:
		f := or{}
		for _, term := range e.Terms {
			f.terms = append(f.terms, v.filter(term))
		}
		return f
	case query.Not:
		return not{v, v.filter(e.Term)}
	case query.Compare:
		return v.filterCompare(e)
	case query.In:
		return v.filterIn(e)
	case query.Glob:
		return v.filterGlob(e)
	}
	return anything{}
}

// filterAnd makes one range of the inequalities that bound the same attribute.
func (v *view) filterAnd(terms []query.Expr) filter {
	f := and{}
	for i, term := range terms {
		e, ok := term.(query.Compare)
		switch {
		case !ok || !isRange(e):
			f.terms = append(f.terms, v.filter(term))
		case !slices.ContainsFunc(terms[:i], sameRange(e)):
			f.terms = append(f.terms, v.filterRange(e, terms[i+1:]))
		}
	}
	return f
}

func isRange(e query.Compare) bool { return e.Op != query.Equal && e.Op != query.NotEqual }

// sameRange tells of a term whether it bounds the same attribute.
func sameRange(e query.Compare) func(query.Expr) bool {
	return func(term query.Expr) bool {
		other, ok := term.(query.Compare)
		return ok && isRange(other) && other.Name == e.Name && other.Value.Kind == e.Value.Kind
	}
}

func (v *view) filterCompare(e query.Compare) filter {
	switch e.Op {
	case query.Equal, query.NotEqual:
		return v.filterIn(query.In{Name: e.Name, Values: []query.Value{e.Value}, Negated: e.Op == query.NotEqual})
	}
	return v.filterRange(e, nil)
}

// filterIn looks for one of some values, or for any other.
func (v *view) filterIn(e query.In) filter {
	if len(e.Values) == 0 {
		return v.known(bitmap.Set{}, true)
	}
	if e.Name == entity.AttrKey && !e.Negated {
		return v.havingKeys(e.Values)
	}
	attr, ok := v.attribute(e.Name, e.Values[0].Kind)
	switch {
	case !ok:
		return anything{}
	case e.Negated:
		return and{[]filter{v.havingRange(attr, valueRange{exact: true}), not{v, v.havingValues(attr, e.Values)}}}
	}
	return v.havingValues(attr, e.Values)
}

// filterRange looks for an inequality; more are terms that match as well.
func (v *view) filterRange(e query.Compare, more []query.Expr) filter {
	attr, ok := v.attribute(e.Name, e.Value.Kind)
	if !ok || attr.address || e.Name == entity.AttrKey {
		return anything{}
	}
	r, same := bounds(e), sameRange(e)
	for _, other := range more {
		if same(other) {
			r = r.intersect(bounds(other.(query.Compare)))
		}
	}
	return v.havingRange(attr, r)
}

// filterGlob looks for a pattern by its prefix, and tries it on values that stand in postings whole.
func (v *view) filterGlob(e query.Glob) filter {
	attr, ok := v.attribute(e.Name, entity.String)
	if !ok || attr.address {
		return anything{}
	}
	p := query.CompileGlob(e.Pattern)
	r := valueRange{exact: true}
	if !e.Negated {
		if text, ok := p.Literal(); ok {
			return v.havingValues(attr, []query.Value{query.Text(text)})
		}
		prefix, onlyStar := p.Prefix()
		if prefix != "" {
			r = textRange(query.PrefixRange(prefix))
		}
		if onlyStar {
			return v.havingRange(attr, r)
		}
	}
	r.test = func(value []byte) (match, sure bool) {
		if len(value) > wholeText {
			return true, false
		}
		return p.Match(string(value)) != e.Negated, true
	}
	return v.havingRange(attr, r)
}

// havingKeys looks for the entities of keys.
func (v *view) havingKeys(values []query.Value) *having {
	f := &having{v: v}
	for _, value := range values {
		if key, err := entity.ParseKey(value.Text); err == nil {
			f.hashes = append(f.hashes, hashKey(key))
		}
	}
	if f.hashes == nil {
		return v.known(bitmap.Set{}, true)
	}
	return f
}

// havingValues looks for one of some values.
func (v *view) havingValues(a posted, values []query.Value) *having {
	return v.havingTerms(a.terms(values))
}

// havingTerms looks for one of some terms.
func (v *view) havingTerms(terms []lsm.Term, exact bool) *having {
	if len(terms) == 0 {
		return v.known(bitmap.Set{}, exact)
	}
	f := &having{v: v, terms: slices.Clip(terms), exact: exact}
	if v.past {
		for _, t := range terms {
			f.terms = append(f.terms, lsm.Term{Space: t.Space | past, Value: t.Value})
		}
	}
	f.spans = make([]lsm.Span, 0, len(f.terms))
	for _, t := range f.terms {
		f.spans = append(f.spans, lsm.Of(t))
	}
	f.spans = lsm.Disjoint(f.spans)
	return f
}

// havingRange looks for a value within a range.
func (v *view) havingRange(a posted, r valueRange) *having {
	if a.unknown || r.none {
		return v.known(bitmap.Set{}, true)
	}
	return &having{v: v, spans: a.spans(r, v.past), attr: a, values: r, exact: r.exact && a.prefix == ""}
}
