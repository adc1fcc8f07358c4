package storetest

import (
	"fmt"
	"slices"
)

// languageCase is a query on the store of queried with the names that it finds.
type languageCase struct {
	text string
	at   uint64
	want string
}

func languageCases() []languageCase {
	return slices.Concat(operatorCases, logicCases, syntheticCases(), pastCases)
}

var operatorCases = []languageCase{
	{text: `*`, want: "abcde"},
	{text: `$all`, want: "abcde"},

	{text: `type = "node"`, want: "ab"},
	{text: `type != "node"`, want: "ce"},
	{text: `type < "node"`, want: "e"},
	{text: `type <= "node"`, want: "abe"},
	{text: `type > "node"`, want: "c"},
	{text: `type >= "node"`, want: "abc"},
	{text: `type ~ "no*"`, want: "ab"},
	{text: `type !~ "no*"`, want: "ce"},
	{text: `type in ("node", "vote")`, want: "abc"},
	{text: `type in ("vote" "nothing")`, want: "c"},
	{text: `type not in ("node")`, want: "ce"},
	{text: `type not in ("", "vote")`, want: "ab"},
	{text: `type = ""`, want: "e"},
	{text: `type != ""`, want: "abc"},
	{text: `type > ""`, want: "abc"},
	{text: `type < ""`, want: ""},
	{text: `type ~ ""`, want: "e"},
	{text: `type ~ "*"`, want: "abce"},
	{text: `type !~ "*"`, want: ""},

	{text: `cpu = 8`, want: "b"},
	{text: `cpu != 8`, want: "ace"},
	{text: `cpu < 8`, want: "ae"},
	{text: `cpu <= 8`, want: "abe"},
	{text: `cpu > 8`, want: "c"},
	{text: `cpu >= 8`, want: "bc"},
	{text: `cpu in (4, 16, 99)`, want: "ac"},
	{text: `cpu not in (4, 16, 99)`, want: "be"},
	{text: `cpu >= 0`, want: "abce"},
	{text: `cpu < 0`, want: ""},
	{text: `cpu = 0`, want: "e"},
	{text: `cpu <= 18446744073709551615`, want: "abce"},
	{text: `cpu > 9223372036854775807`, want: ""},

	// The language's words, in any case, and as names.
	{text: `type GLOB "no*" And cpu = 8`, want: "b"},
	{text: `type NOT GLOB "no*" or cpu Not In (16 0) && cpu = 4`, want: "ace"},
	{text: `in = 1 or not glob "x" or and not in (1)`, want: ""},
	{text: `!in && !not && not (glob in (1))`, want: "abcde"},

	// A literal finds only attributes of its type.
	{text: `size = 8`, want: "c"},
	{text: `size = "8"`, want: "a"},
	{text: `size >= 0`, want: "ce"},
	{text: `size >= ""`, want: "ae"},
	{text: `size != "x"`, want: "ae"},
	{text: `size != 99`, want: "ce"},
	{text: `size ~ "*"`, want: "ae"},
	{text: `size not in (7)`, want: "ce"},
	{text: `size not in ("7")`, want: "ae"},
	{text: `cpu = "8"`, want: ""},
	{text: `type = 0`, want: ""},

	// An attribute that nobody has.
	{text: `nothing = 1`, want: ""},
	{text: `nothing != 1`, want: ""},
	{text: `nothing !~ "x"`, want: ""},
	{text: `nothing not in ("x")`, want: ""},
	{text: `!(nothing = 1)`, want: "abcde"},
	{text: "`no such name` = \"x\"", want: ""},
	{text: `Type = "node"`, want: ""},
	{text: `type = "Node"`, want: ""},
}

