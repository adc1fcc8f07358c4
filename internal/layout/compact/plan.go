package compact

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/varvedb/varve/internal/bitmap"
	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/store/driver"
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

// plan plans an expression, of whose matches those behind a position are asked for, in the order
// of ids, or all. What is short it looks up.
func (v *view) plan(ctx context.Context, e query.Expr, after *layout.Position) (*plan, error) {
	p := &plan{expr: e, below: math.MaxInt64, filter: v.filter(e), match: newMatcher(e, v.names)}
	err := v.expect(ctx, p.filter, after)
	if err == nil && after != nil {
		p.below, err = v.idAt(ctx, after)
	}
	if err == nil {
		p.window, err = v.bound(ctx, e, window{high: p.below})
	}
	if err == nil && p.window.low < p.window.high {
		err = p.filter.find(ctx, 0)
	}
	return p, err
}

// expect has a server answer together what idAt and find ask it one by one.
func (v *view) expect(ctx context.Context, f filter, after *layout.Position) error {
	r, ok := v.q.(driver.Remote)
	if !ok {
		return nil
	}
	expected := v.lookUps(f)
	if after != nil {
		hashes := []any{hashKey(after.Key)}
		ids, err := v.recentIDs(ctx, hashes)
		if err != nil {
			return err
		}
		expected = append(expected, v.l.sql.PrefetchIn(versionsByKey[0], hashes, nil)...)
		expected = append(expected, v.l.sql.PrefetchIn(versionsByID[0], ids, nil)...)
	}
	return r.Expect(ctx, expected)
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
	for _, key := range parseKeys(values) {
		f.hashes = append(f.hashes, hashKey(key))
	}
	if f.hashes == nil {
		return v.known(bitmap.Set{}, true)
	}
	return f
}

