package eventlog

import (
	"math/bits"
	"strconv"
)

// span is a range of positions with an order.
type span struct {
	backwards bool
	bounded   bool // both ends are given, else only the lower one
}

// bounds are the comparisons with the ends of a span.
func (s span) bounds() string {
	if s.bounded {
		return "events.position > ? AND events.position < ?"
	}
	return "events.position > ?"
}

func order(column string, backwards bool) string {
	if backwards {
		return " ORDER BY " + column + " DESC"
	}
	return " ORDER BY " + column
}

// limit returns the clause that bounds the rows of a statement, with a byte that
// distinguishes its texts. A compiled statement has the bound as an argument, with
// a plus sign, because SQLite compiles a statement again whenever the value of a
// bare LIMIT ? changes. Others keep no plan of a statement whose limit is an
// argument, so they get a power of two in the text.
func (l *Log) limit(n int) (text string, shape byte, args []any) {
	if l.traits.Compiled {
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
