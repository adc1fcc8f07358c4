package query_test

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/query"
)

const (
	address = "0x0000000000000000000000000000000000c0ff01"
	key     = "0x0365f5d817684c92ede4c1df00fd21519df8a3a97c261435ca3e9edd33aedb1a"
)

func text(name, value string) query.Expr {
	return query.Compare{Name: name, Op: query.Equal, Value: query.Text(value)}
}

func number(name string, op query.CompareOp, n uint64) query.Expr {
	return query.Compare{Name: name, Op: op, Value: query.Number(n)}
}

func one(name string) query.Expr { return number(name, query.Equal, 1) }

func and(terms ...query.Expr) query.Expr { return query.And{Terms: terms} }

func or(terms ...query.Expr) query.Expr { return query.Or{Terms: terms} }

func not(term query.Expr) query.Expr { return query.Not{Term: term} }

func in(name string, values ...query.Value) query.Expr {
	return query.In{Name: name, Values: values}
}

func glob(name, pattern string) query.Expr { return query.Glob{Name: name, Pattern: pattern} }

func notGlob(name, pattern string) query.Expr {
	return query.Glob{Name: name, Pattern: pattern, Negated: true}
}

func notIn(name string, values ...query.Value) query.Expr {
	return query.In{Name: name, Values: values, Negated: true}
}

// parseCase is a query, its tree, and how that prints; "" for the same text.
type parseCase struct {
	src   string
	tree  query.Expr
	print string
}

func testParse(t *testing.T, cases []parseCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.src, func(t *testing.T) {
			got, err := query.Parse(c.src)
			require.NoError(t, err)
			require.Equal(t, c.tree, got)
			want := c.print
			if want == "" {
				want = c.src
			}
			require.Equal(t, want, got.String())
			require.NoError(t, query.Check(got))
			again, err := query.Parse(got.String())
			require.NoError(t, err)
			require.Equal(t, got, again)
		})
	}
}

func TestParseStructure(t *testing.T) {
	a, b, c, d := one("a"), one("b"), one("c"), one("d")
	testParse(t, []parseCase{
		{"*", query.All{}, ""},
		{"$all", query.All{}, "*"},
		{"($all)", query.All{}, "*"},
		{"a=1", a, "a = 1"},
		{"((a=1))", a, "a = 1"},
		{"a = 1 && b = 1 && c = 1", and(a, b, c), ""},
		{"a = 1 and b = 1 AND c = 1", and(a, b, c), "a = 1 && b = 1 && c = 1"},
		{"a = 1 || b = 1 || c = 1", or(a, b, c), ""},
		{"a = 1 or b = 1 OR c = 1", or(a, b, c), "a = 1 || b = 1 || c = 1"},
		{"(a = 1 && b = 1) && c = 1", and(and(a, b), c), ""},
		{"a = 1 && (b = 1 && c = 1)", and(a, and(b, c)), ""},
		{"(a = 1 || b = 1) || c = 1", or(or(a, b), c), ""},
		{"a = 1 && (b = 1 || c = 1)", and(a, or(b, c)), ""},
		{"a=1 || b=1 && c=1 || d=1", or(a, and(b, c), d), "a = 1 || (b = 1 && c = 1) || d = 1"},
		{"(a = 1 || b = 1) && (c = 1 || d = 1)", and(or(a, b), or(c, d)), ""},
		{"!a=1", not(a), "!(a = 1)"},
		{"not a=1", not(a), "!(a = 1)"},
		{"NOT a=1 && b=1", and(not(a), b), "!(a = 1) && b = 1"},
		{"!(a = 1 && b = 1)", not(and(a, b)), ""},
		{"!!not a=1", not(not(not(a))), "!!!(a = 1)"},
		{"!*", not(query.All{}), ""},
		{"! $all", not(query.All{}), "!*"},
		{"* && !*", and(query.All{}, not(query.All{})), ""},
		{" \t\r\n a\n=\u00a01 ", a, "a = 1"},
	})
}