// parseKeys returns the keys among values. An entity has none of the other values.
func parseKeys(values []query.Value) (keys []entity.Key) {
	for _, value := range values {
		if key, err := entity.ParseKey(value.Text); err == nil {
			keys = append(keys, key)
		}
	}
	return keys
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

// Ids are given in the order of sequences, which begin with the block of creation. So a comparison of either bounds
// the ids that may match, and one of the block of the last change, which is no earlier, bounds them above. What was
// changed in other blocks is passed over by the database.

// reach is the sequences from low on and up to high, and the blocks of the last change from one on and up to another.
type reach struct{ low, high, from, to uint64 }

// reachOf returns what the versions that match an expression are within.
func reachOf(e query.Expr) reach {
	all := reach{high: math.MaxUint64, to: math.MaxInt64}
	switch e := e.(type) {
	case query.And:
		for _, term := range e.Terms {
			part := reachOf(term)
			all.low, all.high = max(all.low, part.low), min(all.high, part.high)
			all.from, all.to = max(all.from, part.from), min(all.to, part.to)
		}
	case query.Compare:
		first, last := uint64(0), uint64(math.MaxUint64)
		switch n := e.Value.Number; e.Op {
		case query.NotEqual:
		case query.Less, query.LessOrEqual:
			last = n
		case query.Equal:
			first, last = n, n
		default:
			first = n
		}
		switch e.Name {
		case entity.AttrSequence:
			all.low, all.high = first, last
		case entity.AttrCreatedAtBlock:
			all.low, all.high = entity.MakeSequence(min(first, entity.MaxBlockNumber), 0, 0), lastSequence(last)
		case entity.AttrLastModifiedAtBlock:
			all.from, all.to, all.high = min(first, math.MaxInt64), min(last, math.MaxInt64), lastSequence(last)
		}
	}
	return all
}

// lastSequence returns the highest sequence of a block.
func lastSequence(block uint64) uint64 {
	if block >= entity.MaxBlockNumber {
		return math.MaxUint64
	}
	return entity.MakeSequence(block+1, 0, 0) - 1
}

// bound returns the part of a window in which an expression can match.
func (v *view) bound(ctx context.Context, e query.Expr, w window) (window, error) {
	s := reachOf(e)
	w.high, w.from, w.to = min(w.high, v.p.nextID), int64(s.from), int64(s.to)
	if v.p.unordered != 0 {
		return w, nil
	}
	var err error
	if s.high < v.p.lastSequence {
		if _, w.high, err = v.bisect(ctx, s.high+1, w.low, w.high); err != nil {
			return w, err
		}
	}
	if s.low > 0 {
		w.low, _, err = v.bisect(ctx, s.low, w.low, w.high)
	}
	return w, err
}

// bisect narrows a range of ids: sequences are lower than the given one below low,
// and from high on they are not. Ids without a current version narrow down nothing,
// because their entities have ended, and can still be visible at a past block.
func (v *view) bisect(ctx context.Context, sequence uint64, low, high int64) (int64, int64, error) {
	for from := low; high-from > minCandidates; { // below from no current version is left to compare
		// The entity in the middle or, when that has ended, the one before it.
		middle := from + (high-from)/2
		next := middle + 1 // of from, unless the entity is behind the bound
		err := v.l.versions(ctx, v.q, "highest_current", []any{middle + 1, from}, func(r *version) error {
			rec, err := parse(r.data)
			if rec.sequence >= sequence {
				high, next = r.id, from
			} else {
				low = r.id + 1
			}
			return err
		})
		if err != nil {
			return low, high, err
		}
		from = next
	}
	return low, high, nil
}

// posted is an attribute as postings know it.
type posted struct {
	attr    uint32
	prefix  string // of its values, when its name has no number
	kind    entity.AttributeKind
	address bool // values are addresses, stored as bytes
	unknown bool // no entity has it
}

// synthetic attributes have postings of their own; others of ours have none.
var synthetics = map[string]posted{
	entity.AttrOwner:               {attr: attrOwner, kind: entity.String, address: true},
	entity.AttrCreator:             {attr: attrCreator, kind: entity.String, address: true},
	entity.AttrExpiration:          {attr: attrExpiration, kind: entity.Numeric},
	entity.AttrLastModifiedAtBlock: {attr: attrModified, kind: entity.Numeric},
}

// attribute returns how postings know an attribute, or false when they do not.
func (v *view) attribute(name string, kind entity.AttributeKind) (posted, bool) {
	if a, ok := synthetics[name]; ok {
		return a, kind == a.kind
	}
	if _, ours := entity.SyntheticKind(name); ours {
		return posted{}, false
	}
	names := stringName
	if kind == entity.Numeric {
		names = numberName
	}
	if id := v.names.id(names, name); id != 0 {
		return posted{attr: uint32(id), kind: kind}, true
	}
	if v.p.names-firstName+1 < maxNames {
		return posted{unknown: true, kind: kind}, true
	}
	return posted{attr: attrUnnamed, prefix: string(spelledName(names, name)), kind: kind}, true
}

// terms returns the terms of values, and whether nothing else has the same. Values that
// none can be equal to have no term.
func (a *posted) terms(values []query.Value) (terms []lsm.Term, exact bool) {
	exact = a.prefix == ""
	if a.unknown {
		return nil, true
	}
	terms = make([]lsm.Term, 0, len(values))
	for _, value := range values {
		t := lsm.Term{Space: a.attr}
		switch {
		case a.address:
			address, err := entity.ParseAddress(value.Text)
			if err != nil || address.String() != value.Text {
				continue
			}
			t.Value = string(address[:])
		case a.kind == entity.Numeric:
			t.Value = a.prefix + encodeNumber(value.Number)
		default:
			t.Value = a.prefix + encodeText([]byte(value.Text))
			exact = exact && len(value.Text) <= wholeText
		}
		terms = append(terms, t)
	}
	return terms, exact
}

// spans returns where the values of a range lie, those of the past too if they are wanted.
func (a *posted) spans(r valueRange, withPast bool) []lsm.Span {
	hi := a.prefix + r.hi
	if r.hi == "" {
		hi = afterPrefix(a.prefix)
	}
	spans := []lsm.Span{lsm.Within(a.attr, a.prefix+r.lo, hi)}
	if withPast {
		spans = append(spans, lsm.Within(a.attr|past, a.prefix+r.lo, hi))
	}
	return spans
}

// valueRange is a range of encoded values.
type valueRange struct {
	lo, hi string // from lo on, below hi; an empty hi is no bound
	none   bool   // it is empty
	exact  bool   // it holds nothing else
	test   func(value []byte) (match, sure bool)
}

// bounds returns the range of an inequality.
func bounds(e query.Compare) valueRange {
	value := e.Value.Text
	if e.Value.Kind == entity.Numeric {
		value = encodeNumber(e.Value.Number)
	}
	switch next := value + "\x00"; e.Op {
	case query.Less:
		r := textRange("", value)
		r.none = value == ""
		return r
	case query.LessOrEqual:
		return textRange("", next)
	case query.Greater:
		return textRange(next, "")
	default:
		return textRange(value, "")
	}
}

// intersect returns what is within both ranges, neither of which tests values.
func (r valueRange) intersect(other valueRange) valueRange {
	r.lo = max(r.lo, other.lo)
	if r.hi == "" || other.hi != "" && other.hi < r.hi {
		r.hi = other.hi
	}
	r.none = r.none || other.none || r.hi != "" && r.lo >= r.hi
	r.exact = r.exact && other.exact
	return r
}

// textRange returns the range of strings from lo on and below hi. Of long strings only a prefix keeps its place.
func textRange(lo, hi string) valueRange {
	r := valueRange{lo: lo, hi: hi, exact: true}
	if len(lo) > prefixText {
		r.lo, r.exact = lo[:prefixText], false
	}
	if len(hi) > prefixText {
		r.hi, r.exact = afterPrefix(hi[:prefixText]), false
	}
	return r
}

// afterPrefix returns the first string above everything that begins with a prefix, or "" when there is none.
func afterPrefix(prefix string) string {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < 0xff {
			b[i]++
			return string(b[:i+1])
		}
	}
	return ""
}

// noLimit is a limit that no result reaches and every engine takes.
const noLimit = 1 << 60

// matcher reports whether a version satisfies a query, as query.Match does of an entity, without making one.
type matcher func(v *version, r *record) bool

