package query_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/query"
)

const known = "names that start with $ are reserved, known are $key, $owner, $creator, $expiration, " +
	"$createdAtBlock, $lastModifiedAtBlock, $sequence, $txIndex, $opIndex"

const (
	wantTerm     = `expected an attribute name, "(", "!" or "*"`
	wantOperator = "expected an operator (=, !=, <, <=, >, >=, ~, !~, glob, not glob, in, not in)"
	wantMore     = `expected "&&", "||" or the end of the query`
	wantEscape   = `expected \", \\, \n, \r, \t, \0, \uXXXX or \u{X…}`
	wantUnicode  = `expected \u and four hexadecimal digits, or \u{X…}`
	wantHex      = "expected 40 for an address or 64 for a key"
)

type errorCase struct{ src, want string }

func testErrors(t *testing.T, cases []errorCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.src, func(t *testing.T) {
			tree, err := query.Parse(c.src)
			require.EqualError(t, err, "query "+c.want)
			require.Nil(t, tree)
			require.ErrorIs(t, err, query.ErrSyntax)
			var syntax *query.SyntaxError
			require.ErrorAs(t, err, &syntax)
			require.True(t, strings.HasPrefix(c.want, fmt.Sprintf("%d:%d: %s", syntax.Line, syntax.Column, syntax.Message)))
		})
	}
}

func TestParseGrammarErrors(t *testing.T) {
	testErrors(t, []errorCase{
		{"", "1:1: empty query, expected an expression (* selects every entity)"},
		{" \n ", "2:2: empty query, expected an expression (* selects every entity)"},
		{"a = 1 && b)", `1:11: unexpected ")", ` + wantOperator},
		{"abcdefg = )", `1:11: unexpected ")", expected a value`},
		{"a = 1)", `1:6: unexpected ")", ` + wantMore},
		{"a = 1 b = 2", `1:7: unexpected "b", ` + wantMore},
		{"* = 1", `1:3: unexpected "=", ` + wantMore},
		{"(a = 1", `1:7: unexpected end of query, expected "&&", "||" or the ")" of 1:1`},
		{"a=1 &&\n ((a = 1) 5", `2:11: unexpected number 5, expected "&&", "||" or the ")" of 2:2`},
		{"()", `1:2: unexpected ")", ` + wantTerm},
		{"a = 1 &&", "1:9: unexpected end of query, " + wantTerm},
		{"&& a = 1", `1:1: unexpected "&&", ` + wantTerm},
		{`"a" = 1`, `1:1: unexpected string "a", ` + wantTerm},
		{"in 5", `1:1: unexpected "in", ` + wantTerm},
		{"not in", `1:5: unexpected "in", ` + wantTerm},
		{"a = 1 && AND b = 1", `1:10: unexpected "AND", ` + wantTerm},
		{"! and a = 1", `1:3: unexpected "and", ` + wantTerm},
		{"a", "1:2: unexpected end of query, " + wantOperator},
		{"a ! in (1)", `1:3: unexpected "!", ` + wantOperator},
		{"a not (1)", `1:7: unexpected "(", expected "in" or "glob"`},
		{`a not ~ "b"`, `1:7: unexpected "~", expected "in" or "glob"`},
		{"a glob 5", "1:8: unexpected number 5, expected a pattern in double quotes"},
		{"a in 1", `1:6: unexpected number 1, expected "("`},
		{"a in ()", `1:7: unexpected ")", expected a value`},
		{"a in (,1)", `1:7: unexpected ",", expected a value`},
		{"a in (1,)", `1:9: unexpected ")", expected a value`},
		{"a in (1,,2)", `1:9: unexpected ",", expected a value`},
		{"a in (1 = )", `1:9: unexpected "=", expected a value, "," or ")"`},
		{"a in (1", `1:8: unexpected end of query, expected a value, "," or ")"`},
		{`a in (1, "b")`, "1:10: a string in a list of numbers, expected values of one type"},
		{`a in ("b" 1)`, "1:11: a number in a list of strings, expected values of one type"},
		{"type = node", `1:8: unexpected "node", expected a value (strings are written in double quotes)`},
		{"a ~ 5", "1:5: unexpected number 5, expected a pattern in double quotes"},
		{"a !~ " + address, "1:6: unexpected literal 0x0000000000000000000000000000000000c0ff…, " +
			"expected a pattern in double quotes"},
	})
}

