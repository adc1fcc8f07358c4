package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/query"
)

// globbed are the values that patterns are tried on.
var globbed = []string{
	"", "a", "b", "ab", "abc", "aXc", "ABC", "a*c", "a?c", "a[c", "a]c", "a-c", "a^c", "a.c", "a%c", "a_c", `a\c`, "a'c", `a"c`,
	"a\nc", "a\r\nc", "a\tc", "aéc", "a日c", "a😀c", "é", "日本", "日本語", "😀😀", "\U0010ffff", "\ud7ff\ue000",
	"node_01_00001", "node_01_00002", "node_02_00001", "node-01", "(a|b)", "a+", "$1", "^a$", "{2}", "a{2}", "aa",
}

// globs are patterns with the values that they match.
var globs = []struct {
	pattern string
	want    []string
}{
	{"", []string{""}},
	{"a", []string{"a"}},
	{"abc", []string{"abc"}},
	{"ABC", []string{"ABC"}},
	{"*", globbed},
	{"**", globbed},
	{"?*", globbed[1:]},
	{"?", []string{"a", "b", "é", "\U0010ffff"}},
	{"??", []string{"ab", "日本", "😀😀", "\ud7ff\ue000", "a+", "$1", "aa"}},
	{"日?", []string{"日本"}},
	{"日*", []string{"日本", "日本語"}},
	{"*本*", []string{"日本", "日本語"}},
	{"😀*", []string{"😀😀"}},
	{"\U0010ffff*", []string{"\U0010ffff"}},
	{"\ud7ff*", []string{"\ud7ff\ue000"}},
	{"*\ue000", []string{"\ud7ff\ue000"}},

	{"a?c", []string{"abc", "aXc", "a*c", "a?c", "a[c", "a]c", "a-c", "a^c", "a.c", "a%c", "a_c", `a\c`, "a'c", `a"c`,
		"a\nc", "a\tc", "aéc", "a日c", "a😀c"}},
	{"a??c", []string{"a\r\nc"}},
	{"a[*]c", []string{"a*c"}},
	{"a[?]c", []string{"a?c"}},
	{"a[[]c", []string{"a[c"}},
	{"a]c", []string{"a]c"}},
	{"a[]]c", []string{"a]c"}},
	{"a[^]]c", []string{"abc", "aXc", "a*c", "a?c", "a[c", "a-c", "a^c", "a.c", "a%c", "a_c", `a\c`, "a'c", `a"c`,
		"a\nc", "a\tc", "aéc", "a日c", "a😀c"}},
	{"a[-]c", []string{"a-c"}},
	{"a[a-]c", []string{"a-c"}},
	{"a[x^]c", []string{"a^c"}},
	{"a.c", []string{"a.c"}},
	{"a%c", []string{"a%c"}},
	{"a_c", []string{"a_c"}},
	{`a\c`, []string{`a\c`}},
	{`a\*`, []string{`a\c`}},
	{`a[\]c`, []string{`a\c`}},
	{"a'c", []string{"a'c"}},
	{`a"c`, []string{`a"c`}},
	{"a\nc", []string{"a\nc"}},
	{"*\n*", []string{"a\nc", "a\r\nc"}},
	{"a[\n]c", []string{"a\nc"}},
	{"a[^a-zA-Z]c", []string{"a*c", "a?c", "a[c", "a]c", "a-c", "a^c", "a.c", "a%c", "a_c", `a\c`, "a'c", `a"c`,
		"a\nc", "a\tc", "aéc", "a日c", "a😀c"}},
	{"a[a-z]c", []string{"abc"}},
	{"a[A-Z]c", []string{"aXc"}},
	{"a[à-ÿ]c", []string{"aéc"}},
	{"a[日本]c", []string{"a日c"}},
	{"a[^\x01-\x7f]c", []string{"aéc", "a日c", "a😀c"}},
	{"a[😀-😂]c", []string{"a😀c"}},
	{"a[z-a]c", nil},
	{"[ab]", []string{"a", "b"}},
	{"[^ab]", []string{"é", "\U0010ffff"}},
	{"[^a]*", []string{"b", "ABC", "é", "日本", "日本語", "😀😀", "\U0010ffff", "\ud7ff\ue000",
		"node_01_00001", "node_01_00002", "node_02_00001", "node-01", "(a|b)", "$1", "^a$", "{2}"}},
	{"a[b", nil},
	{"[", nil},
	{"[]", nil},
	{"[^]", nil},

	{"node_*", []string{"node_01_00001", "node_01_00002", "node_02_00001"}},
	{"node_01_*", []string{"node_01_00001", "node_01_00002"}},
	{"node_01_0000?", []string{"node_01_00001", "node_01_00002"}},
	{"node_01_0000[2-9]", []string{"node_01_00002"}},
	{"node?01*", []string{"node_01_00001", "node_01_00002", "node-01"}},
	{"*_00001", []string{"node_01_00001", "node_02_00001"}},
	{"*_0[12]_*1", []string{"node_01_00001", "node_02_00001"}},
	{"*0*0*0*0*0*2", []string{"node_01_00002"}},

	// What means something in a regular expression means nothing here.
	{"(a|b)", []string{"(a|b)"}},
	{"a+", []string{"a+"}},
	{"$1", []string{"$1"}},
	{"^a$", []string{"^a$"}},
	{"?{2}", []string{"a{2}"}},
	{"{*", []string{"{2}"}},
	{"*{2}", []string{"{2}", "a{2}"}},
	{"[(]*", []string{"(a|b)"}},
	{"*|*", []string{"(a|b)"}},
	{"a[+]", []string{"a+"}},
	{"a{2}", []string{"a{2}"}},
	{"[^^]a$", nil},
	{"[\\^]a$", []string{"^a$"}},
}

