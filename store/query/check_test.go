package query_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

func TestCheckRefuses(t *testing.T) {
	a := one("a")
	value := func(v query.Value) query.Expr {
		return query.Compare{Name: "a", Op: query.Equal, Value: v}
	}
	for _, c := range []struct {
		want string
		tree query.Expr
	}{
		{"unknown node <nil>", nil},
		{"unknown node *query.All", &query.All{}},
		{"unknown node *query.And", (*query.And)(nil)},
		{"unknown node <nil>", not(nil)},
		{"And of 0 terms, want two or more", and()},
		{"And of 1 terms, want two or more", or(a, and(a))},
		{"Or of 1 terms, want two or more", not(or(a))},
		{"an attribute name cannot be empty", one("")},
		{"is not UTF-8", one("a\xff")},
		{"$all selects every entity", one("$all")},
		{`unknown attribute "$x"`, in("$x", query.Number(1))},
		{"unknown operator(0)", query.Compare{Name: "a", Value: query.Number(1)}},
		{"unknown operator(7)", number("a", 7, 1)},
		{"malformed literal of kind 0", value(query.Value{})},
		{"malformed literal of kind 3", value(query.Value{Kind: 3})},
		{"malformed literal of kind 1", value(query.Value{Kind: entity.String, Text: "x", Number: 1})},
		{"malformed literal of kind 2", value(query.Value{Kind: entity.Numeric, Text: "x", Number: 1})},
		{`string "\xff" is not UTF-8`, text("a", "\xff")},
		{`pattern "\xff" is not UTF-8`, query.Glob{Name: "a", Pattern: "\xff"}},
		{"unknown attribute", query.Glob{Name: "$a", Pattern: "*"}},
		{"pattern of 4097 bytes", query.Glob{Name: "a", Pattern: strings.Repeat("a", 4097)}},
		{"list of 0 values, want 1 to 10000", in("a")},
		{"list of 10001 values", in("a", make([]query.Value, 10_001)...)},
		{"list of strings and numbers", in("a", query.Number(1), query.Text("b"))},
		{"malformed literal", in("a", query.Value{})},
		{"$owner is a string and cannot be compared with a number", notIn("$owner", query.Number(1))},
		{"$opIndex is a number and cannot be compared with a string", text("$opIndex", "1")},
		{"$opIndex is a number and cannot match a pattern", query.Glob{Name: "$opIndex", Pattern: "*"}},
		{`attribute "$owner": "0xAB" must be in lower case`, text("$owner", "0xAB")},
		{`attribute "$key": "0XAB" must be in lower case`, in("$key", query.Text("0XAB"))},
	} {
		t.Run(c.want, func(t *testing.T) {
			err := query.Check(c.tree)
			require.ErrorIs(t, err, query.ErrInvalid)
			require.ErrorContains(t, err, c.want)
			if c.tree != nil && c.tree != query.Expr((*query.And)(nil)) {
				require.NotPanics(t, func() { _ = c.tree.String() })
			}
		})
	}
}

// TestCheckBoundsSharedTrees builds small graphs that are huge as trees.
func TestCheckBoundsSharedTrees(t *testing.T) {
	wide, tall := one("a"), one("a")
	for range 100 {
		wide = and(wide, wide)
	}
	for range 200 {
		tall = not(tall)
	}
	huge := text("a", strings.Repeat("x", query.MaxLength/2))
	many := make([]query.Expr, 10_000)
	for i := range many {
		many[i] = query.All{}
	}
	require.ErrorContains(t, query.Check(wide), "more than 10000 operators and comparisons")
	require.ErrorContains(t, query.Check(tall), "nested deeper than 200")
	require.ErrorContains(t, query.Check(or(huge, huge)), "more than 65536 bytes of names and text")
	require.ErrorContains(t, query.Check(text("a", strings.Repeat("\n", 40_000))), "80006 bytes when printed")
	require.ErrorContains(t, query.Check(or(many...)), "more than 10000 operators and comparisons")
	require.NoError(t, query.Check(or(many[1:]...)))
	require.NoError(t, query.Check(huge))
}

func TestStringOfOperators(t *testing.T) {
	require.Equal(t, "<=", query.LessOrEqual.String())
	require.Equal(t, "operator(0)", query.CompareOp(0).String())
	require.Equal(t, `"a\"b"`, query.Text(`a"b`).String())
	require.Equal(t, "7", query.Number(7).String())
}
