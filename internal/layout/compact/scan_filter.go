package compact

import (
	"cmp"
	"context"
	"slices"

	"github.com/varvedb/varve/internal/bitmap"
	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/store/driver"
)

// candidates is what postings tell of the versions in the tables that match an expression: those of ids or, with
// negated, all but these. They may be too many, never too few; exact says that they are the matches. Exact is not
// said of past blocks.
type candidates struct {
	ids     bitmap.Set
	negated bool
	exact   bool
}

// everything returns all entities as candidates. It serves expressions that postings do not cover.
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

// window is ids from low on and below high, and of these the versions that begin in some blocks, if bound says which.
type window struct {
	low, high int64
	from, to  int64 // first and last block
	known     bool  // nothing is looked up for it: what is known whole is all that is said
	whole     bool  // payloads are wanted together with the versions
}

// all is the window of everything, of which is said what is known.
func (v *view) all() window { return window{high: v.p.nextID, known: true} }

// enoughIn returns how many candidates of a window are compared rather than narrowed down by a
// long term, which has a page or two for each chunk of ids.
func enoughIn(w window) int { return minCandidates + pageCost*int(bitmap.ChunkOf(w.high-w.low)) }

// filter is an expression as postings answer it. What is short is looked up whole, once. Of
// what is long, values are looked up in each window again, and ranges are not, until so much was
// read that to look them up whole costs no more: what is not known of a candidate is compared.
type filter interface {
	// find looks up whole what takes no more than so many pages each, or is short.
	find(ctx context.Context, pages int64) error

	// within returns the candidates in a window. Of other ids it says nothing.
	within(ctx context.Context, w window) (candidates, error)

	// cost orders terms by how much is read to look them up.
	cost() int
}

// The costs of filters. Up to costKnown, all that a filter will ever say is known.
const (
	costLeads = iota // it is known, and few have it
	costKnown
	costKeys
	costValue
	costValues
	costRange
	costOr
	costNot
)

func byCost(a, b filter) int { return cmp.Compare(a.cost(), b.cost()) }

// anything is a filter of terms that postings do not cover.
type anything struct{ exact bool }

func (f anything) find(context.Context, int64) error { return nil }
func (f anything) within(context.Context, window) (candidates, error) {
	return everything(f.exact), nil
}
func (f anything) cost() int { return costKnown }

// and is a filter of the entities that all terms have.
type and struct{ terms []filter }

// find stops, of what is short, at what few have: the other terms are compared.
func (f and) find(ctx context.Context, pages int64) error {
	slices.SortStableFunc(f.terms, byCost)
	for _, term := range f.terms {
		if err := term.find(ctx, pages); err != nil || pages == 0 && term.cost() == costLeads {
			return err
		}
	}
	return nil
}

// within begins with the terms that are cheapest to look up and stops when few candidates are left.
func (f and) within(ctx context.Context, w window) (candidates, error) {
	all := everything(true)
	slices.SortStableFunc(f.terms, byCost)
	for _, term := range f.terms {
		if !all.negated && term.cost() > costKnown && all.ids.Len() <= enoughIn(w) {
			all.exact = false
			break
		}
		c, err := term.within(ctx, w)
		if err != nil {
			return all, err
		}
		all = all.and(c)
	}
	all.exact = all.exact || !all.negated && len(all.ids) == 0
	return all, nil
}

func (f and) cost() int {
	cheapest := costKnown
	for _, term := range f.terms {
		switch c := term.cost(); {
		case c == costLeads:
			return c
		case cheapest == costKnown || c > costKnown && c < cheapest:
			cheapest = c
		}
	}
	return cheapest
}

// or is a filter of the entities that any term has.
type or struct{ terms []filter }

func (f or) find(ctx context.Context, pages int64) error {
	for _, term := range f.terms {
		if err := term.find(ctx, pages); err != nil {
			return err
		}
	}
	return nil
}

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

func (f or) cost() int {
	if slices.ContainsFunc(f.terms, func(t filter) bool { return t.cost() > costKnown }) {
		return costOr
	}
	return costKnown
}

// not is a filter of the entities that a term does not have. In the past it narrows
// down nothing.
type not struct {
	v    *view
	term filter
}

func (f not) find(ctx context.Context, pages int64) error {
	if f.v.past {
		return nil
	}
	return f.term.find(ctx, pages)
}

func (f not) within(ctx context.Context, w window) (candidates, error) {
	if f.v.past {
		return everything(false), nil
	}
	c, err := f.term.within(ctx, w)
	if err != nil || !c.exact {
		return everything(false), err
	}
	return c.not(), nil
}

