package eav

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/varvedb/varve/store/driver"
)

// Bounds of the measurements that a planner takes.
const (
	firstLimit  = 1000   // entries counted of each attribute before it counts as large
	limitGrowth = 8      // and how many times more, when all are large
	maxMeasured = 16     // attributes measured together
	maxPlanned  = 16     // conjunctions planned in one query
	fewRows     = 64     // so few that looking up attributes takes less time than measuring
	lookupCost  = 2      // rows of a list that are made in the time of one lookup, at least
	maxSorted   = 64_000 // matches that are sorted rather than read in order
)

// driven is a conjunction one of whose terms finds the entities; the others only
// sort some out.
type driven struct {
	driver node
	rest   conjunction
}

// planner decides, where an engine's planner does not, how a condition is
// evaluated. SQLite makes the whole list of an IN, whatever stands beside it;
// with hundreds of thousands of entities a conjunction takes seconds, though a
// term may be true of five of them. So a list is made of the term with the fewest
// entities, and for the others, unless their lists are about as short, each of
// those entities is looked at. There are no statistics, unless a layout gathers
// them, and so index entries are counted: no more than some multiple of what the
// list will have, at a hundredth of the cost.
type planner struct {
	l    *Layout
	q    driver.Querier
	left int // conjunctions that may still be planned
}

// plan replaces conjunctions by driven ones. Conjunctions within those are left
// alone: their attributes are looked up.
func (p *planner) plan(ctx context.Context, n node) (node, error) {
	switch n := n.(type) {
	case conjunction:
		return p.conjunction(ctx, n)
	case disjunction:
		terms, err := p.terms(ctx, n)
		return disjunction(terms), err
	case negation:
		term, err := p.plan(ctx, n.term)
		return negation{term}, err
	}
	return n, nil
}

func (p *planner) terms(ctx context.Context, list []node) ([]node, error) {
	planned := make([]node, len(list))
	for i, n := range list {
		var err error
		if planned[i], err = p.plan(ctx, n); err != nil {
			return nil, err
		}
	}
	return planned, nil
}

func (p *planner) conjunction(ctx context.Context, n conjunction) (node, error) {
	best, rows, err := p.driver(ctx, n)
	if err != nil {
		return nil, err
	}
	if best < 0 {
		terms, err := p.terms(ctx, n)
		return conjunction(terms), err
	}
	d := driven{driver: n[best], rest: slices.Delete(slices.Clone(n), best, best+1)}
	if err := p.settle(ctx, d.rest, rows); err != nil {
		return nil, err
	}
	slices.SortStableFunc(d.rest, func(a, b node) int { return cmp.Compare(cost(a), cost(b)) })
	return d, nil
}

// driver returns which term of a conjunction finds the fewest entities, and how
// many, or -1 when none is better than another.
func (p *planner) driver(ctx context.Context, n conjunction) (best, rows int, err error) {
	best, rows = -1, math.MaxInt
	var candidates []*attribute
	comparing := 0
	for i, term := range n {
		switch term := term.(type) {
		case version:
			if term.byKey && len(term.args) < rows {
				best, rows = i, len(term.args)
			}
		case *attribute:
			comparing++
			if p.l.access[term.table].byValue && len(candidates) < maxMeasured {
				candidates = append(candidates, term)
			}
		case disjunction, negation:
			comparing++
		}
	}
	useless := comparing == 0 || comparing == 1 && best < 0
	if useless || p.left == 0 {
		return -1, 0, nil
	}
	p.left--
	if rows <= firstLimit {
		return best, rows, nil
	}
	return p.smallest(ctx, n, candidates, best, rows)
}

// smallest counts until one of the candidates is known to be smaller than the
// others, and returns it if it is smaller than the best term so far.
func (p *planner) smallest(ctx context.Context, n conjunction, candidates []*attribute, best, rows int) (int, int, error) {
	if len(candidates) == 0 {
		return best, rows, nil
	}
	for limit := firstLimit; ; limit *= limitGrowth {
		if err := p.measure(ctx, candidates, limit); err != nil {
			return -1, 0, err
		}
		least := slices.MinFunc(candidates, func(a, b *attribute) int { return cmp.Compare(a.entries, b.entries) })
		switch {
		case least.few(rows):
			return slices.Index(n, node(least)), least.entries, nil
		case limit >= rows:
			return best, rows, nil
		}
	}
}

// settle decides how the attributes of conditions are found of which a number
// of rows is tried: by looking each up, or by a list if that is shorter.
func (p *planner) settle(ctx context.Context, terms conjunction, rows int) error {
	var all, open []*attribute
	short := lookupCost * rows
	attributes(terms, func(a *attribute) {
		access := p.l.access[a.table]
		if !access.byEntity {
			return // it stays a list
		}
		all = append(all, a)
		undecided := a.counted < short && a.entries == a.counted
		if undecided && access.byValue && len(open) < maxMeasured {
			open = append(open, a)
		}
	})
	if rows > fewRows && len(open) > 0 {
		if err := p.measure(ctx, open, short); err != nil {
			return err
		}
	}
	// The first lookup brings in the pages for the others, which cost less.
	if slices.ContainsFunc(all, func(a *attribute) bool { return !a.few(short) }) {
		short = rows
	}
	for _, a := range all {
		a.lookup = !a.few(short)
	}
	return nil
}

// cost puts terms into the order in which they are tried: those that are true
// of few entities first.
func cost(n node) int {
	switch n := n.(type) {
	case literal, version:
		return -1
	case *attribute:
		if n.few(math.MaxInt) {
			return n.entries
		}
		return math.MaxInt - 1
	}
	return math.MaxInt
}

// measure counts the index entries that lead to attributes, up to a limit each.
func (p *planner) measure(ctx context.Context, list []*attribute, limit int) error {
	c := compiler{l: p.l}
	for i, a := range list {
		if i == 0 {
			c.write("SELECT ")
		} else {
			c.write(", ")
		}
		c.write("(SELECT count(*) FROM (SELECT 1 FROM "+a.table+" AS a WHERE a.key = ?", a.name)
		c.values(a.indexed(), "a.value")
		c.write(" LIMIT ?) AS n)", int64(limit))
	}
	text, args, err := c.finish()
	if err != nil {
		return err
	}
	counts := make([]int64, len(list))
	dest := make([]any, len(list))
	for i := range counts {
		dest[i] = &counts[i]
	}
	if err := driver.QueryRow(ctx, p.q, text, args, dest...); err != nil {
		return fmt.Errorf("count index entries: %w", err)
	}
	for i, a := range list {
		a.entries, a.counted = int(counts[i]), limit
	}
	return nil
}
