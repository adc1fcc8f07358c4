package storetest

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// oddTexts are strings that engines, drivers or formats often get wrong. They
// look like another type, are empty, sort differently by case, by locale or by
// UTF-16 units, or have a meaning in SQL, JSON or a pattern.
var oddTexts = []string{
	"", " ", "  padded  ", "a", "A", "b", "B", "aa", "a b", "a\tb", "a\nb", "Z", "z", "É", "é", "e\u0301", "ß", "日本", "😀",
	"\ud7ff", "\ue000", "\uffee", "\ufffd", "\U0010ffff", "\u200b", "\u2028",
	"2024-01-02", "2024-01-02T03:04:05Z", "2024-01-02 03:04:05", "12:30", "1", "01", "1.0", "-1", "1e3", "0x10", "18446744073709551616",
	"null", "NULL", "true", "NaN", "Infinity", "{}", "[1]", `"quoted"`, `it's`, `''`, `back\slash`, `\x00`, `\u0041`, "%", "_", "100%",
	"*", "?", "[a]", "carriage\r\nreturn", "\x01\x1f\x7f", "<&>", "$1", ":a", "@a", "?1", "--", "/* */", ";", "`", "``", "%s", "E'\\x41'", "$$x$$",
	`'); DROP TABLE payloads; --`, `" OR 1=1 --`, `x' UNION SELECT 1 --`, `'||(SELECT 1)||'`, "from_block", "a.value", `{"$expiration":1}`, `","$expiration":1,"`,
}

// oddNumbers are numbers that signed integers or floating point often get
// wrong.
var oddNumbers = []uint64{
	0, 1, 2, 9, 10, math.MaxUint8, math.MaxInt32, math.MaxUint32, math.MaxUint32 + 1, 1<<53 - 1, 1 << 53, 1<<53 + 1,
	math.MaxInt64 - 1, math.MaxInt64, math.MaxInt64 + 1, math.MaxInt64 + 2, 1<<63 + 1<<53 + 1, math.MaxUint64 - 1, math.MaxUint64,
}

// runValues: values, names and content types are read as they were stored, and
// compare as in Go.
func runValues(t *testing.T, h Harness) {
	l := newLedger(t, h)
	texts := oddTexts
	if l.db.Engine().Capabilities().TextNUL {
		texts = append(texts[:len(texts):len(texts)], "\x00", "a\x00", "a\x00b", "\x00a")
	}
	var create []entity.Op
	for i, s := range texts {
		op := on(fmt.Sprintf("s%02d ", i), opCreate(1000, text("x", s), text("n"+s, s), number("n"+s, uint64(i)), content(s, s)))
		create = append(create, op)
	}
	for i, n := range oddNumbers {
		create = append(create, on(fmt.Sprintf("n%02d ", i), opCreate(1000, number("x", n))))
	}
	l.apply(t, create...)
	s := l.at(t, store.Head)
	for i := range texts {
		testOddText(t, s, &create[i], i, texts[i])
	}
	t.Run("texts", func(t *testing.T) {
		checkComparisons(t, s, "s", texts, append([]string{"a\x00", "ab\x00c", "m", "\uffff"}, texts...), query.Text)
	})
	t.Run("numbers", func(t *testing.T) {
		checkComparisons(t, s, "n", oddNumbers, append([]uint64{3, 1 << 62, 1<<63 + 5}, oddNumbers...), query.Number)
	})
	t.Run("lists", func(t *testing.T) { testLists(t, s, texts) })
	t.Run("ranges", func(t *testing.T) { testRanges(t, newLedger(t, h)) })
}

// testRanges: two bounds of one attribute together select the entities that
// each of them selects. Some texts have a common prefix that is longer than an
// index entry.
func testRanges(t *testing.T, l *ledger) {
	alike := strings.Repeat("alike ", 10)
	texts := []string{"", "a", "alike ", alike, alike + "a", alike + "b", alike + "c", "b"}
	var create []entity.Op
	for i, s := range texts {
		create = append(create, on(fmt.Sprintf("r%02d ", i), opCreate(1000, text("x", s))))
	}
	l.apply(t, create...)
	require.NoError(t, l.ents.Flush(t.Context()))
	s := l.at(t, store.Head)
	for _, lo := range texts {
		for _, hi := range texts {
			want := ""
			for i, v := range texts {
				if v >= lo && v < hi {
					want += fmt.Sprintf("r%02d ", i)
				}
			}
			q := query.And{Terms: []query.Expr{compared("x", query.GreaterOrEqual, query.Text(lo)), compared("x", query.Less, query.Text(hi))}}
			require.Equal(t, want, set(results(t, s, q, &store.QueryOptions{Parts: store.Metadata})), "%s", q)
			require.Equal(t, strings.Count(want, " "), int(must(s.Count(t.Context(), q))(t)), "%s", q)
		}
	}
}

