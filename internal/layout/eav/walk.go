package eav

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/internal/statement"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// Bounds of walks.
const (
	maxWalked = 4096 // the largest limit of a query that walks
	maxLegs   = 32   // values that are walked side by side
)

// walk finds the newest matches without reading all of them. Results come newest
// creation first, and the layout has no index in that order. But no version is older
// than its entity, and what a term finds lies in an index in the order of versions'
// first blocks. So the versions that one term finds are read from the newest on and
// tried by the other terms; and when the last of as many as are wanted was created
// after the first block of the version read last, none that follows comes before it.
// Read in vain is only what was created long ago and changed lately.
type walk struct {
	table        string
	legs         []leg
	rest         conjunction // of the versions
	lower, upper int64       // first and last block in which they begin
}

// part is which of a walk's versions a statement reads.
type part struct {
	lower, upper   int64  // first and last block in which they begin
	oldest, newest uint64 // sequences of their entities
	rows           int64  // at most; -1 for all
}

// partArgs is how many values bound a part in a leg of its statement.
const partArgs = 3

// leg is versions with one attribute, neighbours in an index that has them in the order
// of their first blocks. The columns are written so that SQLite takes that index.
type leg struct {
	name       string
	key, value string
	values     []condition
}

// walk returns how the newest matches of a request are found, or nil when there is no
// index for it, or when so few match that they may as well be sorted.
func (v view) walk(ctx context.Context, req layout.Request) (*walk, error) {
	if !v.walks() || len(req.Order) > 0 || req.Limit > maxWalked {
		return nil, nil
	}
	n, t := node(always), translator{dialect: v.dialect}
	if req.Expr != nil {
		n = t.expr(req.Expr)
	}
	if t.err != nil || v.dialect.maxConditions > 0 && t.conditions > v.dialect.maxConditions {
		return nil, nil // prepare says what is wrong
	}
	w := walker{view: v, walk: walk{upper: int64(v.at)}, most: max(1, maxLegs/max(1, t.conditions))}
	if !w.split(n) {
		return nil, nil
	}
	found, err := w.choose(ctx, req.Limit)
	if err != nil || !found {
		return nil, err
	}
	if len(w.legs) == 0 {
		return &w.walk, nil // a term is true of no value
	}
	attributes(w.rest, func(a *attribute) { a.lookup = true })
	return &w.walk, nil
}

// walks tells whether the layout has what every walk needs.
func (l *Layout) walks() bool {
	if !l.dialect.walks || !l.schema.Temporal {
		return false
	}
	for _, a := range l.access {
		if !a.byEntity {
			return false
		}
	}
	return true
}

// walker chooses the term that is walked.
type walker struct {
	view
	walk
	most   int          // legs, each of which repeats all other terms
	equal  []*attribute // terms that name values of an attribute, so many at most
	ranges []*attribute // the others
}

// split sorts the terms of a condition. It returns false for one that keys answer, or
// that has no term which finds versions.
func (w *walker) split(n node) bool {
	terms, ok := n.(conjunction)
	if !ok {
		terms = conjunction{n}
	}
	for _, term := range terms {
		switch term := term.(type) {
		case literal:
			if term == never {
				return false
			}
		case version:
			if term.byKey {
				return false
			}
			if !w.within(term) {
				w.rest = append(w.rest, term)
			}
		case *attribute:
			if n := len(term.equals()); 0 < n && n <= w.most {
				w.equal = append(w.equal, term)
			} else {
				w.ranges = append(w.ranges, term)
			}
		default:
			w.rest = append(w.rest, term)
		}
	}
	found := len(w.equal) + len(w.ranges)
	onlyVersions := !slices.ContainsFunc(w.rest, func(n node) bool { _, ok := n.(version); return !ok })
	return found > 0 && found <= maxMeasured || found == 0 && onlyVersions
}

// within narrows the blocks in which versions begin to those of a term, where that says
// which. Of two bounds in a statement SQLite would search by either.
func (w *walk) within(v version) bool {
	if len(v.args) != 1 {
		return false
	}
	n := v.args[0].(int64)
	switch v.test {
	case " < ?":
		w.upper = min(w.upper, n-1)
	case " <= ?":
		w.upper = min(w.upper, n)
	case " >= ?":
		w.lower = max(w.lower, n)
	case " > ?":
		if n == math.MaxInt64 {
			w.upper = -1
		}
		w.lower = max(w.lower, min(n, math.MaxInt64-1)+1)
	case " = ?":
		w.lower, w.upper = max(w.lower, n), min(w.upper, n)
	default:
		return false
	}
	return true
}

