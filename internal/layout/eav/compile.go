package eav

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// maxArgs bounds the values of one query. SQLite allows 32,766 and Postgres
// 65,535.
const maxArgs = 32000

// maxJoins is the maximum number of conditions that a planner may turn into
// joins, as Postgres and SQLite do with an EXISTS that is only below ANDs. They
// search for the best order, which takes minutes for some hundreds on Postgres.
const maxJoins = 16

const never = "1 = 0"

// compiler writes the SQL of a query in the form of Arkiv's store
// (github.com/Arkiv-Network/sqlite-store): the versions in payloads that are
// visible at the block, an EXISTS for each comparison of an attribute, and a
// LEFT JOIN for each attribute to sort by. It differs in three points, where
// Arkiv's answer would be wrong or its SQL too large: the tree is compiled
// without Arkiv's normal form, which grows exponentially; OR is put in
// parentheses, so that it does not make other versions visible; and NOT stays
// in front of its term.
type compiler struct {
	*Layout
	at         int64
	row        string // alias of the row of the version that conditions are about
	sql        strings.Builder
	args       []any
	conditions int // on attributes, so far
	err        error
}

// compiler returns a compiler for conditions on payloads e.
func (v view) compiler() *compiler { return &compiler{Layout: v.Layout, at: int64(v.at), row: "e"} }

func (c *compiler) write(text string, args ...any) {
	c.sql.WriteString(text)
	c.args = append(c.args, args...)
}

// where writes the condition that payload e is visible and matches.
func (c *compiler) where(e query.Expr) {
	c.write(" WHERE "+c.shape.visible, c.at)
	if e == nil {
		return
	}
	c.write(" AND (")
	c.expr(e)
	c.write(")")
	if c.dialect.JoinedSubqueries && c.conditions > maxJoins {
		c.write(" IS TRUE") // keeps them subqueries
	}
}

// finish returns the statement, or an error if it is too large.
func (c *compiler) finish() (s driver.Statement, args []any, err error) {
	switch most := c.dialect.maxConditions; {
	case c.err != nil:
		return s, nil, c.err
	case most > 0 && c.conditions > most:
		return s, nil, fmt.Errorf("%w: query has %d conditions, this engine plans %d; split it",
			driver.ErrUnsupported, c.conditions, most)
	case len(c.args) > maxArgs:
		return s, nil, fmt.Errorf("%w: query needs %d values, the limit is %d; split it",
			driver.ErrUnsupported, len(c.args), maxArgs)
	}
	return driver.Statement{Text: c.sql.String(), PlanByValue: c.row == "e" && c.conditions > 1}, c.args, nil
}