func TestParseComparisons(t *testing.T) {
	testParse(t, []parseCase{
		{"n = 5", number("n", query.Equal, 5), ""},
		{"n != 5", number("n", query.NotEqual, 5), ""},
		{"n < 5", number("n", query.Less, 5), ""},
		{"n<=5", number("n", query.LessOrEqual, 5), "n <= 5"},
		{"n > 5", number("n", query.Greater, 5), ""},
		{"n>=5", number("n", query.GreaterOrEqual, 5), "n >= 5"},
		{`name="value"`, text("name", "value"), `name = "value"`},
		{`cpu>=8&&x="y"`, and(number("cpu", query.GreaterOrEqual, 8), text("x", "y")), `cpu >= 8 && x = "y"`},
		{`s < "m"`, query.Compare{Name: "s", Op: query.Less, Value: query.Text("m")}, ""},
		{`s ~ "a*"`, query.Glob{Name: "s", Pattern: "a*"}, ""},
		{`s!~"a*"`, query.Glob{Name: "s", Pattern: "a*", Negated: true}, `s !~ "a*"`},
		{`s GLOB "a*"`, glob("s", "a*"), `s ~ "a*"`},
		{`s glob"a*"`, glob("s", "a*"), `s ~ "a*"`},
		{`s NOT GLOB "a*"`, notGlob("s", "a*"), `s !~ "a*"`},
		{`s Not Glob "a*" And n Not In (1) OR Not n iN (2)`,
			or(and(notGlob("s", "a*"), notIn("n", query.Number(1))), not(in("n", query.Number(2)))),
			`(s !~ "a*" && n not in (1)) || !(n in (2))`},
		{`type = "A" AND email GLOB "*@*.org"`, and(text("type", "A"), glob("email", "*@*.org")), `type = "A" && email ~ "*@*.org"`},
		{`s in ("a" "b")`, in("s", query.Text("a"), query.Text("b")), ""},
		{`s in ("a", "b")`, in("s", query.Text("a"), query.Text("b")), `s in ("a" "b")`},
		{`s IN("a""b" , "c")`, in("s", query.Text("a"), query.Text("b"), query.Text("c")), `s in ("a" "b" "c")`},
		{"n NOT IN (1 2)", notIn("n", query.Number(1), query.Number(2)), "n not in (1 2)"},
		{"n not in (1)", notIn("n", query.Number(1)), ""},
		{"not n not in (1)", not(notIn("n", query.Number(1))), "!(n not in (1))"},
		{"$expiration < 100", number("$expiration", query.Less, 100), ""},
		{"$createdAtBlock > 1000", number("$createdAtBlock", query.Greater, 1000), ""},
		{"$owner in (" + address + ")", in("$owner", query.Text(address)), ""},
		{"$owner not in (" + address + ")", notIn("$owner", query.Text(address)), ""},
		{"$key = " + key, text("$key", key), ""},
		{"proposal = " + key, text("proposal", key), ""},
	})
}

func TestParseNames(t *testing.T) {
	testParse(t, []parseCase{
		{"a-b.c_d9 = 1", one("a-b.c_d9"), ""},
		{"_ = 1", one("_"), ""},
		{"größe=1", one("größe"), "größe = 1"},
		{"日本² = 1", one("日本²"), ""},
		{"And = 1 && Not = 1 && iN = 1", and(one("And"), one("Not"), one("iN")), "`And` = 1 && `Not` = 1 && `iN` = 1"},
		{"android = 1 && not-a = 1", and(one("android"), one("not-a")), ""},
		{"`and` = 1", one("and"), ""},
		{"`in` in (1)", in("in", query.Number(1)), ""},
		{"`NOT`=1", one("NOT"), "`NOT` = 1"},
		{"`a b` = 1", one("a b"), ""},
		{"`a``b` = 1", one("a`b"), ""},
		{"```` = 1", one("`"), ""},
		{"`9` = 1", one("9"), ""},
		{"`plain` = 1", one("plain"), "plain = 1"},
		{"`$sequence` = 1", one("$sequence"), "$sequence = 1"},
		{"`line\nbreak\x00` = 1", one("line\nbreak\x00"), ""},
		{"`\"\\n\"` = 1", one(`"\n"`), ""},
	})
}