// choose sets the legs. Without a limit all matches are read, so that there must be few.
func (w *walker) choose(ctx context.Context, limit int) (bool, error) {
	switch {
	case len(w.equal) > 0:
		return w.chooseEqual(ctx, limit)
	case limit == 0:
		return false, nil
	case len(w.ranges) > 0:
		return w.chooseRange(ctx)
	}
	w.table, w.legs = "numeric_attributes", w.everything()
	return len(w.legs) > 0, nil
}

// anyFew tells whether one of some terms is true of few versions.
func (w *walker) anyFew(ctx context.Context, terms []*attribute) (bool, error) {
	if len(terms) == 0 {
		return false, nil
	}
	p := planner{l: w.Layout, q: w.q}
	err := p.measure(ctx, terms, firstLimit)
	return slices.ContainsFunc(terms, func(a *attribute) bool { return a.few(firstLimit) }), err
}

// everything returns the leg of all versions, each of which has a sequence.
func (w *walker) everything() []leg {
	switch access := w.access["numeric_attributes"]; {
	case access.byName:
		return []leg{{name: entity.AttrSequence, key: "a.key"}}
	case access.byBlock:
		return []leg{{name: entity.AttrSequence, key: w.dialect.hidden("a.key")}}
	}
	return nil
}

// chooseEqual walks the term that is true of the fewest versions or, if all are true of
// many, of the fewest among the newest: the one whose newest thousand reach back furthest.
func (w *walker) chooseEqual(ctx context.Context, limit int) (bool, error) {
	if few, err := w.anyFew(ctx, w.ranges); few || err != nil {
		return false, err // it finds them
	}
	if limit == 0 {
		if few, err := w.anyFew(ctx, w.equal); !few || err != nil {
			return false, err
		}
	}
	best, fewest, furthest := -1, int64(math.MaxInt64), int64(0)
	for i, a := range w.equal {
		switch {
		case !w.access[a.table].newest:
			continue
		case len(w.equal) == 1:
			best = i
			continue
		}
		entries, reach, err := w.reach(ctx, a)
		if err != nil {
			return false, err
		}
		if best < 0 || cmp.Or(cmp.Compare(entries, fewest), cmp.Compare(reach, furthest)) < 0 {
			best, fewest, furthest = i, entries, reach
		}
	}
	if best < 0 {
		return false, nil
	}
	a := w.equal[best]
	w.take(a, a.legs(w.dialect, a.equals()))
	return true, nil
}

// reach returns of how many versions a term is true, among the newest so many, and in
// which block the first of these begins. Versions that ended count, so that this costs
// no more than it says.
func (w *walker) reach(ctx context.Context, a *attribute) (entries, first int64, err error) {
	c := compiler{l: w.Layout}
	c.write("SELECT count(*), coalesce(min(f), 0) FROM (")
	p := part{lower: w.lower, upper: w.upper, rows: firstLimit}
	c.legs(&walk{table: a.table, legs: a.legs(w.dialect, a.equals())}, p, "a.from_block AS f", func() {})
	c.write(") AS n")
	text, args, err := c.finish()
	if err == nil {
		err = driver.QueryRow(ctx, w.q, text, args, &entries, &first)
	}
	return entries, first, err
}

// chooseRange walks a term that is true of a few values, each of them by itself, or
// else all versions that have the attribute.
func (w *walker) chooseRange(ctx context.Context) (bool, error) {
	few, err := w.anyFew(ctx, w.ranges)
	if err != nil || few && len(w.ranges) > 1 {
		return false, err // that one finds them
	}
	for _, a := range w.ranges {
		if !w.access[a.table].newest || len(a.equals()) > 0 {
			continue
		}
		values, err := w.distinct(ctx, a)
		if err != nil {
			return false, err
		}
		if len(values) <= w.most {
			w.take(a, a.legs(w.dialect, values))
			return true, nil
		}
	}
	for _, a := range w.ranges {
		if !few && w.access[a.table].byName {
			w.take(a, []leg{{name: a.name, key: "a.key", value: w.dialect.hidden("a.value"), values: a.values}})
			return true, nil
		}
	}
	return false, nil
}