var logicCases = []languageCase{
	// !=, !~ and not in need the attribute; a negation does not.
	{text: `!(type = "node")`, want: "cde"},
	{text: `not type = "node"`, want: "cde"},
	{text: `!(type != "node")`, want: "abd"},
	{text: `!(type ~ "no*")`, want: "cde"},
	{text: `!(type !~ "no*")`, want: "abd"},
	{text: `!(type in ("node" "vote"))`, want: "de"},
	{text: `!(type not in ("node" "vote"))`, want: "abcd"},
	{text: `!(cpu < 8)`, want: "bcd"},
	{text: `!(cpu not in (8))`, want: "bd"},
	{text: `!*`, want: ""},
	{text: `!!(type = "node")`, want: "ab"},
	{text: `!!!(type = "node")`, want: "cde"},

	{text: `type = "node" && cpu = 8`, want: "b"},
	{text: `type = "node" and cpu = 99`, want: ""},
	{text: `type = "node" || cpu = 16`, want: "abc"},
	{text: `type = "node" or type = "node"`, want: "ab"},
	{text: `cpu = 4 || cpu = 8 && type = "vote"`, want: "a"},
	{text: `(cpu = 4 || cpu = 8) && type = "node"`, want: "ab"},
	{text: `!(cpu = 4 || cpu = 8)`, want: "cde"},
	{text: `!(cpu = 4 && type = "node")`, want: "bcde"},
	{text: `!(cpu = 4) && !(cpu = 8)`, want: "cde"},
	{text: `* && type = "node"`, want: "ab"},
	{text: `* || type = "node"`, want: "abcde"},
	{text: `type = "node" && !(status = "pending")`, want: "b"},
	{text: `((((((((cpu = 4))))))))`, want: "a"},

	// Neither a superseded version nor one that ended leaks, also through ||.
	{text: `status = "pending"`, want: "a"},
	{text: `status = "pending" || status = "offline"`, want: "a"},
	{text: `type = "node" && (status = "pending" || status = "offline")`, want: "a"},
	{text: `status = "pending" || cpu = 16`, want: "ac"},
	{text: `status != "available"`, want: "a"},
	{text: `status ~ "p*" || status ~ "o*"`, want: "a"},
	{text: `!(status = "available")`, want: "acde"},
	{text: `cpu = 2 || cpu = 3 || cpu = 1`, want: ""},
}

