package eventlog

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
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
	case len(it.tags) == 0 && len(it.types) > maxArms:
		return []branch{{"events", "events.type = ANY (CAST(? AS TEXT[])) AND " + bounds}}
	case len(it.tags) == 0:
		list := make([]branch, len(it.types))
		for i := range list {
			list[i] = branch{"events", "events.type = ? AND " + bounds}
		}
		return list
	}
	// OFFSET 0: see ginText.
	return []branch{{
		from:  "(SELECT * FROM events WHERE " + ginTags(it) + " AND " + bounds + " OFFSET 0) AS events",
		where: ginTypes(len(it.types)),
	}}
}

// ginTypes compares with types, many of them in one argument.
func ginTypes(n int) string {
	if n > maxArms {
		return "events.type = ANY (CAST(? AS TEXT[]))"
	}
	return typeList("events.type", n)
}

// ginTypeArgs are the arguments of ginTypes.
func ginTypeArgs(to []any, types []string) []any {
	if len(types) > maxArms {
		return append(to, textArray(types))
	}
	for _, typ := range types {
		to = append(to, typ)
	}
	return to
}

var escapeElement = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// textArray writes an array of texts as Postgres reads it.
func textArray(list []string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, s := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('"')
		_, _ = escapeElement.WriteString(&b, s) // it never fails
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
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
	switch {
	case len(it.tags) > 0:
		to = append(append(to, strings.Join(it.tags, separator)), bounds...)
		return append(ginTypeArgs(to, it.types), limit)
	case len(it.types) == 0:
		return append(append(to, bounds...), limit)
	case len(it.types) > maxArms:
		return append(append(ginTypeArgs(to, it.types), bounds...), limit)
	}
	for _, typ := range it.types {
		to = append(append(append(to, typ), bounds...), limit)
	}
	return to
}

// ginItems bounds the items of one statement, by its text.
const ginItems = 64

// readGIN reads a page. A query of very many items is several statements, each of the
// whole page.
func (l *Log) readGIN(ctx context.Context, q driver.Querier, p *Page, to *pageEvents) error {
	if len(p.Items) <= ginItems {
		return l.readItems(ctx, q, p, p.Items, to)
	}
	cut := uint64(0) // what comes behind may have gaps
	for items := range slices.Chunk(p.Items, ginItems) {
		part := l.newPageEvents(p)
		if err := l.readItems(ctx, q, p, items, &part); err != nil {
			return err
		}
		to.list, to.head = append(to.list, part.list...), max(to.head, part.head)
		if n := len(part.list); part.full || n == p.Limit {
			if last := part.list[n-1].Position; cut == 0 || last < cut != p.Backwards {
				cut = last
			}
		}
	}
	slices.SortFunc(to.list, func(a, b event.Sequenced) int {
		if p.Backwards {
			a, b = b, a
		}
		return cmp.Compare(a.Position, b.Position)
	})
	to.list = slices.CompactFunc(to.list, func(a, b event.Sequenced) bool { return a.Position == b.Position })
	if to.full = cut > 0; to.full {
		to.list = slices.DeleteFunc(to.list, func(e event.Sequenced) bool { return e.Position != cut && cut < e.Position != p.Backwards })
	}
	to.list = to.list[:min(len(to.list), p.Limit)]
	return nil
}

// readItems reads a page with one statement.
func (l *Log) readItems(ctx context.Context, q driver.Querier, p *Page, items []Item, to *pageEvents) error {
	s, head := p.span(), l.headToo(p)
	limit, kind, _ := l.limit(p.Limit)
	shape := append(make([]byte, 0, 32), 'r', flag(s.backwards), flag(s.bounded), flag(head), kind)
	for i := range items {
		shape = items[i].ginShape(shape)
	}
	text := l.texts.get(shape, func() string { return withHead(l.ginText(items, s, limit), head) })
	return to.read(ctx, q, text, ginArgs(items, p.bounds()), nil)
}