// runGlobs tries each pattern and its negation.
func runGlobs(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout)
	values := globbed
	if l.db.Engine().Capabilities().TextNUL {
		values = append(values[:len(values):len(values)], "n\x00", "n\x00l", "n\x00\x00l")
	}
	create := ops{on("without", opCreate(1000, number("x", 1)))}
	for i, s := range values {
		create = append(create, on(fmt.Sprintf("%02d", i), opCreate(1000, text("x", s))))
	}
	l.apply(t, create...)
	for _, c := range globs {
		t.Run(fmt.Sprintf("%q", c.pattern), func(t *testing.T) {
			glob := query.Glob{Name: "x", Pattern: c.pattern}
			checkGlob(t, l, glob, globbed, c.want)
			checkGlob(t, l, parse(t, glob.String()), globbed, c.want)
			glob.Negated = true
			rest := slices.DeleteFunc(slices.Clone(globbed), func(s string) bool { return slices.Contains(c.want, s) })
			checkGlob(t, l, glob, globbed, rest)
		})
	}
	t.Run("NUL", func(t *testing.T) { testGlobNUL(t, l, values) })
}

// checkGlob compares the values found, of those that count, with the wanted.
func checkGlob(t testing.TB, l *ledger, q query.Expr, count, want []string) {
	t.Helper()
	var found []string
	for _, e := range l.find(t, q, nil) {
		if s, ok := e.StringAttributes["x"]; ok && slices.Contains(count, s) {
			found = append(found, s)
		}
	}
	require.ElementsMatch(t, want, found, "%s", q)
}

// testGlobNUL: U+0000 is a character like others, where it can be stored; where
// it cannot, a pattern with one is refused or finds nothing.
func testGlobNUL(t *testing.T, l *ledger, values []string) {
	if !l.db.Engine().Capabilities().TextNUL {
		l.view(t, store.Head, func(s *store.Snapshot) {
			list, err := collect(s.Query(t.Context(), query.Glob{Name: "x", Pattern: "n\x00*"}, nil))
			if err != nil {
				require.ErrorIs(t, err, store.ErrUnsupported)
			}
			require.Empty(t, list)
		})
		return
	}
	for pattern, want := range map[string][]string{
		"n?":      {"n\x00"},
		"n?l":     {"n\x00l"},
		"n*l":     {"n\x00l", "n\x00\x00l"},
		"n\x00":   {"n\x00"},
		"n\x00*":  {"n\x00", "n\x00l", "n\x00\x00l"},
		"n\x00?":  {"n\x00l"},
		"n[\x00]": {"n\x00"},
		"n??l":    {"n\x00\x00l"},
		"n":       nil,
	} {
		checkGlob(t, l, query.Glob{Name: "x", Pattern: pattern}, values, want)
	}
	n := len(l.find(t, query.Glob{Name: "x", Pattern: strings.Repeat("?", 3), Negated: true}, nil))
	m := len(l.find(t, query.Glob{Name: "x", Pattern: "???"}, nil))
	require.Equal(t, len(values), n+m)
}