// distinct returns the values of an attribute among which are all that a term is true
// of, or one more than may be walked side by side. Each costs one search.
func (w *walker) distinct(ctx context.Context, a *attribute) (values []any, err error) {
	within, c := a.indexed(), compiler{l: w.Layout}
	column := "v"
	if a.table == "string_attributes" {
		column = w.dialect.text(column)
	}
	from := " FROM " + a.table + " AS a WHERE a.key = ?"
	c.write("WITH RECURSIVE d (v) AS (SELECT min(a.value)"+from, a.name)
	c.values(within, "a.value")
	c.write(" UNION ALL SELECT (SELECT min(a.value)"+from+" AND a.value > d.v) FROM d WHERE d.v IS NOT NULL", a.name)
	c.values(within, "d.v")
	c.write(") SELECT " + column + " FROM d WHERE v IS NOT NULL")
	c.values(within, "v")
	c.write(" LIMIT ?", int64(w.most+1))
	text, args, err := c.finish()
	if err != nil {
		return nil, err
	}
	err = statement.Each(ctx, w.q, text, args, func(rows driver.Rows) (err error) {
		var text []byte
		var n uint64
		if a.table == "numeric_attributes" {
			err = rows.Scan(&n)
			values = append(values, n)
		} else {
			err = rows.Scan(&text)
			values = append(values, string(text))
		}
		return err
	})
	return values, err
}

// take walks the legs of a term, and leaves the others to try versions by.
func (w *walker) take(a *attribute, legs []leg) {
	w.table, w.legs = a.table, legs
	for _, other := range slices.Concat(w.equal, w.ranges) {
		if other != a {
			w.rest = append(w.rest, other)
		}
	}
}

// walkSQL returns the statement that reads a part of a walk. On SQLite the versions come in
// the order of the first table of the join; the caller checks it. It fails with
// driver.ErrUnsupported when a part has too many values, or one that may follow it.
func (v view) walkSQL(w *walk, p part) (string, []any, error) {
	c := compiler{l: v.Layout, at: int64(v.at)}
	sequence := "(SELECT s.value FROM numeric_attributes AS s WHERE s.entity_key = a.entity_key AND s.key = '$sequence' AND s.from_block = a.from_block)"
	if w.legs[0].name == entity.AttrSequence {
		sequence = v.dialect.hidden("a.value")
	}
	c.write(v.selectColumns("q", false) + ", length(q.payload) FROM (")
	c.legs(w, p, "a.entity_key AS k, a.from_block AS f", func() {
		c.write(" AND a.to_block > ?", c.at)
		if len(w.rest) > 0 {
			c.write(" AND ")
			c.join(" AND ", w.rest, place{row: "a", inner: "b", driven: true})
		}
		if p.oldest > 0 || p.newest < math.MaxUint64 {
			c.write(" AND "+sequence+" BETWEEN ? AND ?", p.oldest, p.newest)
		}
	})
	c.write(") AS x LEFT JOIN payloads AS q ON q.entity_key = x.k AND q.from_block = x.f")
	if !v.dialect.rowid {
		c.write(" ORDER BY x.f DESC")
	}
	if p.oldest == 0 && len(c.args)+partArgs*len(w.legs) > maxArgs {
		return "", nil, driver.ErrUnsupported
	}
	return c.finish()
}

// legs writes that some columns of a part of the legs are wanted, from the newest version
// on, and what further is to be true of it. SQLite merges legs by their indexes; others
// take as many of each as of all.
func (c *compiler) legs(w *walk, p part, columns string, further func()) {
	each := !c.l.dialect.rowid && len(w.legs) > 1
	for i, g := range w.legs {
		if i > 0 {
			c.write(" UNION ALL ")
		}
		if each {
			c.write("(")
		}
		c.write("SELECT "+columns+" FROM "+w.table+" AS a WHERE "+g.key+" = ?", g.name)
		c.values(g.values, g.value)
		c.write(" AND a.from_block <= ?", p.upper)
		if p.lower > 0 {
			c.write(" AND a.from_block >= ?", p.lower)
		}
		further()
		if each {
			c.newest(p.rows)
			c.write(")")
		}
	}
	c.newest(p.rows)
}

// newest writes that so many are wanted, from the newest version on; all if it is negative.
func (c *compiler) newest(rows int64) {
	limit := any(rows)
	if rows < 0 && c.l.dialect.name == driver.Postgres {
		limit = nil
	}
	c.write(" ORDER BY f DESC LIMIT ?", limit)
}
