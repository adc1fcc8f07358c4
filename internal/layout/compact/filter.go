package compact

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/varvedb/varve/internal/bitmap"
	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// errStopped ends what calls a function again and again.
var errStopped = errors.New("stopped")

func stoppedIf(stopped bool) error {
	if stopped {
		return errStopped
	}
	return nil
}

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

// window is ids from low on and below high, and of these the versions that begin in some
// blocks, if bound says which. In a brief one nothing long is looked up.
type window struct {
	low, high int64
	from, to  int64 // first and last block
	brief     bool
}

// brief is a window of everything.
func (v *view) brief() window { return window{high: v.p.nextID, brief: true} }

// filter is an expression as postings answer it, for one window of ids after another. What
// is short is looked up whole, once. Of what is long, values are looked up in each window
// anew, and a range is not looked up at all until so much else was read that it is worth it:
// what is not known of a candidate is compared.
type filter interface {
	// within returns the candidates in a window. Of other ids it says nothing.
	within(ctx context.Context, w window) (candidates, error)

	// learn looks up whole what takes no more than so many pages each, and tells whether
	// anything is known now that was not before.
	learn(ctx context.Context, pages int64) (bool, error)

	// known tells whether windows and learning are of no use any more.
	known() bool

	// cost orders terms by how much is read to look them up.
	cost() int
}

