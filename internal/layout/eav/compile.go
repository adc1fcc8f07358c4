package eav

import (
	"context"
	"fmt"
	"strings"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/query"
)

// maxArgs bounds the values of one query. SQLite allows 32,766 and Postgres 65,535.
const maxArgs = 32000

// compiler turns a condition into SQL text and arguments. The tree is compiled as it stands: each
// comparison is one subquery over an attribute table, each && and || one AND and OR.
type compiler struct {
	l    *Layout
	at   int64
	sql  strings.Builder
	args []any

	byValue bool // see driver.PlanByValue
}

// place is where in a statement a condition stands.
type place struct {
	row    string // alias of the row, with entity_key and first block, that the condition is about
	inner  string // alias that a subquery there uses
	driven bool   // the rows are found already; this only sorts some out
}

// payloads is the place in a statement over the payloads p.
var payloads = place{row: "p", inner: "a"}

// prepare turns a query tree into the condition to compile, which on some
// engines takes a look at the data.
func (l *Layout) prepare(ctx context.Context, q driver.Querier, e query.Expr) (node, error) {
	if e == nil {
		return always, nil
	}
	t := translator{dialect: l.dialect}
	n := t.expr(e)
	if limit := l.dialect.maxConditions; t.err == nil && limit > 0 && t.conditions > limit {
		t.err = fmt.Errorf("%w: query has %d conditions, this engine plans %d; split it", driver.ErrUnsupported, t.conditions, limit)
	}
	if t.err != nil || !l.dialect.correlates {
		return n, t.err
	}
	p := planner{l: l, q: q, left: maxPlanned}
	return p.plan(ctx, n)
}

func (c *compiler) write(text string, args ...any) {
	c.sql.WriteString(text)
	c.args = append(c.args, args...)
}

// where writes the condition that payload p is visible and matches.
func (c *compiler) where(n node) {
	c.write(" WHERE " + c.l.shape.payloadVisible)
	c.writeAt(c.l.shape.visibleArgs)
	if n == always {
		return
	}
	if c.l.dialect.name != driver.Postgres {
		c.write(" AND ")
		c.node(n, payloads)
		return
	}
	_, alone := n.(*attribute)
	c.byValue = !alone && !one(n)
	c.write(" AND (")
	c.node(n, payloads)
	conditions := 0
	attributes(n, func(*attribute) { conditions++ })
	if conditions > maxJoins {
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
	if len(c.args) > maxArgs {
		return "", nil, fmt.Errorf("%w: query needs %d values, the limit is %d; split it", driver.ErrUnsupported, len(c.args), maxArgs)
	}
	text := c.sql.String()
	if c.byValue {
		text = driver.PlanByValue + text
	}
	return text, c.args, nil
}

func (c *compiler) node(n node, at place) {
	switch n := n.(type) {
	case literal:
		c.write(string(n))
	case version:
		column := at.row + "." + c.l.shape.from
		if n.byKey {
			column = at.row + ".entity_key"
		}
		c.write(column+n.test, n.args...)
	case *attribute:
		if n.lookup {
			c.lookup(n, at)
		} else {
			c.list(n, nil, at)
		}
	case conjunction:
		c.join(" AND ", n, at)
	case disjunction:
		c.join(" OR ", n, at)
	case negation:
		c.write("NOT (")
		c.node(n.term, at)
		c.write(")")
	case driven:
		c.driven(n, at)
	}
}

func (c *compiler) join(op string, terms []node, at place) {
	balanced(c, op, terms, func(n node) { c.node(n, at) })
}

// balanced writes terms as a balanced tree: engines limit how deep an expression
// may be, and a AND b AND c is as deep as it is long.
func balanced[T any](c *compiler, op string, terms []T, write func(T)) {
	if len(terms) == 1 {
		write(terms[0])
		return
	}
	half := len(terms) / 2
	c.write("(")
	balanced(c, op, terms[:half], write)
	c.write(op)
	balanced(c, op, terms[half:], write)
	c.write(")")
}

// driven writes the condition that finds entities around those that sort some of them out.
func (c *compiler) driven(n driven, at place) {
	if a, ok := n.driver.(*attribute); ok {
		c.list(a, n.rest, at)
		return
	}
	c.write("(")
	c.node(n.driver, at)
	c.write(" AND ")
	at.driven = true
	c.join(" AND ", n.rest, at)
	c.write(")")
}

// list writes that the entity is among those with an attribute, visible at the
// block, of whose version further conditions are true.
func (c *compiler) list(n *attribute, rest conjunction, at place) {
	row, key := at.inner, at.row+".entity_key"
	if at.driven {
		key = c.l.dialect.hidden(key) // the list must not find rows instead
	}
	c.write(key+" IN (SELECT "+row+".entity_key FROM "+n.table+" AS "+row+" WHERE "+row+".key = ?", n.name)
	c.values(n.values, row+".value")
	c.write(c.l.shape.attributeVisible(row))
	c.writeAt(c.l.shape.attributeArgs)
	if len(rest) > 0 {
		c.write(" AND ")
		c.join(" AND ", rest, place{row: row, inner: "b", driven: true})
	}
	c.write(")")
}

// lookup writes that the version has an attribute. It is not an EXISTS, since SQLite makes joins of
// those from 3.51 on, and puts them after all other tables; nor is it to search by value. Postgres
// takes what is not NULL to be true of nearly all rows and its opposite of nearly none, and of a
// boolean that it knows nothing of, a half: with less it would rather sort.
func (c *compiler) lookup(n *attribute, at place) {
	row, from := at.inner, c.l.shape.from
	before, after := "(SELECT 1", ") IS NOT NULL"
	if c.l.dialect.name == driver.Postgres {
		before, after = "coalesce((SELECT TRUE", "), FALSE)"
	}
	c.write(before+" FROM "+n.table+" AS "+row+" WHERE "+row+".entity_key = "+at.row+".entity_key AND "+row+".key = ?", n.name)
	c.write(" AND " + row + "." + from + " = " + at.row + "." + from)
	c.values(n.values, c.l.dialect.hidden(row+".value"))
	c.write(after)
}

// values writes the conditions on a value.
func (c *compiler) values(list []condition, column string) {
	if len(list) > 0 {
		c.write(" AND ")
		balanced(c, " AND ", list, func(v condition) { c.write(v.text(column), v.args...) })
	}
}
