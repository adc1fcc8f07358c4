package eav

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/internal/statement"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// This file is the leading term, the one mechanism that the layout arkiv-ordered
// adds to Arkiv's tables and SQL. One term of a condition leads: an index finds
// its versions, newest first, and the other terms are tried on each.
//
// Results come newest creation first, and no index has that order. But no
// version is older than its entity. So once the last of as many results as are
// wanted was created after the first block of the version at hand, no later row
// can come before it, and the reading ends. It reads in vain the versions of
// entities that were created long ago and changed lately.

// Limits of leading terms.
const (
	maxWalked  = 4096 // the largest limit of a query that is read newest first
	maxLegs    = 32   // values of a leading term: the statement repeats its other terms for each
	maxReach   = 1000 // newest versions of a term that are counted
	walkSpare  = 16   // versions read at first, in addition to twice the limit
	walkGrowth = 8    // factor for the next read when those did not suffice
	fetchSize  = 16   // results whose rows one statement fetches
)

// lead is the leading term of a condition.
type lead struct {
	table        string
	legs         []leg
	rest         []query.Expr // the other terms
	lower, upper uint64       // first and last block in which matching versions begin
}

// leg is a condition on w, a row of an attribute. In an index the rows that
// meet it are adjacent, newest first.
type leg struct {
	test string
	args []any
}

// lead returns the leading term of a condition, or nil if there is none.
// Equalities are preferred. With limited, when only the newest few results are
// wanted, a comparison of a number may lead as well: it walks over all versions
// with that attribute. The last resort is $sequence, which all versions have.
func (v view) lead(ctx context.Context, e query.Expr, limited bool) (*lead, error) {
	if !v.schema.NewestFirst || !v.dialect.walks {
		return nil, nil
	}
	terms := []query.Expr{e}
	if and, ok := e.(query.And); ok {
		terms = and.Terms
	}
	l := &lead{upper: v.at}
	var equal, compared []int // of the other terms
	for _, term := range terms {
		if _, all := term.(query.All); all || term == nil || l.narrow(term) {
			continue
		}
		_, legs := v.dialect.equalities(term)
		c, comparison := term.(query.Compare)
		switch {
		case 0 < len(legs) && len(legs) <= max(1, maxLegs/len(terms)):
			equal = append(equal, len(l.rest))
		case comparison && c.Value.Kind == entity.Numeric && !isBlock(c.Name, c.Value) &&
			v.dialect.holds(c.Name):
			compared = append(compared, len(l.rest))
		}
		l.rest = append(l.rest, term)
	}
	if len(equal) > 0 {
		return l, v.chooseEqual(ctx, l, equal)
	}
	if !limited {
		return nil, nil
	}
	l.table, l.legs = numbers, []leg{{"w.key = ?", []any{entity.AttrSequence}}}
	if len(compared) > 0 {
		c := l.rest[compared[0]].(query.Compare)
		// The value is hidden, so that SQLite does not search by it and then
		// sort.
		test := "w.key = ? AND " + v.dialect.hidden("w.value") + " " + operators[c.Op] + " ?"
		l.legs = []leg{{test, []any{c.Name, c.Value.Number}}}
		l.rest = slices.Delete(l.rest, compared[0], compared[0]+1)
	}
	return l, nil
}

// narrow narrows the range of first blocks by a term that compares them. SQLite
// would search by either of two bounds, so a statement has only one range.
func (l *lead) narrow(e query.Expr) bool {
	c, ok := e.(query.Compare)
	if !ok || !isBlock(c.Name, c.Value) || c.Op == query.NotEqual {
		return false
	}
	n := c.Value.Number
	switch c.Op {
	case query.Less:
		if n == 0 {
			n, l.lower = 1, math.MaxUint64
		}
		l.upper = min(l.upper, n-1)
	case query.LessOrEqual:
		l.upper = min(l.upper, n)
	case query.Equal:
		l.lower, l.upper = max(l.lower, n), min(l.upper, n)
	case query.GreaterOrEqual:
		l.lower = max(l.lower, n)
	case query.Greater:
		l.lower = max(l.lower, n+min(1, math.MaxUint64-n))
	}
	return true
}