// testOddText reads an entity, finds it by a text as value and as name, sorts
// by the name, and continues after the entity.
func testOddText(t *testing.T, s *store.Snapshot, op *entity.Op, i int, value string) {
	t.Helper()
	e := call1(t, s.Get, op.Key)
	requireSame(t, []any{op.StringAttributes, op.NumericAttributes, op.ContentType, op.Content},
		[]any{e.StringAttributes, e.NumericAttributes, e.ContentType, e.Content})
	name := "n" + value
	for _, q := range []query.Expr{
		compared(name, query.Equal, query.Text(value)), compared(name, query.Equal, query.Number(uint64(i))),
		query.Glob{Name: name, Pattern: "*"}, compared(name, query.GreaterOrEqual, query.Text("")),
		query.In{Name: "x", Values: []query.Value{query.Text(value), query.Text("other" + value)}},
	} {
		requireSame(t, []*entity.Entity{e}, results(t, s, q, nil), q.String())
		require.Equal(t, q, parse(t, q.String()))
	}
	order := []store.Order{{Name: name, Kind: str}}
	list := results(t, s, nil, &store.QueryOptions{Order: order, Limit: 1})
	requireSame(t, []*entity.Entity{e}, list, value)
	after := cursorAfter(t, s, e, store.QueryOptions{Order: order})
	require.Len(t, results(t, s, nil, &store.QueryOptions{Order: order, After: after, Limit: 2, Parts: store.Metadata}), 2, "%q", value)
}

// checkComparisons compares stored values with literals, as Go does.
func checkComparisons[T cmp.Ordered](t *testing.T, s *store.Snapshot, prefix string, stored, literals []T, value func(T) query.Value) {
	holds := map[query.CompareOp]func(a, b T) bool{
		query.Equal:          func(a, b T) bool { return a == b },
		query.NotEqual:       func(a, b T) bool { return a != b },
		query.Less:           func(a, b T) bool { return a < b },
		query.LessOrEqual:    func(a, b T) bool { return a <= b },
		query.Greater:        func(a, b T) bool { return a > b },
		query.GreaterOrEqual: func(a, b T) bool { return a >= b },
	}
	for _, literal := range literals {
		for op, holds := range holds {
			want := ""
			for i, v := range stored {
				if holds(v, literal) {
					want += fmt.Sprintf("%s%02d ", prefix, i)
				}
			}
			q := compared("x", op, value(literal))
			require.Equal(t, want, set(results(t, s, q, &store.QueryOptions{Parts: store.Metadata})), "%s", q)
		}
	}
}

func testLists(t *testing.T, s *store.Snapshot, texts []string) {
	count := func(in query.In) int { return int(must(s.Count(t.Context(), in))(t)) }
	var words, numbers []query.Value
	for _, v := range texts {
		words = append(words, query.Text(v))
	}
	for _, n := range oddNumbers {
		numbers = append(numbers, query.Number(n))
	}
	for _, list := range [][]query.Value{words, numbers} {
		in := query.In{Name: "x", Values: list}
		require.Equal(t, len(list), count(in))
		in.Negated = true
		require.Zero(t, count(in))
		in.Values = list[:1]
		require.Equal(t, len(list)-1, count(in))
		in.Values = []query.Value{list[0], list[0], list[1]}
		require.Equal(t, len(list)-2, count(in))
	}
	high := query.In{Name: "x", Values: []query.Value{query.Number(math.MaxInt64), query.Number(1 << 63), query.Number(math.MaxUint64)}}
	require.Equal(t, 3, count(high))
	nul := query.In{Name: "x", Values: []query.Value{query.Text("no\x00where")}}
	require.Zero(t, count(nul))
	nul.Negated = true
	require.Equal(t, len(texts), count(nul))
}