func TestParseWordErrors(t *testing.T) {
	testErrors(t, []errorCase{
		{"é = \"日本\" ü ü", `1:10: unexpected "ü", ` + wantMore},
		{"a == 1", `1:3: unexpected "==", expected "="`},
		{"a =~ 1", `1:3: unexpected "=~", expected "~"`},
		{"a <> 1", `1:3: unexpected "<>", expected "!="`},
		{"a => 1", `1:3: unexpected "=>", expected ">="`},
		{"a =< 1", `1:3: unexpected "=<", expected "<="`},
		{"a = 'b'", `1:5: unexpected "'", expected strings in double quotes`},
		{"a = -1", `1:5: unexpected "-", expected numbers without a sign`},
		{"a = 1 & b = 1", `1:7: unexpected "&", expected "&&"`},
		{"a = 1 | b = 1", `1:7: unexpected "|", expected "||"`},
		{"a = 1; b", `1:6: unexpected ";"`},
		{"a = 1.5", `1:5: malformed number "1.5", expected decimal digits only`},
		{"a = 1b", `1:5: malformed number "1b", expected decimal digits only`},
		{"a = ١", `1:5: unexpected "١"`},
		{"a = 18446744073709551616", "1:5: number 18446744073709551616 is too large, expected at most 18446744073709551615"},
		{"a = 0x", "1:5: hexadecimal literal of 0 digits, " + wantHex},
		{"a = 0xabc", "1:5: hexadecimal literal of 3 digits, " + wantHex},
		{"a = " + address + "0", "1:5: hexadecimal literal of 41 digits, " + wantHex},
		{"a = 0xabg", `1:9: unexpected "g" in a hexadecimal literal, expected 0-9 or a-f`},
		{`a = "b`, "1:5: string without an end, expected a closing double quote"},
		{`a = "b\"`, "1:5: string without an end, expected a closing double quote"},
		{"`a = 1", "1:1: name without an end, expected a closing backtick"},
		{"`a`` = 1", "1:1: name without an end, expected a closing backtick"},
		{"a = 1 || `` = 1", "1:10: an attribute name cannot be empty"},
		{`a = "b\x41"`, `1:7: unknown escape "\\x", ` + wantEscape},
		{`a = "b\`, `1:7: unknown escape "\\", ` + wantEscape},
		{`a = "\u12"`, "1:6: malformed escape, " + wantUnicode},
		{`a = "\u12`, "1:6: malformed escape, " + wantUnicode},
		{`a = "\u{}"`, "1:6: malformed escape, " + wantUnicode},
		{`a = "\u{12g}"`, "1:6: malformed escape, " + wantUnicode},
		{`a = "\u{0000041}"`, `1:6: malformed escape, expected \u{, one to six hexadecimal digits, }`},
		{`a = "\u{110000}"`, `1:6: escape \u{110000} is no Unicode character`},
		{`a = "\ud83d\ude00"`, `1:6: escape \ud83d is no Unicode character`},
		{"a = 1 &&\n\tb\n  = \"\xff\"", "3:6: byte 0xff is not UTF-8"},
		{"a = \"\ufffd\xc3", "1:7: byte 0xc3 is not UTF-8"},
	})
}

func TestParseAttributeErrors(t *testing.T) {
	testErrors(t, []errorCase{
		{"$foo = 1", `1:1: unknown attribute "$foo": ` + known},
		{"a = 1 && $ = 1", `1:10: unknown attribute "$": ` + known},
		{"`$Owner` = 1", `1:1: unknown attribute "$Owner": ` + known},
		{"$ALL", `1:1: unknown attribute "$ALL": ` + known},
		{"$all = 1", "1:1: $all selects every entity and cannot be compared"},
		{"$all not in (1)", "1:1: $all selects every entity and cannot be compared"},
		{`* && $all ~ "a"`, "1:6: $all selects every entity and cannot be compared"},
		{"`$all`", "1:1: $all selects every entity and cannot be compared"},
		{"$all (", `1:6: unexpected "(", ` + wantMore},
		{"$owner = 5", "1:10: $owner is a string and cannot be compared with a number"},
		{"$key in (5)", "1:10: $key is a string and cannot be compared with a number"},
		{`$expiration < "5"`, "1:15: $expiration is a number and cannot be compared with a string"},
		{"$txIndex = " + address, "1:12: $txIndex is a number and cannot be compared with a string"},
		{`$sequence ~ "5*"`, "1:13: $sequence is a number and cannot match a pattern"},
	})
}

func TestSyntaxErrorShortensWhatItQuotes(t *testing.T) {
	_, err := query.Parse("a " + strings.Repeat("ä", 1000))
	require.EqualError(t, err, `query 1:3: unexpected "`+strings.Repeat("ä", 40)+`…", `+wantOperator)
}
