package storetest

import (
	"cmp"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/query"
)

// comparedTexts sort differently by bytes than by letter case, by locale and by
// UTF-16 units.
var comparedTexts = []string{
	"", " ", "0", "10", "2", "A", "B", "Z", "a", "aa", "a b", "a\nb", "a\tb", "ab", "b", "z", "É", "é", "e\u0301", "ß",
	"日本", "\ud7ff", "\ue000", "\uffee", "😀", "\U0010ffff", "it's", `"q"`, "%", "_", `\`, "*", "?", "[",
}

// runComparisons compares each value of a type with each, by each operator.
func runComparisons(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout)
	texts := comparedTexts
	if l.db.Engine().Capabilities().TextNUL {
		texts = append(texts[:len(texts):len(texts)], "\x00", "a\x00", "a\x00b", "\x00a")
	}
	var create []store.Op
	for i, s := range texts {
		create = append(create, on(fmt.Sprintf("s%02d ", i), opCreate(1000, text("x", s))))
	}
	for i, n := range oddNumbers {
		create = append(create, on(fmt.Sprintf("n%02d ", i), opCreate(1000, number("x", n))))
	}
	l.apply(t, create...)
	t.Run("strings", func(t *testing.T) {
		checkComparisons(t, l, "s", texts, append([]string{"a\x00", "ab\x00c", "m", "\uffff"}, texts...), query.Text)
	})
	t.Run("numbers", func(t *testing.T) {
		checkComparisons(t, l, "n", oddNumbers, append([]uint64{3, 1 << 62, 1<<63 + 5}, oddNumbers...), query.Number)
	})
	t.Run("lists", func(t *testing.T) { testLists(t, l, texts) })
}

// checkComparisons compares stored values with literals and expects what Go
// says.
func checkComparisons[T cmp.Ordered](t *testing.T, l *ledger, prefix string, stored, literals []T, value func(T) query.Value) {
	holds := map[query.CompareOp]func(a, b T) bool{
		query.Equal:          func(a, b T) bool { return a == b },
		query.NotEqual:       func(a, b T) bool { return a != b },
		query.Less:           func(a, b T) bool { return a < b },
		query.LessOrEqual:    func(a, b T) bool { return a <= b },
		query.Greater:        func(a, b T) bool { return a > b },
		query.GreaterOrEqual: func(a, b T) bool { return a >= b },
	}
	s := l.at(t, store.Head)
	for _, literal := range literals {
		for op, holds := range holds {
			want := ""
			for i, v := range stored {
				if holds(v, literal) {
					want += fmt.Sprintf("%s%02d ", prefix, i)
				}
			}
			q := compared("x", op, value(literal))
			require.Equal(t, want, set(results(t, s, q, nil)), "%s", q)
		}
	}
}

func testLists(t *testing.T, l *ledger, texts []string) {
	s := l.at(t, store.Head)
	count := func(in query.In) int {
		n := countOf(t, s, in)
		return int(n)
	}
	var strings, numbers []query.Value
	for _, v := range texts {
		strings = append(strings, query.Text(v))
	}
	for _, n := range oddNumbers {
		numbers = append(numbers, query.Number(n))
	}
	for _, list := range [][]query.Value{strings, numbers} {
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
