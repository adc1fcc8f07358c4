package query

import (
	"cmp"
	"slices"

	"github.com/varvedb/varve/store/entity"
)

// Match reports whether a version of an entity satisfies a query that passes
// Check. It defines the meaning of the language. It is written for clarity, not
// speed: layouts are tested against it.
func Match(e Expr, v *entity.Entity) bool {
	switch e := e.(type) {
	case All:
		return true
	case And:
		return !slices.ContainsFunc(e.Terms, func(term Expr) bool { return !Match(term, v) })
	case Or:
		return slices.ContainsFunc(e.Terms, func(term Expr) bool { return Match(term, v) })
	case Not:
		return !Match(e.Term, v)
	case Compare:
		order, ok := compareValue(e.Name, e.Value, v)
		return ok && e.Op.satisfiedBy(order)
	case Glob:
		text, ok := v.StringAttribute(e.Name)
		return ok && CompileGlob(e.Pattern).Match(text) != e.Negated
	case In:
		return matchIn(e, v)
	}
	return false
}

func matchIn(e In, v *entity.Entity) bool {
	found := false
	for _, value := range e.Values {
		order, ok := compareValue(e.Name, value, v)
		if !ok {
			return false // the attribute is missing, which "not in" does not match either
		}
		found = found || order == 0
	}
	return found != e.Negated
}

// compareValue compares an attribute with a literal: -1, 0 or 1, and false when
// the entity has no such attribute of the literal's type. Strings compare by
// bytes.
func compareValue(name string, literal Value, v *entity.Entity) (order int, ok bool) {
	switch literal.Kind {
	case entity.String:
		text, ok := v.StringAttribute(name)
		return cmp.Compare(text, literal.Text), ok
	case entity.Numeric:
		number, ok := v.NumericAttribute(name)
		return cmp.Compare(number, literal.Number), ok
	}
	return 0, false
}

// satisfiedBy reports whether the result of a comparison satisfies op.
func (op CompareOp) satisfiedBy(order int) bool {
	switch op {
	case Equal:
		return order == 0
	case NotEqual:
		return order != 0
	case Less:
		return order < 0
	case LessOrEqual:
		return order <= 0
	case Greater:
		return order > 0
	case GreaterOrEqual:
		return order >= 0
	}
	return false
}