// equalities returns a leg for each value that a term allows for an attribute;
// none if the values are not listed or are too many.
func (d dialect) equalities(e query.Expr) (table string, legs []leg) {
	var list query.In
	switch e := e.(type) {
	case query.Compare:
		list = query.In{Name: e.Name, Values: []query.Value{e.Value}, Negated: e.Op != query.Equal}
	case query.In:
		list = e
	}
	if list.Negated || len(list.Values) > maxLegs || !d.holds(list.Name) {
		return "", nil
	}
	for _, value := range list.Values {
		if isBlock(list.Name, value) || !d.holds(value.Text) {
			return "", nil
		}
		arg := any(value.Text)
		if table = tableOf(value.Kind); value.Kind == entity.Numeric {
			arg = value.Number
		}
		legs = append(legs, leg{"w.key = ? AND w.value = ?", []any{list.Name, arg}})
	}
	return table, legs
}

// chooseEqual chooses the leading term among equalities: the one with the
// fewest versions or, if all have many, with the fewest among the newest: the
// one whose newest thousand go back furthest.
func (v view) chooseEqual(ctx context.Context, l *lead, equal []int) error {
	best, fewest, furthest := equal[0], int64(math.MaxInt64), int64(0)
	for _, i := range equal[:min(len(equal), maxLegs)] {
		if len(equal) == 1 {
			break // there is no choice
		}
		l.table, l.legs = v.dialect.equalities(l.rest[i])
		entries, first, err := v.reach(ctx, l)
		if err != nil {
			return err
		}
		if cmp.Or(cmp.Compare(entries, fewest), cmp.Compare(first, furthest)) < 0 {
			best, fewest, furthest = i, entries, first
		}
	}
	l.table, l.legs = v.dialect.equalities(l.rest[best])
	l.rest = slices.Delete(l.rest, best, best+1)
	return nil
}

// reach returns how many versions a leading term has among the newest thousand,
// and the first block of the oldest of these. Ended versions count, because
// leaving them out could read many more.
func (v view) reach(ctx context.Context, l *lead) (entries, first int64, err error) {
	c := v.compiler()
	c.write("SELECT count(*), coalesce(min(f), 0) FROM (")
	c.versions(l, "w.from_block AS f", maxReach, func() {})
	c.write(") AS n")
	s, args, err := c.finish()
	if err == nil {
		err = s.Row(ctx, v.q, args, &entries, &first)
	}
	return entries, first, err
}

// versions writes a subquery for columns of a leading term's versions that meet
// further conditions: rows of them from the newest on, or all if rows is 0.
// Where statements are compiled, one statement merges the legs by their
// indexes; elsewhere each leg reads up to that many rows.
func (c *compiler) versions(l *lead, columns string, rows int64, further func()) {
	newest := func() {
		if rows > 0 {
			c.write(" ORDER BY f DESC LIMIT ?", rows)
		}
	}
	each := !c.dialect.Compiled && len(l.legs) > 1
	for i, g := range l.legs {
		if i > 0 {
			c.write(" UNION ALL ")
		}
		if each {
			c.write("(")
		}
		c.write("SELECT "+columns+" FROM "+l.table+" AS w WHERE "+g.test, g.args...)
		c.write(" AND w.from_block BETWEEN ? AND ?", int64(min(l.lower, math.MaxInt64)), int64(l.upper))
		further()
		if each {
			newest()
			c.write(")")
		}
	}
	newest()
}

// led writes the condition that payload e is among a leading term's versions,
// for a statement that sorts or counts all matches.
func (c *compiler) led(l *lead) {
	if l == nil {
		return
	}
	c.write(" AND (e.entity_key, e.from_block) IN (")
	c.versions(l, "w.entity_key, w.from_block", 0, func() { c.write(" AND w.to_block > ?", c.at) })
	c.write(")")
}

// result is an entity found by a query, before its rows are read.
type result struct {
	key      entity.Key
	sequence uint64
}

// newestFirst is the order of results.
func newestFirst(a, b result) int {
	return cmp.Or(cmp.Compare(b.sequence, a.sequence), bytes.Compare(a.key[:], b.key[:]))
}

