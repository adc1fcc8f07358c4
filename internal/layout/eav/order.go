package eav

import (
	"context"
	"math"
	"slices"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// The sort columns: s is the row of $sequence, o the row of the attribute that
// the request sorts by, if any.

// writeFrom writes the tables of a sorted query.
//
// With first, the condition is evaluated before anything is joined, whatever the
// planner thinks.
func (c *compiler) writeFrom(order layout.Order, first bool) {
	from := c.l.shape.from
	join := " JOIN"
	if first {
		join = c.l.dialect.orderedJoin
	}
	c.write(" FROM payloads AS p" + join + " numeric_attributes AS s ON s.entity_key = p.entity_key AND s.key = '$sequence' AND s." + from + " = p." + from)
	if table := orderTable(order); table != "" {
		c.write(" LEFT JOIN "+table+" AS o ON o.entity_key = p.entity_key AND o.key = ? AND o."+from+" = p."+from, order.Name)
	}
}

// first tells whether a request's condition should be evaluated before anything
// is joined. Without statistics SQLite rather reads all sequences from the newest
// on, to save itself the sort. That is right only for the newest few of many
// matches, for more than should be sorted, or when no index finds the matches.
func (l *Layout) first(ctx context.Context, q driver.Querier, cond node, req layout.Request) (bool, error) {
	switch {
	case selective(req.Expr):
		return true, nil
	case !l.dialect.correlates || !l.access["payloads"].byEntity || !l.access["numeric_attributes"].byEntity || !l.finds(cond):
		return false, nil
	case req.Order.Name != "":
		return true, nil // sequences are of no use
	}
	limit := firstLimit
	if req.Limit == 0 {
		limit = maxSorted
	}
	var open []*attribute
	attributes(cond, func(a *attribute) { open = append(open, a) })
	if len(open) > maxMeasured {
		return false, nil
	}
	if len(open) > 0 {
		p := planner{l: l, q: q}
		if err := p.measure(ctx, open, limit); err != nil {
			return false, err
		}
	}
	return size(cond) < limit, nil
}

// finds tells whether indexes find the entities that meet a condition.
func (l *Layout) finds(n node) bool {
	switch n := n.(type) {
	case version:
		return n.byKey
	case *attribute:
		return l.access[n.table].byValue
	case driven:
		return l.finds(n.driver)
	case disjunction:
		return !slices.ContainsFunc(n, func(term node) bool { return !l.finds(term) })
	}
	return false
}

// size returns how many entities at most meet a condition that indexes find,
// when its attributes are measured.
func size(n node) int {
	switch n := n.(type) {
	case version:
		return len(n.args)
	case *attribute:
		return n.entries
	case driven:
		return size(n.driver)
	case disjunction:
		sum := 0
		for _, term := range n {
			sum += size(term)
		}
		return sum
	}
	return math.MaxInt
}

// selective tells whether a condition is thought to be true of few entities:
// whether it is, or has among the terms of an &&, an equality.
func selective(e query.Expr) bool {
	switch e := e.(type) {
	case query.Compare:
		return e.Op == query.Equal
	case query.In:
		return !e.Negated
	case query.And:
		return slices.ContainsFunc(e.Terms, selective)
	}
	return false
}

// orderTable returns the table that is joined for the order, or "".
func orderTable(order layout.Order) string {
	switch {
	case order.Name == "" || order.Name == entity.AttrLastModifiedAtBlock:
		return ""
	case order.Kind == entity.Numeric:
		return "numeric_attributes"
	}
	return "string_attributes"
}

// orderColumn returns the column of the order, or "".
func (c *compiler) orderColumn(order layout.Order) string {
	switch {
	case order.Name == "":
		return ""
	case order.Name == entity.AttrLastModifiedAtBlock:
		return "p." + c.l.shape.from
	}
	return "o.value"
}

// sortColumns names the columns that a result is sorted by.
type sortColumns struct {
	value    string // of the order's attribute, or "" without one
	sequence string
	key      string
}

// inner are the sort columns within the query that finds entities, outer those
// that it hands to the query around it.
func (c *compiler) inner(order layout.Order) sortColumns {
	return sortColumns{value: c.orderColumn(order), sequence: "s.value", key: "p.entity_key"}
}

var outer = sortColumns{value: "x.v", sequence: "x.s", key: "x.k"}

// writeOrder writes ORDER BY over the sort columns.
func (c *compiler) writeOrder(order layout.Order, columns sortColumns) {
	c.write(" ORDER BY ")
	if order.Name != "" {
		direction := ""
		if order.Desc {
			direction = " DESC"
		}
		c.write("CASE WHEN " + columns.value + " IS NULL THEN 1 ELSE 0 END, " + columns.value + direction + ", ")
	}
	c.write(columns.sequence + " DESC, " + columns.key)
}

// writeAfter writes the condition that a row comes after a position.
func (c *compiler) writeAfter(order layout.Order, pos *layout.Position) {
	if pos == nil {
		return
	}
	column := c.orderColumn(order)
	c.write(" AND ")
	switch {
	case column == "":
		c.writeAfterSequence(pos)
	case pos.Missing:
		c.write("(" + column + " IS NULL AND ")
		c.writeAfterSequence(pos)
		c.write(")")
	default:
		op := " > ?"
		if order.Desc {
			op = " < ?"
		}
		value := orderValue(order, pos.Value)
		c.write("("+column+" IS NULL OR "+column+op, value)
		c.write(" OR ("+column+" = ? AND ", value)
		c.writeAfterSequence(pos)
		c.write("))")
	}
}

func (c *compiler) writeAfterSequence(pos *layout.Position) {
	c.write("(s.value < ? OR (s.value = ? AND p.entity_key > ?))", pos.Sequence, pos.Sequence, pos.Key[:])
}

func orderValue(order layout.Order, v query.Value) any {
	switch {
	case order.Name == entity.AttrLastModifiedAtBlock:
		return int64(v.Number)
	case order.Kind == entity.Numeric:
		return v.Number
	}
	return v.Text
}
