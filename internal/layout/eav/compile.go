package eav

import (
	"fmt"
	"math"
	"strings"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// maxArgs bounds the values of one query. SQLite allows 32,766 and Postgres
// 65,535.
const maxArgs = 32000

// compiler turns a query tree into SQL text and arguments. The tree is compiled
// as it stands: each comparison is one subquery over an attribute table, each
// && and || one AND and OR.
type compiler struct {
	l    *Layout
	at   int64
	sql  strings.Builder
	args []any
	err  error

	conditions int // subqueries so far
}

func (c *compiler) write(text string, args ...any) {
	c.sql.WriteString(text)
	c.args = append(c.args, args...)
}

// where writes the condition that payload p is visible and matches.
func (c *compiler) where(e query.Expr) {
	c.write(" WHERE " + c.l.shape.payloadVisible)
	c.writeAt(c.l.shape.visibleArgs)
	if _, all := e.(query.All); all || e == nil {
		return
	}
	if c.l.dialect.name != driver.Postgres {
		c.write(" AND ")
		c.expr(e)
		return
	}
	c.write(" AND (")
	c.expr(e)
	if c.conditions > maxJoins {
		c.write(") IS TRUE")
	} else {
		c.write(")")
	}
}

// maxJoins is how many conditions Postgres may turn into joins, which it does
// with an IN that stands under nothing but AND. It searches for their best
// order, and for some hundreds that takes minutes; IS TRUE keeps them subqueries.
const maxJoins = 16

func (c *compiler) writeAt(n int) {
	for range n {
		c.args = append(c.args, c.at)
	}
}

// finish returns the statement, or an error if it is too large.
func (c *compiler) finish() (string, []any, error) {
	if c.err == nil && len(c.args) > maxArgs {
		c.err = fmt.Errorf("%w: query needs %d values, the limit is %d; split it", driver.ErrUnsupported, len(c.args), maxArgs)
	}
	if limit := c.l.dialect.maxConditions; c.err == nil && limit > 0 && c.conditions > limit {
		c.err = fmt.Errorf("%w: query has %d conditions, this engine plans %d; split it", driver.ErrUnsupported, c.conditions, limit)
	}
	return c.sql.String(), c.args, c.err
}

func (c *compiler) expr(e query.Expr) {
	switch e := e.(type) {
	case query.All:
		c.write(always)
	case query.And:
		c.join(" AND ", e.Terms)
	case query.Or:
		c.join(" OR ", e.Terms)
	case query.Not:
		c.write("NOT (")
		c.expr(e.Term)
		c.write(")")
	case query.Compare:
		c.compare(e)
	case query.In:
		c.in(e)
	case query.Glob:
		c.glob(e)
	default:
		c.err = fmt.Errorf("query: unknown node %T", e)
	}
}

// join writes terms as a balanced tree: engines limit how deep an expression
// may be, and a AND b AND c is as deep as it is long.
func (c *compiler) join(op string, terms []query.Expr) {
	if len(terms) == 1 {
		c.expr(terms[0])
		return
	}
	half := len(terms) / 2
	c.write("(")
	c.join(op, terms[:half])
	c.write(op)
	c.join(op, terms[half:])
	c.write(")")
}

var operators = map[query.CompareOp]string{
	query.Equal: "=", query.NotEqual: "<>",
	query.Less: "<", query.LessOrEqual: "<=",
	query.Greater: ">", query.GreaterOrEqual: ">=",
}

func (c *compiler) compare(e query.Compare) {
	switch {
	case e.Name == entity.AttrLastModifiedAtBlock:
		c.compareBlock(e)
	case e.Name == entity.AttrKey && e.Op == query.Equal:
		c.keyIn([]query.Value{e.Value})
	case e.Value.Kind == entity.Numeric:
		c.attribute("numeric_attributes", e.Name, " AND a.value "+operators[e.Op]+" ?", e.Value.Number)
	default:
		c.compareText(e)
	}
}

// compareBlock compares the version's first block, which is a signed column of
// the payload's row.
func (c *compiler) compareBlock(e query.Compare) {
	if e.Value.Number <= math.MaxInt64 {
		c.write("p."+c.l.shape.from+" "+operators[e.Op]+" ?", int64(e.Value.Number))
		return
	}
	if e.Op == query.NotEqual || e.Op == query.Less || e.Op == query.LessOrEqual {
		c.write(always)
	} else {
		c.write(never)
	}
}

// compareText compares a string attribute. On an engine whose text has no NUL,
// a literal with one lies between the text before the NUL and everything that
// is longer.
func (c *compiler) compareText(e query.Compare) {
	op, text := operators[e.Op], e.Value.Text
	if cut := strings.IndexByte(text, 0); cut >= 0 && !c.l.dialect.textNUL {
		text = text[:cut]
		switch e.Op {
		case query.Equal:
			c.write(never)
			return
		case query.NotEqual:
			c.attribute("string_attributes", e.Name, "")
			return
		case query.Less, query.LessOrEqual:
			op = "<="
		default:
			op = ">"
		}
	}
	c.attribute("string_attributes", e.Name, " AND a.value "+op+" ?", text)
}

func (c *compiler) in(e query.In) {
	switch {
	case e.Name == entity.AttrLastModifiedAtBlock:
		c.blockIn(e)
	case e.Name == entity.AttrKey && !e.Negated:
		c.keyIn(e.Values)
	case e.Values[0].Kind == entity.Numeric:
		values := make([]any, len(e.Values))
		for i, v := range e.Values {
			values[i] = v.Number
		}
		c.attributeIn("numeric_attributes", e, values)
	default:
		values := make([]any, 0, len(e.Values))
		for _, v := range e.Values {
			if c.l.dialect.textNUL || strings.IndexByte(v.Text, 0) < 0 {
				values = append(values, v.Text)
			}
		}
		c.attributeIn("string_attributes", e, values)
	}
}

func (c *compiler) attributeIn(table string, e query.In, values []any) {
	switch {
	case len(values) == 0 && e.Negated:
		c.attribute(table, e.Name, "")
	case len(values) == 0:
		c.write(never)
	case e.Negated:
		c.attribute(table, e.Name, " AND a.value NOT IN "+placeholders(len(values)), values...)
	default:
		c.attribute(table, e.Name, " AND a.value IN "+placeholders(len(values)), values...)
	}
}

func (c *compiler) blockIn(e query.In) {
	values := make([]any, 0, len(e.Values))
	for _, v := range e.Values {
		if v.Number <= math.MaxInt64 {
			values = append(values, int64(v.Number))
		}
	}
	switch {
	case len(values) == 0 && e.Negated:
		c.write(always)
	case len(values) == 0:
		c.write(never)
	case e.Negated:
		c.write("p."+c.l.shape.from+" NOT IN "+placeholders(len(values)), values...)
	default:
		c.write("p."+c.l.shape.from+" IN "+placeholders(len(values)), values...)
	}
}

// keyIn finds entities by their keys rather than by the $key attribute.
func (c *compiler) keyIn(values []query.Value) {
	keys := make([]any, 0, len(values))
	for _, v := range values {
		if key, err := entity.ParseKey(v.Text); err == nil && key.String() == v.Text {
			keys = append(keys, key[:])
		}
	}
	if len(keys) == 0 {
		c.write(never)
		return
	}
	c.write("p.entity_key IN "+placeholders(len(keys)), keys...)
}

func (c *compiler) glob(e query.Glob) {
	if strings.IndexByte(e.Pattern, 0) >= 0 && !c.l.dialect.textNUL {
		c.err = fmt.Errorf("%w: a NUL in a pattern, on an engine whose text cannot hold one", driver.ErrUnsupported)
		return
	}
	cond, args, err := c.l.dialect.glob("a.value", e.Pattern)
	if err != nil {
		c.err = err
		return
	}
	if e.Negated {
		cond = "NOT (" + cond + ")"
	}
	c.attribute("string_attributes", e.Name, " AND "+cond, args...)
}

// attribute writes that the entity has an attribute, visible at the block, that
// meets a condition on a.value.
func (c *compiler) attribute(table, name, cond string, args ...any) {
	if strings.IndexByte(name, 0) >= 0 && !c.l.dialect.textNUL {
		c.write(never)
		return
	}
	c.conditions++
	c.write("p.entity_key IN (SELECT a.entity_key FROM "+table+" AS a WHERE a.key = ?", name)
	c.write(cond, args...)
	c.write(c.l.shape.attributeVisible)
	c.writeAt(c.l.shape.attributeArgs)
	c.write(")")
}

func placeholders(n int) string {
	return "(" + strings.Repeat("?, ", n-1) + "?)"
}