// ginText selects the events of items: those of items with tags together, and those of
// each type alone. No two items have types only.
func (l *Log) ginText(items []Item, s span, limit string) string {
	var parts, tagged []string
	var types *Item
	end := order("events.position", s.backwards) + limit
	for i := range items {
		if it := &items[i]; len(it.tags) == 0 {
			types = it
			for _, b := range branches(it, s) {
				parts = append(parts, "SELECT "+l.columns()+" FROM events WHERE "+b.where+end)
			}
		} else {
			tagged = append(tagged, "("+and(ginTags(it), ginTypes(len(it.types)))+")")
		}
	}
	if len(tagged) > 0 {
		where := s.bounds("events.position") + " AND (" + strings.Join(tagged, " OR ") + ")"
		if types != nil {
			where += " AND NOT (" + ginTypes(len(types.types)) + ")"
		}
		// OFFSET 0 keeps the planner from walking the events in order of position
		// until one has the tags, which it takes to be many. Inside, it may choose the
		// positions when these are few.
		parts = append(parts, "SELECT "+l.columns()+" FROM (SELECT * FROM events WHERE "+where+" OFFSET 0) AS events"+end)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "SELECT * FROM (" + strings.Join(parts, ") AS p UNION ALL SELECT * FROM (") + ") AS p" + order("1", s.backwards) + limit
}

// ginArgs are the arguments of ginText.
func ginArgs(items []Item, bounds []any) (args []any) {
	var types []any
	tags := slices.Clone(bounds)
	for i := range items {
		it := &items[i]
		switch {
		case len(it.tags) > 0:
			tags = ginTypeArgs(append(tags, strings.Join(it.tags, separator)), it.types)
		case len(it.types) > maxArms:
			types = ginTypeArgs(nil, it.types)
			args = append(append(args, types...), bounds...)
		default:
			types = ginTypeArgs(nil, it.types)
			for _, typ := range types {
				args = append(append(args, typ), bounds...)
			}
		}
	}
	if len(tags) == len(bounds) {
		return args
	}
	return append(append(args, tags...), types...)
}

// ginTags compares with the tags of an item, in one argument.
func ginTags(it *Item) string {
	if it.any {
		return "tag_array && string_to_array(?, chr(31))"
	}
	return "tag_array @> string_to_array(?, chr(31))"
}

// ginShape appends what the SQL of an item depends on.
func (it *Item) ginShape(to []byte) []byte {
	to = append(to, byte(min(len(it.types), maxArms+1)))
	switch {
	case len(it.tags) == 0:
		return append(to, '0')
	case it.any:
		return append(to, '|')
	}
	return append(to, '&')
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
	shape := it.ginShape(append(make([]byte, 0, 16), 'p', byte(len(probes))))
	text := l.texts.get(shape, func() string { return probeText(it, len(probes), span{}) })
	args := make([]any, 0, 8*len(probes))
	for _, p := range probes {
		args = branchArgs(args, p.Item, []any{position(p.After)}, 1)
	}
	found, err := numbers(ctx, q, text, args, len(probes))
	for i, p := range probes {
		p.Found = uint64(found[i])
	}
	return err
}

// numbers returns the integers of the only row.
func numbers(ctx context.Context, q driver.Querier, text string, args []any, n int) ([]int64, error) {
	found := make([]int64, n)
	dests := make([]any, n)
	for i := range found {
		dests[i] = &found[i]
	}
	err := driver.QueryRow(ctx, q, text, args, dests...)
	return found, err
}

// probeText selects one number for each probe: of the first event in the span's order
// that one of the branches finds, for an item of several types of any of them unless
// the last event is asked for.
func probeText(it *Item, n int, s span) string {
	list := branches(it, s)
	terms := make([]string, len(list))
	for i, b := range list {
		terms[i] = "(" + b.text("events.position", s) + ")"
	}
	one := "coalesce(" + strings.Join(append(terms, "0"), ", ") + ")"
	if s.backwards {
		one = "coalesce(greatest(" + strings.Join(terms, ", ") + "), 0)"
	}
	return "SELECT " + one + strings.Repeat(", "+one, n-1)
}

// lastGIN returns the position of the last event that matches each item, zero when
// there is none. Items of one shape share statements.
func (l *Log) lastGIN(ctx context.Context, q driver.Querier, p *Page) ([]uint64, error) {
	alike := map[string][]int{}
	for i := range p.Items {
		shape := string(p.Items[i].ginShape(nil))
		alike[shape] = append(alike[shape], i)
	}
	found := make([]uint64, len(p.Items))
	for _, list := range alike {
		for _, size := range probeSizes {
			for len(list) >= size {
				if err := l.lastSome(ctx, q, p, list[:size], found); err != nil {
					return nil, err
				}
				list = list[size:]
			}
		}
	}
	return found, nil
}

func (l *Log) lastSome(ctx context.Context, q driver.Querier, p *Page, list []int, found []uint64) error {
	s := span{backwards: true, bounded: p.Before > 0}
	it := &p.Items[list[0]]
	shape := it.ginShape(append(make([]byte, 0, 16), 'm', flag(s.bounded), byte(len(list))))
	text := l.texts.get(shape, func() string { return probeText(it, len(list), s) })
	var args []any
	for _, n := range list {
		args = branchArgs(args, &p.Items[n], p.bounds(), 1)
	}
	positions, err := numbers(ctx, q, text, args, len(list))
	for i, n := range list {
		found[n] = uint64(positions[i])
	}
	return err
}
