package query_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

var (
	stringNames  = []string{entity.AttrKey, entity.AttrOwner, entity.AttrCreator}
	numericNames = []string{entity.AttrExpiration, entity.AttrCreatedAtBlock, entity.AttrLastModifiedAtBlock,
		entity.AttrSequence, entity.AttrTxIndex, entity.AttrOpIndex}
	oddNames = []string{"a", "type", "b-c.d", "größe", "and", "OR", "Not", "in", "not", "GLOB", "gLob", "9", "a b", "`", "a``b", "\n", "x$", "-", "."}
	oddTexts = []string{"", "a", "node", "0xAB", "0xab", address, key, "0X" + address[2:], "\x00\n\"\\'", "日本😀\u200b\ue000\ufffd"}
)

// names draws any attribute name that may be compared with the type.
func names(kind entity.AttributeKind) *rapid.Generator[string] {
	synthetic := stringNames
	if kind == entity.Numeric {
		synthetic = numericNames
	}
	return rapid.OneOf(
		rapid.SampledFrom(oddNames),
		rapid.SampledFrom(synthetic),
		rapid.String().Filter(func(s string) bool { return s != "" && s[0] != '$' }),
	)
}

func texts() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom(oddTexts), rapid.String())
}

func values(kind entity.AttributeKind) *rapid.Generator[query.Value] {
	if kind == entity.Numeric {
		return rapid.Map(rapid.Uint64(), query.Number)
	}
	return rapid.Map(texts(), query.Text)
}

func leaves() *rapid.Generator[query.Expr] {
	return rapid.Custom(func(t *rapid.T) query.Expr {
		kind := rapid.SampledFrom([]entity.AttributeKind{entity.String, entity.Numeric}).Draw(t, "kind")
		negated := rapid.Bool().Draw(t, "negated")
		switch rapid.IntRange(0, 3).Draw(t, "leaf") {
		case 0:
			return query.All{}
		case 1:
			return query.Glob{Name: names(entity.String).Draw(t, "name"), Pattern: texts().Draw(t, "pattern"), Negated: negated}
		case 2:
			list := rapid.SliceOfN(values(kind), 1, 4).Draw(t, "values")
			return query.In{Name: names(kind).Draw(t, "name"), Values: list, Negated: negated}
		}
		op := rapid.Custom(func(t *rapid.T) query.CompareOp {
			return query.CompareOp(rapid.IntRange(int(query.Equal), int(query.GreaterOrEqual)).Draw(t, "op"))
		}).Draw(t, "op")
		return query.Compare{Name: names(kind).Draw(t, "name"), Op: op, Value: values(kind).Draw(t, "value")}
	})
}

// trees draws trees of any shape whose leaves pass Check.
func trees(depth int) *rapid.Generator[query.Expr] {
	leaf := leaves().Filter(func(e query.Expr) bool { return query.Check(e) == nil })
	if depth == 0 {
		return leaf
	}
	return rapid.Custom(func(t *rapid.T) query.Expr {
		below := trees(depth - 1)
		switch rapid.IntRange(0, 3).Draw(t, "node") {
		case 0:
			return query.And{Terms: rapid.SliceOfN(below, 2, 4).Draw(t, "and")}
		case 1:
			return query.Or{Terms: rapid.SliceOfN(below, 2, 4).Draw(t, "or")}
		case 2:
			return query.Not{Term: below.Draw(t, "not")}
		}
		return leaf.Draw(t, "leaf")
	})
}

// TestPrintParseIdentity: any tree that passes Check survives being printed.
func TestPrintParseIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := trees(4).Draw(t, "tree")
		require.NoError(t, query.Check(tree))
		printed := tree.String()
		got, err := query.Parse(printed)
		require.NoError(t, err, "%s", printed)
		require.Empty(t, cmp.Diff(tree, got), "%s", printed)
		require.Equal(t, printed, got.String())
	})
}

// TestWordsPrintParse strings words and signs together. What happens to be a query has to
// survive being printed, whichever of its words were names.
func TestWordsPrintParse(t *testing.T) {
	tokens := rapid.SliceOfN(rapid.SampledFrom([]string{
		"and", "or", "not", "in", "glob", "NOT", "a", "= 1", "(1)", `"x"`, "!", "(", ")", "&&", "~", "`in`",
	}), 1, 9)
	rapid.Check(t, func(t *rapid.T) {
		src := strings.Join(tokens.Draw(t, "tokens"), " ")
		tree, err := query.Parse(src)
		if err != nil {
			return
		}
		again, err := query.Parse(tree.String())
		require.NoError(t, err, "%s, printed %s", src, tree)
		require.Empty(t, cmp.Diff(tree, again), "%s", src)
	})
}

// TestMatchLaws checks that Match agrees with the relations between operators.
func TestMatchLaws(t *testing.T) {
	v := subject(t)
	rapid.Check(t, func(t *rapid.T) {
		a, b := trees(2).Draw(t, "a"), trees(2).Draw(t, "b")
		matchA, matchB := query.Match(a, v), query.Match(b, v)
		require.Equal(t, matchA && matchB, query.Match(and(a, b), v))
		require.Equal(t, matchA || matchB, query.Match(or(a, b), v))
		require.Equal(t, !matchA, query.Match(not(a), v))
		if list, ok := a.(query.In); ok {
			opposite := list
			opposite.Negated = !list.Negated
			either := slices.Contains([]bool{matchA, query.Match(opposite, v)}, true)
			_, isText := v.StringAttribute(list.Name)
			_, isNumber := v.NumericAttribute(list.Name)
			has := isText && list.Values[0].Kind == entity.String || isNumber && list.Values[0].Kind == entity.Numeric
			require.Equal(t, has, either)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "*", "$all", `a = 1 && (b != "x" || !(c in (1, 2))) and not d not in ("y" "z")`,
		"`a``b` ~ \"[^a-z]*\" or $owner !~ \"0x*\"", "$key = " + key, "s = \"\\u{1F600}\\0\\n\x01\"",
		"a=1||b=1&&c=1", "((((", "!!!!a<5", "a == 1", "!a", "!in and !not||!OR", "not not in (1) or in not glob \"x\"", "!not glob = 1", "a = 18446744073709551616", "\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, src string) {
		tree, err := query.Parse(src)
		if err != nil {
			require.ErrorIs(t, err, query.ErrSyntax)
			require.Nil(t, tree)
			return
		}
		require.NoError(t, query.Check(tree))
		printed := tree.String()
		require.LessOrEqual(t, len(printed), 10*len(src))
		again, err := query.Parse(printed)
		require.NoError(t, err, "%s", printed)
		require.Equal(t, tree, again)
		require.Equal(t, printed, again.String())
	})
}
