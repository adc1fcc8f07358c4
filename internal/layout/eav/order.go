package eav

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// The sort columns: s is the row of $sequence; o0, o1 and so on are those of the
// attributes that the request sorts by.

// writeFrom writes the tables of a sorted query.
//
// With first, the condition is evaluated before anything is joined, whatever the
// planner thinks.
func (c *compiler) writeFrom(order []layout.Order, first bool) {
	from := c.l.shape.from
	join := " JOIN"
	if first {
		join = c.l.dialect.orderedJoin
	}
	c.write(" FROM payloads AS p" + join + " numeric_attributes AS s ON s.entity_key = p.entity_key AND s.key = '$sequence' AND s." + from + " = p." + from)
	for i, o := range order {
		if table := orderTable(o); table != "" {
			row := orderRow(i)
			c.write(" LEFT JOIN "+table+" AS "+row+" ON "+row+".entity_key = p.entity_key AND "+row+".key = ? AND "+row+"."+from+" = p."+from, c.l.dialect.sortName(o.Name))
		}
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
	case len(req.Order) > 0:
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

// orderTable returns the table that is joined for an attribute to sort by, or "".
func orderTable(o layout.Order) string {
	switch {
	case o.Name == entity.AttrLastModifiedAtBlock:
		return ""
	case o.Kind == entity.Numeric:
		return "numeric_attributes"
	}
	return "string_attributes"
}

// orderRow returns the alias of the row of the i-th attribute to sort by.
func orderRow(i int) string { return "o" + strconv.Itoa(i) }

// sortColumns names the columns that a result is sorted by.
type sortColumns struct {
	values   []string // of the order's attributes
	sequence string
	key      string
}

// inner returns the sort columns within the query that finds entities.
func (c *compiler) inner(order []layout.Order) sortColumns {
	columns := sortColumns{sequence: "s.value", key: "p.entity_key"}
	for i, o := range order {
		column := orderRow(i) + ".value"
		if orderTable(o) == "" {
			column = "p." + c.l.shape.from
		}
		columns.values = append(columns.values, column)
	}
	return columns
}

// outer returns those that it hands to the query around it.
func outer(order []layout.Order) sortColumns {
	columns := sortColumns{sequence: "x.s", key: "x.k"}
	for i := range order {
		columns.values = append(columns.values, "x.v"+strconv.Itoa(i))
	}
	return columns
}

// writeOrder writes ORDER BY over the sort columns.
func (c *compiler) writeOrder(order []layout.Order, columns sortColumns) {
	c.write(" ORDER BY ")
	for i, column := range columns.values {
		direction := ""
		if order[i].Desc {
			direction = " DESC"
		}
		c.write("CASE WHEN " + column + " IS NULL THEN 1 ELSE 0 END, " + column + direction + ", ")
	}
	c.write(columns.sequence + " DESC, " + columns.key)
}

// writeAfter writes the condition that a row comes after a position, if there is one.
func (c *compiler) writeAfter(order []layout.Order, columns sortColumns, pos *layout.Position) {
	if pos == nil {
		return
	}
	c.write(" AND ")
	end := ""
	for i, column := range columns.values {
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
	c.write("(s.value < ? OR (s.value = ? AND p.entity_key > ?))"+end, pos.Sequence, pos.Sequence, pos.Key[:])
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

// sortName returns the name of an attribute to sort by as rows may have it. Text without
// U+0000 cannot say a name with one, which nobody has; nor has anybody the empty name.
func (d dialect) sortName(name string) string {
	if strings.IndexByte(name, 0) >= 0 && !d.textNUL {
		return ""
	}
	return name
}
