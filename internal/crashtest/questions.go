package crashtest

import (
	"slices"

	"github.com/varvedb/varve/store/query"
)

// Questions returns what is asked of a store of entities that a fault has met: all of
// them (nil), then queries of which each goes through another index, or through
// several. The attributes are those of the histories of this package and of fault.
func Questions() []query.Expr { return slices.Clone(questions) }

var questions = func() []query.Expr {
	list := []query.Expr{nil}
	for _, text := range []string{
		`group = "g1"`, `group in ("g0", "g3") && n > 4`, `n >= 3 && n < 7`, `!(group = "g2")`, `group != "g4" || n = 2`,
		`unique ~ "u1*"`, `rare = "ab" || rare = ""`, `rare !~ "a*"`, `big > 9223372036854775807`, `n not in (1 2 3)`,
		`$owner = 0x0100000000000000000000000000000000000000`, `$creator != 0x0000000000000000000000000000000000000000`,
		`$expiration < 60`, `$lastModifiedAtBlock > 20`, `$createdAtBlock <= 30 && group = "g0"`,
		`group in ("g0", "g1", "g2") && n < 9 && !(rare = "a" || n in (0 2)) && unique ~ "u*" && $expiration > 40`,
		`(group = "g1" && n >= 2) || (rare ~ "*" && big > 5 && !(group = "g3")) || (unique !~ "u1*" && n = 7)`,
	} {
		expr, err := query.Parse(text)
		if err != nil {
			panic(err) // a constant of this file
		}
		list = append(list, expr)
	}
	return list
}()