func syntheticCases() []languageCase {
	key := func(name string) string { return keyOf(name).String() }
	return []languageCase{
		{text: `$owner = ` + bob.String(), want: "bd"},
		{text: `$owner = "` + carol.String() + `"`, want: "ae"},
		{text: `$owner != ` + bob.String(), want: "ace"},
		{text: `$owner in (` + bob.String() + ` ` + carol.String() + `)`, want: "abde"},
		{text: `$owner not in (` + bob.String() + `, ` + carol.String() + `)`, want: "c"},
		{text: `$owner not in (` + bob.String() + `)`, want: "ace"},
		{text: `$creator = ` + alice.String(), want: "ac"},
		{text: `$creator = ` + carol.String(), want: "e"},
		{text: `$creator not in (` + alice.String() + `)`, want: "bde"},
		{text: `$owner ~ "` + bob.String()[:6] + `*"`, want: "bd"},
		{text: `$owner = ` + alice.String() + ` || $creator = ` + alice.String(), want: "ac"},

		{text: `$key = ` + key("a"), want: "a"},
		{text: `$key = "` + key("b") + `"`, want: "b"},
		{text: `$key = ` + key("g"), want: ""},
		{text: `$key = "nothing"`, want: ""},
		{text: `$key != ` + key("a"), want: "bcde"},
		{text: `$key in (` + key("a") + ` ` + key("c") + ` ` + key("f") + `)`, want: "ac"},
		{text: `$key in ("x" "y")`, want: ""},
		{text: `$key not in (` + key("a") + ` ` + key("c") + `)`, want: "bde"},
		{text: `$key < ` + key("c"), want: "ab"},
		{text: `$key >= ` + key("c"), want: "cde"},
		{text: `$key ~ "` + key("b")[:4] + `*"`, want: "b"},
		{text: `$key ~ "0x6[13]*"`, want: "ac"},
		{text: `$key !~ "0x6[13]*"`, want: "bde"},
		{text: `!($key = ` + key("a") + `)`, want: "bcde"},

		{text: `$expiration < 100`, want: ""},
		{text: `$expiration < 100`, at: 12, want: "z"},
		{text: `$expiration = 1107`, want: "c"},
		{text: `$expiration = 1051`, want: ""},
		{text: `$expiration = 1051`, at: 1006, want: "c"},
		{text: `$expiration <= 1107`, want: "c"},
		{text: `$createdAtBlock > 1000`, want: "cde"},
		{text: `$createdAtBlock = 1000`, want: "ab"},
		{text: `$createdAtBlock in (1001 1003)`, want: "cde"},
		{text: `$createdAtBlock not in (1001 1003)`, want: "ab"},
		{text: `$lastModifiedAtBlock = 1003`, want: "be"},
		{text: `$lastModifiedAtBlock != 1003`, want: "acd"},
		{text: `$lastModifiedAtBlock > 1003`, want: "ac"},
		{text: `$lastModifiedAtBlock >= 1003 && $lastModifiedAtBlock < 1007`, want: "abe"},
		{text: `$lastModifiedAtBlock <= 1001`, want: "d"},
		{text: `$lastModifiedAtBlock in (1001, 1004, 18446744073709551615)`, want: "ad"},
		{text: `$lastModifiedAtBlock not in (1001, 1004, 18446744073709551615)`, want: "bce"},
		{text: `$lastModifiedAtBlock in (18446744073709551615)`, want: ""},
		{text: `$lastModifiedAtBlock not in (18446744073709551615)`, want: "abcde"},
		{text: `$lastModifiedAtBlock < 18446744073709551615`, want: "abcde"},
		{text: `$lastModifiedAtBlock > 18446744073709551615`, want: ""},
		{text: `$lastModifiedAtBlock != 18446744073709551615`, want: "abcde"},
		{text: `$lastModifiedAtBlock <= 18446744073709551615`, want: "abcde"},
		{text: `$lastModifiedAtBlock >= 9223372036854775808`, want: ""},
		{text: `$lastModifiedAtBlock = 9223372036854775808`, want: ""},
		{text: `$lastModifiedAtBlock != 9223372036854775807`, want: "abcde"},
		{text: `$lastModifiedAtBlock > 9223372036854775807`, want: ""},
		{text: `$lastModifiedAtBlock > 9223372036854775806`, want: ""},
		{text: `$lastModifiedAtBlock < 9223372036854775807`, want: "abcde"},
		{text: `!($lastModifiedAtBlock = 1003)`, want: "acd"},
		{text: fmt.Sprintf(`$sequence = %d`, 1001<<32|1), want: "d"},
		{text: fmt.Sprintf(`$sequence < %d`, 1001<<32|1), want: "abc"},
		{text: `$txIndex = 0 && $opIndex = 1`, want: "bde"},
		{text: `$opIndex = 0`, want: "ac"},
	}
}

// pastCases look at blocks before the head, which layouts without history
// refuse.
var pastCases = []languageCase{
	{text: `*`, at: 9, want: ""},
	{text: `*`, at: 10, want: "z"},
	{text: `*`, at: 14, want: "z"},
	{text: `*`, at: 15, want: ""},
	{text: `*`, at: 1000, want: "ab"},
	{text: `*`, at: 1002, want: "abcd"},
	{text: `*`, at: 1005, want: "abcdef"},
	{text: `*`, at: 1006, want: "abcdeg"},
	{text: `status = "pending"`, at: 1000, want: "ab"},
	{text: `status = "pending"`, at: 1002, want: "ab"},
	{text: `status = "pending"`, at: 1003, want: "a"},
	{text: `status = "pending" || status = "offline"`, at: 1002, want: "ab"},
	{text: `status = "pending" || status = "offline"`, at: 1005, want: "af"},
	{text: `status = "pending" || status = "offline"`, at: 1006, want: "ag"},
	{text: `!(status = "pending")`, at: 1002, want: "cd"},
	{text: `status not in ("pending")`, at: 1005, want: "bf"},
	{text: `type ~ "no*"`, at: 1006, want: "abg"},
	{text: `$owner = ` + alice.String(), at: 1003, want: "ac"},
	{text: `$owner = ` + alice.String(), at: 1005, want: "cf"},
	{text: `$lastModifiedAtBlock = 1001`, at: 1006, want: "cd"},
	{text: `$lastModifiedAtBlock > 1000`, at: 1000, want: ""},
	{text: `$key in (` + keyOf("f").String() + ` ` + keyOf("g").String() + `)`, at: 1005, want: "f"},
}
