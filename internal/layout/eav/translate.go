package eav

import (
	"fmt"
	"math"
	"strings"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// translator turns a query tree into nodes.
type translator struct {
	dialect    dialect
	conditions int // on attributes, so far
	err        error
}

// terms translates the terms of an && or ||.
func (t *translator) terms(terms []query.Expr) []node {
	list := make([]node, len(terms))
	for i, term := range terms {
		list[i] = t.expr(term)
	}
	return list
}

func (t *translator) expr(e query.Expr) node {
	switch e := e.(type) {
	case query.All:
		return always
	case query.And:
		return conjoin(t.terms(e.Terms))
	case query.Or:
		return disjunction(flatten[disjunction](t.terms(e.Terms)))
	case query.Not:
		return negation{t.expr(e.Term)}
	case query.Compare:
		return t.compare(e)
	case query.In:
		return t.in(e)
	case query.Glob:
		return t.glob(e)
	}
	t.err = fmt.Errorf("query: unknown node %T", e)
	return never
}

var operators = map[query.CompareOp]string{
	query.Equal: "=", query.NotEqual: "<>",
	query.Less: "<", query.LessOrEqual: "<=",
	query.Greater: ">", query.GreaterOrEqual: ">=",
}

func (t *translator) compare(e query.Compare) node {
	indexed := e.Op != query.NotEqual
	switch {
	case e.Name == entity.AttrLastModifiedAtBlock:
		return compareBlock(e)
	case e.Name == entity.AttrKey && e.Op == query.Equal:
		return keyIn([]query.Value{e.Value})
	case e.Value.Kind == entity.Numeric:
		return t.attribute("numeric_attributes", e.Name, compared(operators[e.Op], e.Value.Number, indexed))
	}
	return t.compareText(e)
}

// compareBlock compares the version's first block, which is a signed column of
// the payload's row.
func compareBlock(e query.Compare) node {
	switch {
	case e.Value.Number <= math.MaxInt64:
		return version{test: " " + operators[e.Op] + " ?", args: []any{int64(e.Value.Number)}}
	case e.Op == query.NotEqual || e.Op == query.Less || e.Op == query.LessOrEqual:
		return always
	}
	return never
}

// compareText compares a string attribute. On an engine whose text has no NUL,
// a literal with one lies between the text before the NUL and everything that
// is longer.
func (t *translator) compareText(e query.Compare) node {
	op, text := operators[e.Op], e.Value.Text
	if cut := strings.IndexByte(text, 0); cut >= 0 && !t.dialect.textNUL {
		text = text[:cut]
		switch e.Op {
		case query.Equal:
			return never
		case query.NotEqual:
			return t.attribute("string_attributes", e.Name)
		case query.Less, query.LessOrEqual:
			op = "<="
		default:
			op = ">"
		}
	}
	return t.attribute("string_attributes", e.Name, compared(op, text, e.Op != query.NotEqual))
}

func (t *translator) in(e query.In) node {
	switch {
	case e.Name == entity.AttrLastModifiedAtBlock:
		return blockIn(e)
	case e.Name == entity.AttrKey && !e.Negated:
		return keyIn(e.Values)
	case e.Values[0].Kind == entity.Numeric:
		values := make([]any, len(e.Values))
		for i, v := range e.Values {
			values[i] = v.Number
		}
		return t.attributeIn("numeric_attributes", e, values)
	}
	values := make([]any, 0, len(e.Values))
	for _, v := range e.Values {
		if t.dialect.textNUL || strings.IndexByte(v.Text, 0) < 0 {
			values = append(values, v.Text)
		}
	}
	return t.attributeIn("string_attributes", e, values)
}

func (t *translator) attributeIn(table string, e query.In, values []any) node {
	switch {
	case len(values) == 0 && e.Negated:
		return t.attribute(table, e.Name)
	case len(values) == 0:
		return never
	}
	return t.attribute(table, e.Name, listed(values, e.Negated))
}

func blockIn(e query.In) node {
	values := make([]any, 0, len(e.Values))
	for _, v := range e.Values {
		if v.Number <= math.MaxInt64 {
			values = append(values, int64(v.Number))
		}
	}
	switch {
	case len(values) == 0 && e.Negated:
		return always
	case len(values) == 0:
		return never
	case e.Negated:
		return version{test: " NOT IN " + placeholders(len(values)), args: values}
	}
	return version{test: " IN " + placeholders(len(values)), args: values}
}

// keyIn finds entities by their keys rather than by the $key attribute.
func keyIn(values []query.Value) node {
	keys := make([]any, 0, len(values))
	for _, v := range values {
		if key, err := entity.ParseKey(v.Text); err == nil && key.String() == v.Text {
			keys = append(keys, key[:])
		}
	}
	if len(keys) == 0 {
		return never
	}
	return version{byKey: true, test: " IN " + placeholders(len(keys)), args: keys}
}

func (t *translator) glob(e query.Glob) node {
	if strings.IndexByte(e.Pattern, 0) >= 0 && !t.dialect.textNUL {
		t.err = fmt.Errorf("%w: a NUL in a pattern, on an engine whose text cannot hold one", driver.ErrUnsupported)
		return never
	}
	conditions, err := t.dialect.glob(e.Pattern)
	if err != nil {
		t.err = err
		return never
	}
	if e.Negated {
		conditions = []condition{negated(conditions)}
	}
	return t.attribute("string_attributes", e.Name, conditions...)
}

// negated is the condition that not all of others are met.
func negated(list []condition) condition {
	var args []any
	for _, c := range list {
		args = append(args, c.args...)
	}
	return condition{args: args, text: func(column string) string {
		if len(list) == 0 {
			return string(never)
		}
		texts := make([]string, len(list))
		for i, c := range list {
			texts[i] = c.text(column)
		}
		return "NOT (" + strings.Join(texts, " AND ") + ")"
	}}
}

func (t *translator) attribute(table, name string, values ...condition) node {
	if strings.IndexByte(name, 0) >= 0 && !t.dialect.textNUL {
		return never
	}
	t.conditions++
	return &attribute{table: table, name: name, values: values}
}

func placeholders(n int) string {
	return "(" + strings.Repeat("?, ", n-1) + "?)"
}