func (f not) cost() int {
	if f.v.past || f.term.cost() <= costKnown {
		return costKnown
	}
	return costNot
}

// lookUps returns the queries that finding what is short of a filter runs, or more of
// them: which terms an and leaves out is only known when the first are read.
func (v *view) lookUps(f filter) (expected []driver.Prefetch) {
	switch f := f.(type) {
	case and:
		for _, term := range f.terms {
			expected = append(expected, v.lookUps(term)...)
		}
	case or:
		return v.lookUps(and(f))
	case not:
		if !v.past {
			return v.lookUps(f.term)
		}
	case *having:
		switch {
		case f.ids != nil || v.long(f.spans):
		case f.hashes != nil:
			return v.l.sql.PrefetchIn("ids_by_key", f.hashes, nil)
		default:
			return v.l.postings.Prefetch(&v.p.tree, f.spans, f.short())
		}
	}
	return expected
}

// having is a filter of the entities with a value of an attribute: one of several,
// or one in a range.
type having struct {
	v      *view
	terms  []lsm.Term // the values; nil for a range, unless it is of few
	spans  []lsm.Span // all of them
	attr   posted     // of a range
	values valueRange
	exact  bool
	ids    bitmap.Set // nil while they are not known
	leads  bool       // they are few
	tried  int64      // pages that were too few
	many   bool       // a range of so many values that each window would ask for all
	hashes []any      // of keys, which entities are asked for by
}

// known is a filter of ids.
func (v *view) known(ids bitmap.Set, exact bool) *having {
	f := &having{v: v}
	f.settle(ids, exact)
	return f
}

// settle records the result of a look-up.
func (f *having) settle(ids bitmap.Set, exact bool) {
	f.ids, f.exact, f.leads = ids, exact, ids.Len() <= enoughIn(f.v.all())
}

func (f *having) cost() int {
	switch {
	case f.leads:
		return costLeads
	case f.ids != nil:
		return costKnown
	case f.hashes != nil:
		return costKeys
	case f.terms == nil:
		return costRange
	case len(f.terms) > 1:
		return costValues
	}
	return costValue
}

// short returns how many pages are read to find out whether it is short.
func (f *having) short() int64 {
	return int64(f.v.p.tree.Runs()*len(f.spans) + f.v.l.opts.Short)
}

// find tries at least what is short, unless it is known to be long, and then twice as many
// pages. A range without a limit is read page by page: it may have as many as the store.
func (f *having) find(ctx context.Context, pages int64) error {
	v := f.v
	if f.hashes != nil && f.ids == nil {
		return f.findKeys(ctx)
	}
	least := f.short()
	if f.ids == nil && f.tried == 0 && v.long(f.spans) {
		f.tried = least
	}
	if pages = max(pages, least); f.ids != nil || pages < 2*f.tried {
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
	var long *lsm.Span
	var err error
	if pages == noLimit && f.terms == nil {
		for _, span := range f.spans {
			for p, err := range v.l.postings.Walk(ctx, v.q, &v.p.tree, span, false) {
				if err == nil {
					err = add(p)
				}
				if err != nil {
					return err
				}
			}
		}
	} else {
		long, err = v.l.postings.Find(ctx, v.q, &v.p.tree, f.spans, pages, add)
	}
	switch f.tried = pages; {
	case err != nil:
	case long == nil:
		f.settle(ids, exact)
	case len(f.spans) == 1: // of lists there are too many
		v.foundLong(*long)
	}
	return err
}

// findKeys finds the entities that were made under keys, or under others with their hashes.
func (f *having) findKeys(ctx context.Context) error {
	list, err := f.v.entitiesOf(ctx, f.hashes)
	ids := bitmap.Set{}
	for _, id := range list {
		ids.Add(id)
	}
	f.settle(ids, false)
	return err
}

func (f *having) within(ctx context.Context, w window) (candidates, error) {
	if f.ids == nil && f.terms == nil && !w.known {
		if err := f.divide(ctx); err != nil {
			return candidates{}, err
		}
	}
	switch {
	case f.ids != nil:
		return candidates{ids: f.ids.Slice(w.low, w.high), exact: f.exact}, nil
	case f.terms == nil || w.known:
		return everything(false), nil
	}
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

// divide makes a range one of values if these are few.
func (f *having) divide(ctx context.Context) error {
	if f.hashes != nil {
		return f.findKeys(ctx)
	}
	if f.many || f.attr.prefix != "" {
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