func (c *compiler) expr(e query.Expr) {
	switch e := e.(type) {
	case query.All:
		c.write("1 = 1")
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

// join writes terms as a balanced tree, because engines limit the depth of
// expressions, and a AND b AND c … would be as deep as it is long.
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

// exists writes the condition that the version has an attribute whose value,
// a.value, passes a test.
func (c *compiler) exists(table, name, test string, args ...any) {
	if !c.dialect.holds(name) {
		c.write(never)
		return
	}
	c.conditions++
	before, after := "EXISTS (SELECT 1", ")"
	if c.dialect.IndexHints && c.conditions > maxJoins {
		// SQLite, too, plans an EXISTS as a join, unless it is part of an
		// expression. With 100 of them that takes a second.
		before = "+" + before
	}
	if c.row != "e" && c.dialect.JoinedSubqueries {
		// Needed for a leading term: the planner would turn an EXISTS into a
		// join, and sort, because it expects few rows. For a boolean expression
		// it expects half of all rows.
		before, after = "coalesce((SELECT TRUE", "), FALSE)"
	}
	c.write(before+" FROM "+table+" AS a"+c.hints[table]+" WHERE "+c.same("a")+" AND a.key = ?", name)
	c.write(test+after, args...)
}

// same writes the condition that a row of an alias belongs to the version.
func (c *compiler) same(alias string) string {
	from := "." + c.shape.from
	return alias + ".entity_key = " + c.row + ".entity_key AND " + alias + from + " = " + c.row + from
}

var operators = map[query.CompareOp]string{
	query.Equal: "=", query.NotEqual: "<>",
	query.Less: "<", query.LessOrEqual: "<=",
	query.Greater: ">", query.GreaterOrEqual: ">=",
}

func (c *compiler) compare(e query.Compare) {
	op := operators[e.Op]
	switch {
	case isBlock(e.Name, e.Value):
		c.write(c.row+"."+c.shape.from+" "+op+" ?", blockNumber(e.Value))
	case e.Value.Kind == entity.Numeric:
		c.exists(numbers, e.Name, " AND a.value "+op+" ?", e.Value.Number)
	case c.dialect.holds(e.Value.Text):
		c.exists(texts, e.Name, " AND a.value "+op+" ?", e.Value.Text)
	default:
		c.compareNUL(e)
	}
}

// compareNUL compares with a literal that contains a NUL, on an engine whose
// text cannot. The literal sorts between the text before the NUL and everything
// longer.
func (c *compiler) compareNUL(e query.Compare) {
	before, _, _ := strings.Cut(e.Value.Text, "\x00")
	switch e.Op {
	case query.Equal:
		c.write(never)
	case query.NotEqual:
		c.exists(texts, e.Name, "")
	case query.Less, query.LessOrEqual:
		c.exists(texts, e.Name, " AND a.value <= ?", before)
	default:
		c.exists(texts, e.Name, " AND a.value > ?", before)
	}
}

// isBlock reports whether an attribute is the version's first block, which has
// no attribute row.
func isBlock(name string, v query.Value) bool {
	return name == entity.AttrLastModifiedAtBlock && v.Kind == entity.Numeric
}

// blockNumber converts a number for a comparison with a version's first block.
// That column is signed, and no version begins above its maximum.
func blockNumber(v query.Value) int64 { return int64(min(v.Number, math.MaxInt64)) }

func (c *compiler) in(e query.In) {
	first, values := e.Values[0], make([]any, 0, len(e.Values))
	for _, v := range e.Values {
		switch {
		case isBlock(e.Name, v):
			values = append(values, blockNumber(v))
		case v.Kind == entity.Numeric:
			values = append(values, v.Number)
		case c.dialect.holds(v.Text):
			values = append(values, v.Text)
		}
	}
	op := " IN "
	if e.Negated {
		op = " NOT IN "
	}
	switch {
	case isBlock(e.Name, first):
		c.write(c.row+"."+c.shape.from+op+placeholders(len(values)), values...)
	case len(values) > 0:
		c.exists(tableOf(first.Kind), e.Name, " AND a.value"+op+placeholders(len(values)), values...)
	case e.Negated:
		c.exists(texts, e.Name, "")
	default:
		c.write(never)
	}
}

func placeholders(n int) string { return "(" + strings.Repeat("?, ", n-1) + "?)" }

func (c *compiler) glob(e query.Glob) {
	if !c.dialect.holds(e.Pattern) {
		c.err = fmt.Errorf("%w: a NUL in a pattern, on an engine whose text cannot hold one",
			driver.ErrUnsupported)
		return
	}
	test, args := c.dialect.glob(e.Pattern)
	if e.Negated {
		test = "NOT (" + test + ")"
	}
	c.exists(texts, e.Name, " AND "+test, args...)
}

// Sorted queries. Arkiv's store sorts by the attributes that a request names,
// and then by the version's first block and key. Here $sequence, as another
// attribute, takes the place of the first block.

// query writes a sorted request. The leading term, if there is one, finds the
// payloads.
func (c *compiler) query(req layout.Request, l *lead) {
	c.write(c.selectColumns(req.Content) + " FROM payloads AS e")
	columns := make([]string, len(req.Order))
	for i, o := range req.Order {
		if o.Name == entity.AttrLastModifiedAtBlock {
			columns[i] = "e." + c.shape.from
			continue
		}
		row, name := "o"+strconv.Itoa(i), o.Name
		if !c.dialect.holds(name) {
			name = "" // as no attribute is called
		}
		columns[i] = row + ".value"
		c.leftJoin(tableOf(o.Kind), row, name)
	}
	c.leftJoin(numbers, "s", entity.AttrSequence)
	c.where(req.Expr)
	c.led(l)
	if req.After != nil {
		c.after(req.Order, columns, req.After)
	}
	c.write(" ORDER BY ")
	for i, column := range columns {
		direction := ""
		if req.Order[i].Desc {
			direction = " DESC"
		}
		c.write("CASE WHEN " + column + " IS NULL THEN 1 ELSE 0 END, " + column + direction + ", ")
	}
	c.write("s.value DESC, e.entity_key")
	if req.Limit > 0 {
		c.write(" LIMIT ?", int64(req.Limit))
	}
}

// leftJoin writes the join with the version's row of an attribute to sort by.
func (c *compiler) leftJoin(table, row, name string) {
	c.write(" LEFT JOIN " + table + " AS " + row + c.hints[table])
	c.write(" ON "+c.same(row)+" AND "+row+".key = ?", name)
}

func tableOf(kind entity.AttributeKind) string {
	if kind == entity.Numeric {
		return numbers
	}
	return texts
}

// selectColumns returns SELECT with the columns of e that scanEntity reads.
func (l *Layout) selectColumns(content bool) string {
	columns := []string{"e.entity_key", "e." + l.shape.from}
	for _, column := range []string{"e.content_type", "e.string_attributes", "e.numeric_attributes"} {
		columns = append(columns, l.dialect.TextColumn(column))
	}
	if content {
		columns = append(columns, "e.payload")
	}
	return "SELECT " + strings.Join(columns, ", ")
}

// after writes the condition that a row comes after a position.
func (c *compiler) after(order []layout.Order, columns []string, pos *layout.Position) {
	c.write(" AND ")
	end := ""
	for i, column := range columns {
		if pos.Values[i].Missing {
			c.write("(" + column + " IS NULL AND ")
			end += ")"
			continue
		}
		op := " > ?"
		if order[i].Desc {
			op = " < ?"
		}
		value := orderValue(order[i], pos.Values[i].Value)
		c.write("("+column+" IS NULL OR "+column+op+" OR ("+column+" = ? AND ", value, value)
		end += "))"
	}
	c.write("(s.value < ? OR (s.value = ? AND e.entity_key > ?))"+end,
		pos.Sequence, pos.Sequence, pos.Key[:])
}

func orderValue(o layout.Order, v query.Value) any {
	switch {
	case o.Name == entity.AttrLastModifiedAtBlock:
		return int64(v.Number)
	case o.Kind == entity.Numeric:
		return v.Number
	}
	return v.Text
}
