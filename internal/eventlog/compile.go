package eventlog

import (
	"math/bits"
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
	kind := byte('g')
	if it.any {
		kind = 'o'
	}
	return strconv.AppendInt(append(to, kind), int64(len(it.tags)), 10)
}

// span is a range of positions with an order.
type span struct {
	backwards bool
	bounded   bool // both ends are given, else only the lower one
}

// bounds are the comparisons with the ends of a span.
func (s span) bounds(column string) string {
	if s.bounded {
		return column + " > ? AND " + column + " < ?"
	}
	return column + " > ?"
}

// unpostedRange are the events without postings. There are few, and its second end, which
// no position reaches, says so to Postgres' planner: of a range with one end that it cannot
// know it expects a third of the table, and starts helpers or reads it all.
const unpostedRange = "events.position > (SELECT position FROM event_index) AND events.position < 9223372036854775807"

// predicate compares an event itself with an item.
func (l *Log) predicate(it *Item) string {
	text := typeList("events.type", len(it.types))
	if it.any {
		return and(text, "("+l.hasTag()+strings.Repeat(" OR "+l.hasTag(), len(it.tags)-1)+")")
	}
	for range it.tags {
		text = and(text, l.hasTag())
	}
	return text
}

// hasTag looks for a tag between separators among all tags of an event.
func (l *Log) hasTag() string {
	switch l.dialect {
	case driver.SQLite:
		return "instr(char(31) || events.tags || char(31), ?) > 0"
	case driver.DuckDB:
		return "contains(chr(31) || events.tags || chr(31), ?)"
	}
	return "strpos(chr(31) || events.tags || chr(31), ?) > 0"
}

// predicateArgs appends the arguments of a predicate.
func predicateArgs(to []any, it *Item) []any {
	for _, typ := range it.types {
		to = append(to, typ)
	}
	for _, tag := range it.tags {
		to = append(to, separator+tag+separator)
	}
	return to
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

// and joins terms that are not empty.
func and(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " AND " + b
}

func order(column string, backwards bool) string {
	if backwards {
		return " ORDER BY " + column + " DESC"
	}
	return " ORDER BY " + column
}

// limit bounds the rows of a statement, and says which of its texts that is. To SQLite
// the bound is an argument: its planner looks at one that stands alone, and so compiles
// the statement anew each time it is given one. Servers keep no plan of a statement that
// has its limit as an argument; they are given a power of two.
func (l *Log) limit(n int) (text string, shape byte, args []any) {
	if l.dialect == driver.SQLite {
		return " LIMIT +?", 0, []any{int64(n)}
	}
	shape = byte(bits.Len(uint(max(n, 1) - 1)))
	return " LIMIT " + strconv.FormatUint(1<<shape, 10), shape, nil
}

func flag(b bool) byte {
	if b {
		return '1'
	}
	return '0'
}
