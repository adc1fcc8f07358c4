package query_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/query"
)

func TestParseDepthLimit(t *testing.T) {
	nest := func(open, end string, n int) string {
		return strings.Repeat(open, n) + "a = 1" + strings.Repeat(end, n)
	}
	tooDeep := "query nested deeper than 200"
	for _, c := range []struct {
		name, src, want string
	}{
		{"200 parentheses", nest("(", ")", 200), ""},
		{"201 parentheses", nest("(", ")", 201), "query 1:201: " + tooDeep},
		{"10000 parentheses", nest("(", ")", 10_000), "query 1:201: " + tooDeep},
		{"10000 open parentheses", nest("(", "", 10_000), "query 1:201: " + tooDeep},
		{"60000 negations", nest("!", "", 60_000), "query 1:201: " + tooDeep},
		{"10000 words", nest("not ", "", 10_000), "query 1:801: " + tooDeep},
		{"199 negations", nest("!", "", 199), ""},
		{"250 negations in a row", strings.Repeat("!a = 1 && ", 249) + "!a = 1", ""},
		{"250 negated words in a row", strings.Repeat("not (a = 1) || ", 249) + "not (a = 1)", ""},
		{"200 negations", nest("!", "", 200), "query 1:1: " + tooDeep},
		{"tree of height 199", nest("b=1||b=1&&(", ")", 99), ""},
		{"tree of height 201", nest("b=1||b=1&&(", ")", 100), "query 1:1: " + tooDeep},
		{"long chain", nest("b=1||", "", 7_000), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree, err := query.Parse(c.src)
			if c.want != "" {
				require.EqualError(t, err, c.want)
				return
			}
			require.NoError(t, err)
			again, err := query.Parse(tree.String())
			require.NoError(t, err)
			require.Equal(t, tree, again)
		})
	}
}

func TestParseSizeLimits(t *testing.T) {
	longest := `a = "` + strings.Repeat("x", query.MaxLength-6) + `"`
	for _, c := range []struct {
		name, src, want string
	}{
		{"longest", longest, ""},
		{"too long", longest + " ", "query 1:1: query of 65537 bytes, at most 65536 are allowed"},
		{"too long when printed", `a = "` + strings.Repeat("\x1f", 20_000) + `"`,
			"query 1:1: query of 120006 bytes when printed, at most 65536 are allowed"},
		{"long list", "a in (" + strings.Repeat("12345 ", query.MaxList) + ")", ""},
		{"most values", "a in (" + strings.Repeat("1 ", query.MaxList) + ")", ""},
		{"too many values", "a in (" + strings.Repeat("1 ", query.MaxList+1) + ")",
			"query 1:20007: list of more than 10000 values"},
		{"most nodes", strings.Repeat("*||", query.MaxNodes-2) + "*", ""},
		{"too many nodes", strings.Repeat("*||", query.MaxNodes-1) + "*",
			"query 1:1: query of more than 10000 operators and comparisons"},
		{"longest pattern", `a ~ "` + strings.Repeat("?", query.MaxPattern) + `"`, ""},
		{"too long a pattern", `a ~ "` + strings.Repeat("?", query.MaxPattern+1) + `"`,
			"query 1:5: pattern of 4097 bytes, at most 4096 are allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree, err := query.Parse(c.src)
			if c.want != "" {
				require.EqualError(t, err, c.want)
				require.ErrorIs(t, err, query.ErrSyntax)
				return
			}
			require.NoError(t, err)
			require.NoError(t, query.Check(tree))
		})
	}
}
