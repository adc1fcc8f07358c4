package query_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// subject is a version with a name that has both types, an empty string and the largest number.
func subject(t *testing.T) *entity.Entity {
	t.Helper()
	owner, err := entity.ParseAddress(address)
	require.NoError(t, err)
	k, err := entity.ParseKey(key)
	require.NoError(t, err)
	return &entity.Entity{
		Key: k, Owner: owner,
		StringAttributes:    map[string]string{"type": "node", "both": "b", "empty": "", "line": "a\nb", "Z": "Ż"},
		NumericAttributes:   map[string]uint64{"cpu": 8, "both": 5, "max": 1<<64 - 1},
		Sequence:            entity.MakeSequence(1001, 2, 3),
		LastModifiedAtBlock: 1010,
		Expiration:          2000,
	}
}

var matching = []string{
	"*", "$all", "!(!*)",
	`type = "node"`, `type >= "node"`, `type <= "node"`, `type < "nodf"`, `type > "nod"`, `Z > "z"`,
	"cpu = 8", "cpu >= 8", "cpu <= 8", "cpu < 9", "cpu > 7", "cpu != 7",
	"max = 18446744073709551615", "max > 9223372036854775807", "max > 9223372036854775808",
	`both = "b" && both = 5`, "both < 6", `both > "a"`,
	`empty = ""`, `empty ~ "*"`, `empty ~ ""`, `empty < "a"`,
	`type ~ "no*"`, `type ~ "[a-z]?de"`, `type !~ "*x*"`, `line ~ "a*b"`, `line ~ "a?b"`,
	`type in ("x" "node")`, "cpu in (7, 8)", "cpu not in (7, 9)", `type not in ("x")`,
	"$owner = " + address, "$owner in (" + address + ")", "$owner not in (" + key + ")",
	`$owner ~ "0x0000*c0ff01"`, `$owner = "0x0000000000000000000000000000000000C0FF01"`,
	"$key = " + key, `$key > "0x"`,
	`$creator = "0x0000000000000000000000000000000000000000"`,
	"$createdAtBlock > 1000", "$createdAtBlock = 1001", "$txIndex = 2", "$opIndex = 3",
	"$lastModifiedAtBlock = 1010", "$expiration > 100", "$expiration = 2000", "$sequence = 4299262394371",
	`a = 1 || type = "node"`, `type = "node" && !(a = 1)`, `!(type = "x") && !(type = "y" || cpu = 9)`,
	// The complement is true where the attribute is missing or of the other type.
	"!(missing = 1)", "!(missing != 1)", `!(missing ~ "*")`, "!(missing in (1))", "!(missing not in (1))",
	`!(cpu = "8")`, "!(type < 5)",
	// A name alone after "!" is an attribute that is not there.
	"!missing", "!`miss ing`", "!!type", "!!both", "!(!type)", "!missing && !other || cpu = 9", "!!$owner", "!!$expiration",
}

var notMatching = []string{
	"!*", "!type", "!cpu", "!both", "!empty", "!$owner", "!$expiration", "!missing && cpu = 9",
	// A comparison needs an attribute of that name and of the literal's type.
	"missing = 1", "missing != 1", "missing < 1", `missing ~ "*"`, `missing !~ "x"`,
	"missing in (1)", "missing not in (1)",
	"type = 1", "type != 1", "type not in (1)", `cpu = "8"`, `cpu != "7"`, `cpu ~ "*"`, `cpu !~ "x"`,
	`cpu in ("8")`, `cpu not in ("7")`,
	`type = "Node"`, `type ~ "No*"`, `type ~ "nod"`, `type ~ "[nod"`,
	"cpu > 8", "cpu < 8", "cpu != 8", "max < 1", `type < "node"`, `Z < "z"`,
	"$owner not in (" + address + ")", "$expiration < 100", "$createdAtBlock < 1000",
	`type = "node" && a = 1`, "a = 1 || b = 1",
}

func TestMatch(t *testing.T) {
	v := subject(t)
	require.Equal(t, uint64(4299262394371), v.Sequence)
	for want, sources := range map[bool][]string{true: matching, false: notMatching} {
		for _, src := range sources {
			t.Run(src, func(t *testing.T) {
				e, err := query.Parse(src)
				require.NoError(t, err)
				require.Equal(t, want, query.Match(e, v))
				require.Equal(t, !want, query.Match(query.Not{Term: e}, v))
			})
		}
	}
}

// TestMatchOfInvalidTrees: an invalid tree matches no entity.
func TestMatchOfInvalidTrees(t *testing.T) {
	v := subject(t)
	for _, e := range []query.Expr{
		nil, &query.All{}, number("cpu", 0, 8), number("cpu", 9, 8),
		query.Compare{Name: "cpu", Op: query.Equal},
	} {
		require.False(t, query.Match(e, v))
	}
}