// newest returns the results of a request in order, if a leading term finds
// them newest first.
func (v view) newest(ctx context.Context, req layout.Request) (list []result, ok bool, err error) {
	if len(req.Order) > 0 || req.Limit == 0 || req.Limit > maxWalked {
		return nil, false, nil
	}
	l, err := v.lead(ctx, req.Expr, true)
	if err != nil || l == nil {
		return nil, false, err
	}
	rows := int64(2*req.Limit + walkSpare)
	for done := l.lower > l.upper; !done; rows *= walkGrowth {
		list, done, err = v.walk(ctx, l, rows, req, list)
		if errors.Is(err, driver.ErrUnsupported) {
			return nil, false, nil // without legs the statement is shorter
		}
		if err != nil {
			return nil, false, err
		}
	}
	return list, true, nil
}

// walk reads rows versions of a leading term, the newest that begin up to its
// last block, adds the results among them to a list, and lowers that block. It
// reports whether no other version can be a result.
func (v view) walk(
	ctx context.Context, l *lead, rows int64, req layout.Request, list []result,
) (_ []result, done bool, err error) {
	c := v.compiler()
	c.row = "w"
	sequence := "(SELECT s.value FROM numeric_attributes AS s" +
		" WHERE " + c.same("s") + " AND s.key = '" + entity.AttrSequence + "')"
	c.versions(l, "w.entity_key AS k, w.from_block AS f, "+sequence+" AS s", rows, func() {
		c.write(" AND w.to_block > ?", c.at)
		if len(l.rest) > 0 {
			c.write(" AND ")
			c.join(" AND ", l.rest)
		}
	})
	s, args, err := c.finish()
	if err != nil {
		return nil, false, err
	}
	var n int64
	err = statement.Each(ctx, v.q, s, args, func(r driver.Rows) error {
		var key []byte
		var from int64
		var e result
		if err := r.Scan(&key, &from, &e.sequence); err != nil {
			return err
		}
		if n++; len(key) != len(e.key) || uint64(from) > l.upper {
			return fmt.Errorf("%w: version of block %d of 0x%x after one of block %d",
				driver.ErrCorrupt, from, key, l.upper)
		}
		e.key, l.upper = entity.Key(key), uint64(from)
		if len(list) == req.Limit && list[req.Limit-1].sequence>>32 > l.upper {
			done = true
			return statement.ErrEnough
		}
		if req.After == nil || newestFirst(e, result{req.After.Key, req.After.Sequence}) > 0 {
			list = insert(list, e, req.Limit)
		}
		return nil
	})
	return list, done || n < rows, err
}

// insert inserts a result into a sorted list of bounded length, unless it is
// already there. Two walks that meet in a block both find it, and so do two
// legs of one value.
func insert(list []result, e result, most int) []result {
	at, has := slices.BinarySearchFunc(list, e, newestFirst)
	if has || at == most {
		return list
	}
	list = slices.Insert(list, at, e)
	return list[:min(len(list), most)]
}

// fetch yields the entities of a list, reading several at a time.
func (v view) fetch(
	ctx context.Context, list []result, content bool, yield func(*entity.Entity, error) bool,
) {
	for some := range slices.Chunk(list, fetchSize) {
		found, err := v.fetchSome(ctx, some, content)
		for _, r := range some {
			e := found[r.key]
			if err == nil && e == nil {
				err = fmt.Errorf("%w: no payload of %s at block %d", driver.ErrCorrupt, r.key, v.at)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (v view) fetchSome(
	ctx context.Context, list []result, content bool,
) (found map[entity.Key]*entity.Entity, err error) {
	keys := make([]any, fetchSize) // of one length, so that one statement is prepared
	for i := range keys {
		keys[i] = list[min(i, len(list)-1)].key[:]
	}
	c := v.compiler()
	c.write(c.selectColumns(content) + " FROM payloads AS e")
	c.where(nil)
	c.write(" AND e.entity_key IN "+placeholders(fetchSize), keys...)
	found = map[entity.Key]*entity.Entity{}
	v.stream(ctx, driver.Statement{Text: c.sql.String()}, c.args, content, func(e *entity.Entity, failed error) bool {
		if err = failed; err == nil {
			found[e.Key] = e
		}
		return err == nil
	})
	return found, err
}