// TestParseWords has the words of the language where a name must stand: each is a name when
// a comparison follows it, and after "!" also when nothing does.
func TestParseWords(t *testing.T) {
	has := func(name string) query.Expr {
		return or(glob(name, "*"), number(name, query.GreaterOrEqual, 0))
	}
	testParse(t, []parseCase{
		{"and = 1 and or = 1 or not = 1", or(and(one("and"), one("or")), one("not")), "(`and` = 1 && `or` = 1) || `not` = 1"},
		{"in in (1) && glob glob \"a\"", and(in("in", query.Number(1)), glob("glob", "a")), "`in` in (1) && `glob` ~ \"a\""},
		{"in not in (1)", notIn("in", query.Number(1)), "`in` not in (1)"},
		{"not in (1)", in("not", query.Number(1)), "`not` in (1)"},
		{"not not in (1)", notIn("not", query.Number(1)), "`not` not in (1)"},
		{"not not not in (1)", not(notIn("not", query.Number(1))), "!(`not` not in (1))"},
		{"not in = 1", not(one("in")), "!(`in` = 1)"},
		{"not not = 1", not(one("not")), "!(`not` = 1)"},
		{"not glob = 1", not(one("glob")), "!(`glob` = 1)"},
		{"not glob \"a\"", glob("not", "a"), "`not` ~ \"a\""},
		{"not glob glob \"a\"", not(glob("glob", "a")), "!(`glob` ~ \"a\")"},
		{"not glob not glob \"a\"", not(notGlob("glob", "a")), "!(`glob` !~ \"a\")"},
		{"(not = 1) && !(OR > 5)", and(one("not"), not(number("OR", query.Greater, 5))), "`not` = 1 && !(`OR` > 5)"},
		{"AND ~ \"a\" And Glob !~ \"b\"", and(glob("AND", "a"), notGlob("Glob", "b")), "`AND` ~ \"a\" && `Glob` !~ \"b\""},
		{"!in", not(has("in")), "!(`in` ~ \"*\" || `in` >= 0)"},
		{"(!not) && !or or !and", or(and(not(has("not")), not(has("or"))), not(has("and"))),
			"(!(`not` ~ \"*\" || `not` >= 0) && !(`or` ~ \"*\" || `or` >= 0)) || !(`and` ~ \"*\" || `and` >= 0)"},
		{"!and and and = 1", and(not(has("and")), one("and")), "!(`and` ~ \"*\" || `and` >= 0) && `and` = 1"},
		{"!not a = 1", not(not(one("a"))), "!!(a = 1)"},
		{"!not in (1)", not(in("not", query.Number(1))), "!(`not` in (1))"},
		{"!not in = 1", not(not(one("in"))), "!!(`in` = 1)"},
		{"globe = 1 && orchid = 1", and(one("globe"), one("orchid")), ""},
	})
}

func TestParseLiterals(t *testing.T) {
	upper := "0X" + strings.ToUpper(address[2:])
	testParse(t, []parseCase{
		{`s = ""`, text("s", ""), ""},
		{`s = "\" \\ \n \r \t \0"`, text("s", "\" \\ \n \r \t \x00"), ""},
		{`s = "\u00e9\u{e9}\u{1F600}\u{0}"`, text("s", "éé😀\x00"), `s = "éé😀\0"`},
		{"s = \"raw\nline\x01\"", text("s", "raw\nline\x01"), `s = "raw\nline\u{1}"`},
		{`s = "日本語 \u{200B}"`, text("s", "日本語 \u200b"), ""},
		{`s = "\01"`, text("s", "\x001"), ""},
		{"n = 0", number("n", query.Equal, 0), ""},
		{"n = 007", number("n", query.Equal, 7), "n = 7"},
		{"n = 18446744073709551615", number("n", query.Equal, 1<<64-1), ""},
		{"s = " + upper, text("s", address), "s = " + address},
		{"s = \"" + address + "\"", text("s", address), "s = " + address},
		{"s = \"" + upper + "\"", text("s", upper), ""},
		{"$owner = \"" + upper + "\"", text("$owner", address), "$owner = " + address},
		{`$creator != "0xABC"`, query.Compare{Name: "$creator", Op: query.NotEqual, Value: query.Text("0xabc")},
			`$creator != "0xabc"`},
		{`$key not in ("0xAB" "0xzZ")`, notIn("$key", query.Text("0xab"), query.Text("0xzZ")),
			`$key not in ("0xab" "0xzZ")`},
		{`$key < "0xAB"`, query.Compare{Name: "$key", Op: query.Less, Value: query.Text("0xAB")}, ""},
		{`$key ~ "0xAB*"`, query.Glob{Name: "$key", Pattern: "0xAB*"}, ""},
	})
}

// TestParseRealQueries reads the queries that were asked of a real Arkiv store.
func TestParseRealQueries(t *testing.T) {
	f, err := os.Open("testdata/arkiv.txt")
	require.NoError(t, err)
	defer f.Close()
	lines := 0
	for s := bufio.NewScanner(f); s.Scan(); lines++ {
		tree, err := query.Parse(s.Text())
		require.NoError(t, err, "%s", s.Text())
		require.NoError(t, query.Check(tree))
		again, err := query.Parse(tree.String())
		require.NoError(t, err)
		require.Equal(t, tree, again)
	}
	require.Equal(t, 52, lines)
}

// TestParseKeepsShape parses the query that has 65,536 terms in normal form.
func TestParseKeepsShape(t *testing.T) {
	clause := "(a = 1 || b = 2)"
	tree, err := query.Parse(strings.Repeat(clause+" && ", 15) + clause)
	require.NoError(t, err)
	height := 0
	for e := tree; ; height++ {
		switch n := e.(type) {
		case query.And:
			require.Len(t, n.Terms, 16)
			e = n.Terms[0]
			continue
		case query.Or:
			require.Len(t, n.Terms, 2)
			e = n.Terms[0]
			continue
		}
		break
	}
	require.Equal(t, 16*2, strings.Count(tree.String(), " = "))
	require.Equal(t, 2, height)
}