// The costs of filters. What is known costs nothing.
const (
	costKnown = iota
	costValue
	costValues
	costRange
	costOr
	costRest
)

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
	f := and{v: v}
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
		return v.settled(bitmap.Set{}, true)
	}
	if e.Name == entity.AttrKey && !e.Negated {
		return &keys{v: v, values: e.Values}
	}
	attr, ok := v.attribute(e.Name, e.Values[0].Kind)
	switch {
	case !ok:
		return anything{}
	case e.Negated:
		return and{v: v, terms: []filter{v.havingRange(attr, valueRange{exact: true}), not{v, v.havingValues(attr, e.Values)}}}
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

// filterGlob looks for a pattern by its prefix, and tries it on values that
// stand in postings whole.
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

// anything is a filter that postings know nothing of.
type anything struct{ exact bool }

func (f anything) within(context.Context, window) (candidates, error) {
	return everything(f.exact), nil
}
func (f anything) learn(context.Context, int64) (bool, error) { return false, nil }
func (f anything) known() bool                                { return true }
func (f anything) cost() int                                  { return costRest }

// and is a filter of what all terms have.
type and struct {
	v     *view
	terms []filter
}

// How many candidates are rather compared than narrowed down further: by finding out whether
// a term is short, which takes as long as to read so many versions, and by a long one.
const (
	fewEnough = 12
	enough    = 128
)

// enoughIn returns how many candidates are enough in a window: what is long has a page or two
// for each chunk of ids.
func enoughIn(w window) int { return enough + pageVersions*int(bitmap.ChunkOf(w.high-w.low)) }

// within begins with the terms that are cheapest to look up and stops when few candidates
// are left.
func (f and) within(ctx context.Context, w window) (candidates, error) {
	all := everything(true)
	if err := f.probe(ctx); err != nil {
		return all, err
	}
	slices.SortStableFunc(f.terms, func(a, b filter) int { return cmp.Compare(a.cost(), b.cost()) })
	for _, term := range f.terms {
		if l, ok := term.(*holders); ok && l.terms != nil && (all.negated || all.ids.Len() > fewEnough) {
			if err := l.try(ctx, 0); err != nil {
				return all, err
			}
		}
		if !all.negated && !term.known() && all.ids.Len() <= enoughIn(w) {
			all.exact = all.exact && len(all.ids) == 0
			return all, nil
		}
		c, err := term.within(ctx, w)
		if err != nil {
			return all, err
		}
		all = all.and(c)
	}
	return all, nil
}

// probe finds out which terms are short, until one is very short: it leads, and what is
// long is not looked up for it.
func (f and) probe(ctx context.Context) error {
	for _, term := range f.terms {
		l, ok := term.(*holders)
		if !ok || l.terms == nil {
			continue
		}
		if err := l.try(ctx, 0); err != nil || l.short {
			return err
		}
	}
	return nil
}

func (f and) learn(ctx context.Context, pages int64) (bool, error) { return learn(ctx, f.terms, pages) }

// known is also said of what a short term leads.
func (f and) known() bool {
	leads := func(term filter) bool { l, ok := term.(*holders); return ok && l.short }
	return known(f.terms) || slices.ContainsFunc(f.terms, leads)
}

func (f and) cost() int {
	low := costRest
	for _, term := range f.terms {
		low = min(low, term.cost())
	}
	return low
}

func learn(ctx context.Context, terms []filter, pages int64) (learned bool, err error) {
	for _, term := range terms {
		more, err := term.learn(ctx, pages)
		if err != nil {
			return false, err
		}
		learned = learned || more
	}
	return learned, nil
}

func known(terms []filter) bool {
	return !slices.ContainsFunc(terms, func(f filter) bool { return !f.known() })
}

// or is a filter of what any term has.
type or struct{ terms []filter }

// within finds all but what is in none of the terms.
func (f or) within(ctx context.Context, w window) (candidates, error) {
	rest := everything(true)
	for _, term := range f.terms {
		c, err := term.within(ctx, w)
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

func (f or) learn(ctx context.Context, pages int64) (bool, error) { return learn(ctx, f.terms, pages) }
func (f or) known() bool                                          { return known(f.terms) }
func (f or) cost() int                                            { return costOr }

// not is a filter of what a term has not.
type not struct {
	v    *view
	term filter
}

func (f not) within(ctx context.Context, w window) (candidates, error) {
	c, err := f.term.within(ctx, w)
	if err != nil || !c.exact || f.v.past {
		return everything(false), err
	}
	return c.not(), nil
}

func (f not) learn(ctx context.Context, pages int64) (bool, error) { return f.term.learn(ctx, pages) }
func (f not) known() bool                                          { return f.v.past || f.term.known() }
func (f not) cost() int                                            { return costRest }

// keys is a filter of entities by key.
type keys struct {
	v      *view
	values []query.Value
	ids    bitmap.Set // nil until it was looked up
}

func (f *keys) within(ctx context.Context, w window) (candidates, error) {
	if f.ids == nil {
		f.ids = bitmap.Set{}
		var hashes []any
		for _, value := range f.values {
			if key, err := entity.ParseKey(value.Text); err == nil {
				hashes = append(hashes, hashKey(key))
			}
		}
		err := f.v.l.sql.EachIn(ctx, f.v.q, "ids_by_key", hashes, nil, func(rows driver.Rows) error {
			var id int64
			err := rows.Scan(&id)
			if err == nil {
				f.ids.Add(id)
			}
			return err
		})
		if err != nil {
			return candidates{}, err
		}
	}
	return candidates{ids: f.ids.Slice(w.low, w.high)}, nil
}

func (f *keys) learn(context.Context, int64) (bool, error) { return false, nil }
func (f *keys) known() bool                                { return true }
func (f *keys) cost() int                                  { return costKnown }

// holders is a filter of who has a value of an attribute: one of some, or one in a range.
type holders struct {
	v      *view
	terms  []lsm.Term // the values; nil for a range, unless it is of few
	spans  []lsm.Span // all of them
	attr   posted     // of a range
	values valueRange
	exact  bool
	whole  bitmap.Set // nil while it is not known
	short  bool       // whole is enough candidates, or fewer
	tried  int64      // pages that were too few
	many   bool       // a range of so many values that each window would ask for all
}

// settled is a filter of ids that are known.
func (v *view) settled(ids bitmap.Set, exact bool) *holders {
	f := &holders{v: v}
	f.settle(ids, exact)
	return f
}

// settle ends looking up.
func (f *holders) settle(ids bitmap.Set, exact bool) {
	f.whole, f.exact, f.short = ids, exact, ids.Len() <= enoughIn(f.v.brief())
}

// havingValues looks for one of some values.
func (v *view) havingValues(a posted, values []query.Value) *holders {
	terms, exact := a.terms(values)
	return v.havingTerms(terms, exact)
}

// havingTerms looks for one of some terms.
func (v *view) havingTerms(terms []lsm.Term, exact bool) *holders {
	if len(terms) == 0 {
		return v.settled(bitmap.Set{}, exact)
	}
	f := &holders{v: v, terms: slices.Clip(terms), exact: exact}
	if v.past {
		for _, t := range f.terms {
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
func (v *view) havingRange(a posted, r valueRange) *holders {
	if a.unknown || r.none {
		return v.settled(bitmap.Set{}, true)
	}
	return &holders{v: v, spans: a.spans(r, v.past), attr: a, values: r, exact: r.exact && a.prefix == ""}
}

func (f *holders) within(ctx context.Context, w window) (candidates, error) {
	if err := f.try(ctx, 0); err != nil {
		return candidates{}, err
	}
	if err := f.divide(ctx, w); err != nil {
		return candidates{}, err
	}
	switch {
	case f.whole != nil:
		return candidates{ids: f.whole.Slice(w.low, w.high), exact: f.exact}, nil
	case f.terms == nil || w.brief:
		return everything(false), nil
	}
	f.v.long(f.spans, true)
	first, last := bitmap.ChunkOf(w.low), bitmap.ChunkOf(w.high-1)
	spans := make([]lsm.Span, 0, len(f.terms))
	for _, t := range f.terms {
		spans = append(spans, lsm.Part(t, first, last))
	}
	c := candidates{ids: bitmap.Set{}, exact: f.exact}
	_, err := f.v.l.postings.Find(ctx, f.v.q, &f.v.p.tree, lsm.Disjoint(spans), noLimit, func(p *lsm.Posting) error {
		return c.ids.Chunk(p.Chunk).Merge(p.IDs)
	})
	return c, err
}

// divide makes a long range one of values if these are few.
func (f *holders) divide(ctx context.Context, w window) error {
	if f.whole != nil || f.terms != nil || f.many || w.brief || f.attr.prefix != "" {
		return nil
	}
	terms, exact, err := f.v.termsIn(ctx, f.attr, f.values)
	if f.many = terms == nil; err != nil || f.many {
		return err
	}
	if f.terms, f.exact = terms, exact; len(terms) == 0 {
		f.settle(bitmap.Set{}, exact)
	}
	return nil
}

// try looks up whole what takes so many pages, if that is more than were tried; and at least
// what is short, unless it is known to be long. A range without a limit is read page by page:
// it may have as many as the store.
func (f *holders) try(ctx context.Context, pages int64) error {
	v := f.v
	least := int64(v.p.tree.Runs()*len(f.spans) + v.l.opts.Short)
	if f.whole == nil && f.tried == 0 && v.long(f.spans, false) {
		f.tried = least
	}
	if pages = max(pages, least); f.whole != nil || f.tried >= pages {
		return nil
	}
	ids, exact := bitmap.Set{}, f.exact
	add := func(p *lsm.Posting) error {
		if f.values.test != nil {
			match, sure := f.values.test(p.Value)
			exact = exact && sure
			if !match {
				return nil
			}
		}
		return ids.Chunk(p.Chunk).Merge(p.IDs)
	}
	whole, err := true, error(nil)
	if pages == noLimit && f.terms == nil {
		for _, span := range f.spans {
			err = errors.Join(err, v.l.postings.Scan(ctx, v.q, &v.p.tree, nil, span, add))
		}
	} else {
		whole, err = v.l.postings.Find(ctx, v.q, &v.p.tree, f.spans, pages, add)
	}
	if err == nil && whole {
		f.settle(ids, exact)
	}
	f.tried = pages
	return err
}

func (f *holders) learn(ctx context.Context, pages int64) (bool, error) {
	if f.whole != nil || pages < 2*f.tried {
		return false, nil
	}
	err := f.try(ctx, pages)
	return f.whole != nil, err
}

func (f *holders) known() bool { return f.whole != nil }

func (f *holders) cost() int {
	switch {
	case f.whole != nil:
		return costKnown
	case f.terms == nil:
		return costRange
	case len(f.terms) == 1:
		return costValue
	}
	return costValues
}
