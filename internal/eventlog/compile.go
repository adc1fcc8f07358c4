package eventlog

import (
	"strconv"
	"strings"
	"sync"

	"github.com/varvedb/varve/store/driver"
)

// texts keeps the statements that were compiled, so that each shape has one text
// that engines have prepared already. A workload of ever new shapes starts over.
type texts struct {
	mu     sync.Mutex
	byName map[string]string
}

const maxTexts = 4096

func (t *texts) get(shape []byte, build func() string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text, ok := t.byName[string(shape)]
	if ok {
		return text
	}
	if t.byName == nil || len(t.byName) >= maxTexts {
		t.byName = map[string]string{}
	}
	text = build()
	t.byName[string(shape)] = text
	return text
}

// shape appends what the SQL of an item depends on.
func (it *Item) shape(to []byte) []byte {
	to = strconv.AppendInt(append(to, 'y'), int64(len(it.types)), 10)
	return strconv.AppendInt(append(to, 'g'), int64(len(it.tags)), 10)
}

// span is a range of positions with an order.
type span struct {
	backwards bool
	bounded   bool // both ends are given, else only the lower one
}

// branch is a SELECT of positions that an item matches, without its list of
// columns: one for each type of an item that has only types, since an index
// gives those of one type in order.
type branch struct {
	from, where, position string
}

// branches returns the branches of an item. The arguments of each are those of
// args.
func (l *Log) branches(it *Item) []branch {
	switch {
	case len(it.tags) == 0 && len(it.types) == 0:
		return []branch{{from: "events", position: "events.position"}}
	case len(it.tags) == 0:
		return repeat(branch{from: "events", where: "events.type = ?", position: "events.position"}, len(it.types))
	case l.tagged:
		return []branch{l.tagBranch(it)}
	}
	// OFFSET 0 keeps the planner from walking the events in order of position
	// until one has the tags, which it takes to be many.
	return []branch{{
		from:     "(SELECT * FROM events WHERE tag_array @> string_to_array(?, chr(31)) OFFSET 0) AS events",
		where:    typeList("events.type", len(it.types)),
		position: "events.position",
	}}
}

func repeat(b branch, n int) []branch {
	list := make([]branch, n)
	for i := range list {
		list[i] = b
	}
	return list
}

// tagBranch joins the tags of an item, the first one leading.
func (l *Log) tagBranch(it *Item) branch {
	b := branch{from: "event_tags AS t0", position: "t0.position", where: "t0.tag = ?"}
	for i := 1; i < len(it.tags); i++ {
		t := "t" + strconv.Itoa(i)
		b.from += l.crossJoin() + "event_tags AS " + t
		b.where += " AND " + t + ".tag = ? AND " + t + ".position = t0.position"
	}
	b.where += typeList(" AND t0.type", len(it.types))
	return b
}

// crossJoin is a join whose left side SQLite's planner keeps on the left.
func (l *Log) crossJoin() string {
	if l.dialect == driver.SQLite {
		return " CROSS JOIN "
	}
	return ", "
}

func typeList(column string, n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return column + " = ?"
	}
	return column + " IN (?" + strings.Repeat(", ?", n-1) + ")"
}

// args appends the arguments of each branch of an item: what it compares with,
// and then the rest, which is the same for all.
func (l *Log) args(to []any, it *Item, rest ...any) []any {
	if len(it.tags) == 0 {
		for _, typ := range it.types {
			to = append(append(to, typ), rest...)
		}
		if len(it.types) == 0 {
			to = append(to, rest...)
		}
		return to
	}
	if l.tagged {
		for _, t := range it.tags {
			to = append(to, t)
		}
	} else {
		to = append(to, strings.Join(it.tags, separator))
	}
	for _, typ := range it.types {
		to = append(to, typ)
	}
	return append(to, rest...)
}

// and joins terms that are not empty.
func and(a, b string) string {
	if a == "" {
		return b
	}
	return a + " AND " + b
}

// text returns a SELECT of the branch's positions above one argument, and below
// another if the span is bounded, in order, limited by a last argument.
func (b *branch) text(columns string, s span) string {
	where := and(b.where, b.position+" > ?")
	if s.bounded {
		where += " AND " + b.position + " < ?"
	}
	return "SELECT " + columns + " FROM " + b.from + " WHERE " + where + order(b.position, s.backwards) + " LIMIT ?"
}

func order(column string, backwards bool) string {
	if backwards {
		return " ORDER BY " + column + " DESC"
	}
	return " ORDER BY " + column
}
