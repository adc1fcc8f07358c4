package query_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/store/query"
)

// TestGlobAsSQLite compares with recorded answers of SQLite 3.40.1: each line
// is a pattern, a string, and what "string GLOB pattern" gave.
func TestGlobAsSQLite(t *testing.T) {
	f, err := os.Open("testdata/glob.jsonl")
	require.NoError(t, err)
	defer f.Close()
	lines := 0
	for d := json.NewDecoder(f); d.More(); lines++ {
		var c [3]any
		require.NoError(t, d.Decode(&c))
		pattern, s, want := c[0].(string), c[1].(string), c[2].(bool)
		p := query.CompileGlob(pattern)
		require.Equal(t, want, p.Match(s), "%q GLOB %q", s, pattern)
		require.Equal(t, want, matchRegexp(t, p, s), "%q GLOB %q by regular expression", s, pattern)
	}
	require.Greater(t, lines, 3000)
}

// matchRegexp matches by the regular expression of a pattern.
func matchRegexp(t testing.TB, p query.Pattern, s string) bool {
	t.Helper()
	expr, ok := p.Regexp()
	if !ok {
		return false
	}
	re, err := regexp.Compile(expr)
	require.NoError(t, err)
	return re.MatchString(s)
}

func TestGlobBeyondSQLite(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"a\x00b", "a\x00b", true},
		{"a", "a\x00b", false},
		{"a?b", "a\x00b", true},
		{"[\x00-\x02]", "\x01", true},
		{"[^\x00-\U0010ffff]", "a", false},
		{"*[^\x00-\ud7ff\ue000-\U0010ffff]*", "a", false},
	} {
		p := query.CompileGlob(c.pattern)
		require.Equal(t, c.want, p.Match(c.s), "%q GLOB %q", c.s, c.pattern)
		require.Equal(t, c.want, matchRegexp(t, p, c.s), "%q GLOB %q by regular expression", c.s, c.pattern)
	}
}

// TestGlobIsNotExponential would not end if each star tried every run.
func TestGlobIsNotExponential(t *testing.T) {
	p := query.CompileGlob(strings.Repeat("*a", 1000) + "*b")
	require.False(t, p.Match(strings.Repeat("a", 10_000)))
	p = query.CompileGlob(strings.Repeat("*[a-b]", 600) + "c")
	require.False(t, p.Match(strings.Repeat("a", 10_000)))
}

func TestPatternIndex(t *testing.T) {
	type answer struct {
		Prefix   string
		OnlyStar bool
		Literal  bool
		Hi       string
		Regexp   string
	}
	for pattern, want := range map[string]answer{
		"":             {Literal: true, Regexp: "(?s)^$"},
		"foo":          {Prefix: "foo", Literal: true, Regexp: "(?s)^foo$"},
		"foo*":         {Prefix: "foo", OnlyStar: true, Hi: "fop", Regexp: "(?s)^foo.*$"},
		"foo**":        {Prefix: "foo", OnlyStar: true, Hi: "fop", Regexp: "(?s)^foo.*$"},
		"foo*bar":      {Prefix: "foo", Regexp: "(?s)^foo.*bar$"},
		"foo?":         {Prefix: "foo", Regexp: "(?s)^foo.$"},
		"*":            {OnlyStar: true, Regexp: "(?s)^.*$"},
		"f[*][]]*":     {Prefix: "f*]", OnlyStar: true, Hi: "f*^", Regexp: `(?s)^f\*\].*$`},
		"f[o-q]*":      {Prefix: "f", Regexp: "(?s)^f[o-q].*$"},
		"f[^]a-c^-]":   {Prefix: "f", Regexp: `(?s)^f[^\-\]-\^a-c]$`},
		"foo[a":        {},
		"[a":           {},
		"a\u007f*":     {Prefix: "a\u007f", OnlyStar: true, Hi: "a\u0080", Regexp: "(?s)^a\u007f.*$"},
		"a\ud7ff*":     {Prefix: "a\ud7ff", OnlyStar: true, Hi: "a\ue000", Regexp: "(?s)^a\ud7ff.*$"},
		"a\U0010ffff*": {Prefix: "a\U0010ffff", OnlyStar: true, Hi: "b", Regexp: "(?s)^a\U0010ffff.*$"},
		"\U0010ffff*":  {Prefix: "\U0010ffff", OnlyStar: true, Regexp: "(?s)^\U0010ffff.*$"},
		"$.+(){}|^\\":  {Prefix: "$.+(){}|^\\", Literal: true, Regexp: `(?s)^\$\.\+\(\)\{\}\|\^\\$`},
	} {
		t.Run(pattern, func(t *testing.T) {
			var got answer
			p := query.CompileGlob(pattern)
			got.Prefix, got.OnlyStar = p.Prefix()
			literal, ok := p.Literal()
			got.Literal = ok
			if ok {
				require.Equal(t, got.Prefix, literal)
			}
			if got.OnlyStar {
				_, got.Hi = query.PrefixRange(got.Prefix)
			}
			got.Regexp, _ = p.Regexp()
			require.Equal(t, want, got)
		})
	}
}

// TestPrefixRangeIsExact: being in the range and having the prefix are one.
func TestPrefixRangeIsExact(t *testing.T) {
	edges := rapid.StringOfN(rapid.SampledFrom([]rune("\x00a\u007f\u0080\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010fffe\U0010ffff")), 0, 4, -1)
	rapid.Check(t, func(t *rapid.T) {
		prefix, s := edges.Draw(t, "prefix"), edges.Draw(t, "s")
		if rapid.Bool().Draw(t, "extend") {
			s = prefix + s
		}
		lo, hi := query.PrefixRange(prefix)
		require.Equal(t, prefix, lo)
		require.True(t, utf8.ValidString(hi))
		inRange := lo <= s && (hi == "" || s < hi)
		require.Equal(t, strings.HasPrefix(s, prefix), inRange, "%q in [%q, %q)", s, lo, hi)
	})
}

func FuzzGlob(f *testing.F) {
	for _, seed := range [][2]string{
		{"a*b?c", "axxbyc"}, {"[^]a-c]*", "d"}, {"*a*a*a", "aaaa"}, {"[z-a]", "z"}, {"[a-", "a"}, {"日*[ぁ-ん]", "日あ"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, s string) {
		if len(pattern) > 200 || len(s) > 1000 || !utf8.ValidString(pattern) || !utf8.ValidString(s) {
			t.Skip("pathological or not text")
		}
		p := query.CompileGlob(pattern)
		got := p.Match(s)
		require.Equal(t, matchRegexp(t, p, s), got, "%q GLOB %q", s, pattern)
		if literal, ok := p.Literal(); ok {
			require.Equal(t, s == literal, got)
		}
		prefix, onlyStar := p.Prefix()
		if got {
			require.True(t, strings.HasPrefix(s, prefix))
		}
		if lo, hi := query.PrefixRange(prefix); onlyStar {
			require.Equal(t, lo <= s && (hi == "" || s < hi), got)
		}
	})
}
