package compact

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

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
