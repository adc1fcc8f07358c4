package eav

import (
	"slices"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// The sort columns: s is the row of $sequence, o the row of the attribute that
// the request sorts by, if any.

// writeFrom writes the tables of a sorted query.
//
// A condition that an index narrows down is evaluated first, whatever the
// planner thinks: without statistics SQLite reads all sequences from the newest
// on instead, to save itself the sort. For other conditions that may be right.
func (c *compiler) writeFrom(order layout.Order, selective bool) {
	from := c.l.shape.from
	join := " JOIN"
	if selective {
		join = c.l.dialect.orderedJoin
	}
	c.write(" FROM payloads AS p" + join + " numeric_attributes AS s ON s.entity_key = p.entity_key AND s.key = '$sequence' AND s." + from + " = p." + from)
	if table := orderTable(order); table != "" {
		c.write(" LEFT JOIN "+table+" AS o ON o.entity_key = p.entity_key AND o.key = ? AND o."+from+" = p."+from, order.Name)
	}
}

// selective tells whether an index narrows a condition down: whether it is, or
// has among the terms of an &&, an equality.
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