// newMatcher compiles a query against the names of a view.
func newMatcher(e query.Expr, n *names) matcher {
	switch e := e.(type) {
	case query.And:
		terms := newMatchers(e.Terms, n)
		return func(v *version, r *record) bool {
			return !slices.ContainsFunc(terms, func(m matcher) bool { return !m(v, r) })
		}
	case query.Or:
		terms := newMatchers(e.Terms, n)
		return func(v *version, r *record) bool {
			return slices.ContainsFunc(terms, func(m matcher) bool { return m(v, r) })
		}
	case query.Not:
		term := newMatcher(e.Term, n)
		return func(v *version, r *record) bool { return !term(v, r) }
	case query.Compare:
		return newComparison(e, n)
	case query.Glob:
		pattern := query.CompileGlob(e.Pattern)
		return textMatcher(e.Name, n, func(text []byte) bool { return pattern.Match(string(text)) != e.Negated })
	case query.In:
		return newMember(e, n)
	case query.All, nil:
		return func(*version, *record) bool { return true }
	}
	return func(*version, *record) bool { return false }
}

func newMatchers(terms []query.Expr, n *names) []matcher {
	list := make([]matcher, len(terms))
	for i, t := range terms {
		list[i] = newMatcher(t, n)
	}
	return list
}

func newComparison(e query.Compare, n *names) matcher {
	holds := operators[e.Op]
	if e.Value.Kind == entity.Numeric {
		return numberMatcher(e.Name, n, func(number uint64) bool { return holds(cmp.Compare(number, e.Value.Number)) })
	}
	value := []byte(e.Value.Text)
	return textMatcher(e.Name, n, func(text []byte) bool { return holds(bytes.Compare(text, value)) })
}

var operators = map[query.CompareOp]func(order int) bool{
	query.Equal:          func(order int) bool { return order == 0 },
	query.NotEqual:       func(order int) bool { return order != 0 },
	query.Less:           func(order int) bool { return order < 0 },
	query.LessOrEqual:    func(order int) bool { return order <= 0 },
	query.Greater:        func(order int) bool { return order > 0 },
	query.GreaterOrEqual: func(order int) bool { return order >= 0 },
}

func newMember(e query.In, n *names) matcher {
	if len(e.Values) == 0 {
		return func(*version, *record) bool { return false }
	}
	if e.Values[0].Kind == entity.Numeric {
		set := map[uint64]bool{}
		for _, v := range e.Values {
			set[v.Number] = true
		}
		return numberMatcher(e.Name, n, func(number uint64) bool { return set[number] != e.Negated })
	}
	set := map[string]bool{}
	for _, v := range e.Values {
		set[v.Text] = true
	}
	return textMatcher(e.Name, n, func(text []byte) bool { return set[string(text)] != e.Negated })
}

// textMatcher tests the string attribute of a name; versions without it do not match.
func textMatcher(name string, n *names, test func(text []byte) bool) matcher {
	switch name {
	case entity.AttrKey:
		return func(v *version, _ *record) bool { return test([]byte(v.key.String())) }
	case entity.AttrOwner:
		return func(_ *version, r *record) bool { return test([]byte(entity.Address(r.owner).String())) }
	case entity.AttrCreator:
		return func(_ *version, r *record) bool { return test([]byte(entity.Address(r.creator).String())) }
	}
	id := n.id(stringName, name)
	return func(_ *version, r *record) bool {
		a, ok := r.find(stringName, id, name)
		return ok && test(a.text)
	}
}

// numberMatcher is textMatcher of numeric attributes.
func numberMatcher(name string, n *names, test func(number uint64) bool) matcher {
	if get := synthetic(name); get != nil {
		return func(v *version, r *record) bool { return test(get(v, r)) }
	}
	id := n.id(numberName, name)
	return func(_ *version, r *record) bool {
		a, ok := r.find(numberName, id, name)
		return ok && test(a.number)
	}
}

// synthetic returns how to read a synthetic numeric attribute, or nil.
func synthetic(name string) func(v *version, r *record) uint64 {
	switch name {
	case entity.AttrExpiration:
		return func(v *version, _ *record) uint64 { return uint64(v.expires) }
	case entity.AttrLastModifiedAtBlock:
		return func(v *version, _ *record) uint64 { return uint64(v.from) }
	case entity.AttrSequence:
		return func(_ *version, r *record) uint64 { return r.sequence }
	case entity.AttrCreatedAtBlock, entity.AttrTxIndex, entity.AttrOpIndex:
		return func(_ *version, r *record) uint64 {
			e := entity.Entity{Sequence: r.sequence}
			n, _ := e.NumericAttribute(name)
			return n
		}
	}
	return nil
}

// find returns the attribute of a kind and name, whose number is id or 0.
func (r *record) find(kind nameKind, id int64, name string) (found attribute, ok bool) {
	_ = r.each(func(a *attribute) bool {
		if a.kind == kind && a.id == id && (id != 0 || string(a.spelled) == name) {
			found, ok = *a, true
		}
		return !ok && a.kind <= kind
	})
	return found, ok
}
