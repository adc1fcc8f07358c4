package storetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/query"
	"github.com/varvedb/varve/store/storetest/model"
)

// globValues are the values on which patterns are tried.
var globValues = []string{
	"", "a", "b", "ab", "abc", "aXc", "ABC", "a*c", "a?c", "a[c", "a]c", "a-c", "a^c", "a.c", "a%c", "a_c", `a\c`, "a'c", `a"c`,
	"a\nc", "a\r\nc", "a\tc", "aéc", "a日c", "a😀c", "é", "日本", "日本語", "😀😀", "\U0010ffff", "\ud7ff\ue000",
	"node_01_00001", "node_01_00002", "node_02_00001", "node-01", "(a|b)", "a+", "$1", "^a$", "{2}", "a{2}", "aa",
}

// globs are patterns. Each must match the same values as in Go, and its
// negation the other values.
var globs = []string{
	"", "a", "abc", "ABC", "*", "**", "?*", "?", "??", "日?", "日*", "*本*", "😀*", "\U0010ffff*", "\ud7ff*",
	"*\ue000", "a?c", "a??c", "a[*]c", "a[?]c", "a[[]c", "a]c", "a[]]c", "a[^]]c", "a[-]c", "a[a-]c", "a[x^]c",
	"a.c", "a%c", "a_c", `a\c`, `a\*`, `a[\]c`, "a'c", `a"c`, "a\nc", "*\n*", "a[\n]c", "a[^a-zA-Z]c", "a[a-z]c",
	"a[A-Z]c", "a[à-ÿ]c", "a[日本]c", "a[^\x01-\x7f]c", "a[😀-😂]c", "a[z-a]c", "[ab]", "[^ab]", "[^a]*", "a[b", "[",
	"[]", "[^]", "node_*", "node_01_*", "node_01_0000?", "node_01_0000[2-9]", "node?01*", "*_00001", "*_0[12]_*1",
	"*0*0*0*0*0*2", "(a|b)", "a+", "$1", "^a$", "?{2}", "{*", "*{2}", "[(]*", "*|*", "a[+]", "a{2}", "[^^]a$",
	"[\\^]a$",
}

// runGlobs tries each pattern and its negation. Where U+0000 can be stored, it
// is a character like others. Where it cannot, a pattern with U+0000 is refused
// or matches nothing.
func runGlobs(t *testing.T, h Harness) {
	l := newLedger(t, h)
	values, patterns := globValues, globs
	if l.db.Engine().Capabilities().TextNUL {
		values = append(values[:len(values):len(values)], "n\x00", "n\x00l", "n\x00\x00l")
		patterns = append(patterns[:len(patterns):len(patterns)], "n?", "n?l", "n*l", "n\x00", "n\x00*", "n\x00?", "n[\x00]", "n??l", "n", "*\x00*")
	}
	create := ops{on("without", opCreate(1000, number("x", 1)))}
	for i, s := range values {
		create = append(create, on(fmt.Sprintf("%02d", i), opCreate(1000, text("x", s))))
	}
	l.apply(t, create...)
	s := l.at(t, store.Head)
	for _, pattern := range patterns {
		p := query.CompileGlob(pattern)
		for _, negated := range []bool{false, true} {
			var want []string
			for _, v := range values {
				if p.Match(v) != negated {
					want = append(want, v)
				}
			}
			for _, q := range []query.Expr{
				query.Glob{Name: "x", Pattern: pattern, Negated: negated},
				parse(t, query.Glob{Name: "x", Pattern: pattern, Negated: negated}.String()),
			} {
				var found []string
				for _, e := range results(t, s, q, nil) {
					found = append(found, e.StringAttributes["x"])
				}
				require.ElementsMatch(t, want, found, "%s", q)
			}
		}
	}
	for _, name := range []string{"x", "$owner"} {
		list, err := model.Collect(s.Query(t.Context(), query.Glob{Name: name, Pattern: "o\x00*"}, nil))
		if err != nil {
			require.ErrorIs(t, err, store.ErrUnsupported)
			require.False(t, l.db.Engine().Capabilities().TextNUL)
		}
		require.Empty(t, list)
	}
}
