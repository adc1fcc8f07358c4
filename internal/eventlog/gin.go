package eventlog

import (
	"context"
	"strings"

	"github.com/varvedb/varve/store/driver"
)

// In the layout "gin" the engine's own index finds events, and one statement
// answers a query: the union of its branches.

// branch is a SELECT of events that an item matches, without its list of columns:
// one for each type of an item that has only types, since an index gives those of
// one type in order.
type branch struct{ from, where string }

// branches returns the branches of an item. The arguments of each are those of
// branchArgs.
func branches(it *Item, s span) []branch {
	bounds := s.bounds("events.position")
	switch {
	case len(it.tags) == 0 && len(it.types) == 0:
		return []branch{{"events", bounds}}
	case len(it.tags) == 0:
		list := make([]branch, len(it.types))
		for i := range list {
			list[i] = branch{"events", "events.type = ? AND " + bounds}
		}
		return list
	}
	// OFFSET 0 keeps the planner from walking the events in order of position
	// until one has the tags, which it takes to be many. Inside, it may choose the
	// positions when these are few.
	return []branch{{
		from:  "(SELECT * FROM events WHERE tag_array @> string_to_array(?, chr(31)) AND " + bounds + " OFFSET 0) AS events",
		where: typeList("events.type", len(it.types)),
	}}
}

// text selects a column of a branch's events, in order, as many as an argument
// says.
func (b *branch) text(column string, s span) string {
	text := "SELECT " + column + " FROM " + b.from
	if b.where != "" {
		text += " WHERE " + b.where
	}
	return text + order("events.position", s.backwards) + " LIMIT ?"
}

// branchArgs appends the arguments of each branch of an item, in which the bounds
// come before the types only where there are tags.
func branchArgs(to []any, it *Item, bounds []any, limit int64) []any {
	if len(it.tags) == 0 {
		for _, typ := range it.types {
			to = append(append(append(to, typ), bounds...), limit)
		}
		if len(it.types) == 0 {
			to = append(append(to, bounds...), limit)
		}
		return to
	}
	to = append(append(to, strings.Join(it.tags, separator)), bounds...)
	for _, typ := range it.types {
		to = append(to, typ)
	}
	return append(to, limit)
}

// readGIN reads a page.
func (l *Log) readGIN(ctx context.Context, q driver.Querier, p *Page, to *pageEvents) error {
	s := p.span()
	shape := append(make([]byte, 0, 32), 'r', flag(s.backwards), flag(s.bounded))
	var args []any
	for i := range p.Items {
		shape = p.Items[i].shape(shape)
		args = branchArgs(args, &p.Items[i], p.bounds(), int64(p.Limit))
	}
	args = append(args, int64(p.Limit))
	text := l.texts.get(shape, func() string { return l.ginText(p.Items, s) })
	return to.read(ctx, q, text, args)
}

func (l *Log) ginText(items []Item, s span) string {
	var parts []string
	for i := range items {
		for _, b := range branches(&items[i], s) {
			parts = append(parts, "SELECT position FROM ("+b.text("events.position", s)+") AS b")
		}
	}
	return "SELECT " + l.columns() + " FROM (" + strings.Join(parts, " UNION ") + order("position", s.backwards) +
		" LIMIT ?) AS p, events WHERE events.position = p.position" + order("events.position", s.backwards)
}

// probeSizes are the probes of one statement, largest first: few statements, and
// few different texts.
var probeSizes = []int{32, 8, 4, 2, 1}

// probeGIN answers probes. Those of one shape share statements, so that a group of
// appends costs few.
func (l *Log) probeGIN(ctx context.Context, q driver.Querier, probes []*Probe) error {
	sortProbes(probes)
	for len(probes) > 0 {
		first := probes[0].Item
		n := 1
		for n < len(probes) && sameShape(first, probes[n].Item) {
			n++
		}
		alike := probes[:n]
		for _, size := range probeSizes {
			for len(alike) >= size {
				if err := l.probeSome(ctx, q, alike[:size]); err != nil {
					return err
				}
				alike = alike[size:]
			}
		}
		probes = probes[n:]
	}
	return nil
}

func (l *Log) probeSome(ctx context.Context, q driver.Querier, probes []*Probe) error {
	it := probes[0].Item
	shape := it.shape(append(make([]byte, 0, 16), 'p', byte(len(probes))))
	text := l.texts.get(shape, func() string { return probeText(it, len(probes)) })
	args := make([]any, 0, 8*len(probes))
	for _, p := range probes {
		args = branchArgs(args, p.Item, []any{position(p.After)}, 1)
	}
	found := make([]int64, len(probes))
	dests := make([]any, len(probes))
	for i := range found {
		dests[i] = &found[i]
	}
	if err := driver.QueryRow(ctx, q, text, args, dests...); err != nil {
		return err
	}
	for i, p := range probes {
		p.Found = uint64(found[i])
	}
	return nil
}

// probeText selects one number for each probe.
func probeText(it *Item, n int) string {
	list := branches(it, span{})
	terms := make([]string, len(list))
	for i, b := range list {
		terms[i] = "(" + b.text("events.position", span{}) + ")"
	}
	one := "coalesce(" + strings.Join(append(terms, "0"), ", ") + ")"
	return "SELECT " + one + strings.Repeat(", "+one, n-1)
}
