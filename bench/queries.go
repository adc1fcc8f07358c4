package bench

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/query"
)

// NamedQuery is a query of the fixed set.
type NamedQuery struct {
	Name  string // as in the names of benchmarks
	Text  string
	Limit int // newest first; 0: no limit
}

// Queries are the fixed set, over the attributes that Blocks generates. Of n
// typical entities about n/100 have a given string attribute, n/170 a given
// numeric one, and n/50 a given owner.
func Queries() []NamedQuery {
	common, rare, number := names[7], names[13], names[42]
	owners := pool(9, func(i int) string { return ownerAddress(i).String() })
	q := func(name, format string, args ...any) NamedQuery {
		return NamedQuery{Name: name, Text: fmt.Sprintf(format, args...)}
	}
	list := []NamedQuery{
		q("equal", `%s = "%s"`, common, values[0]),
		q("equal-number", `%s = 8`, number),
		q("range", `%s >= 2500 && %s < 5000`, number, number),
		q("and", `%s ~ "*" && $owner in (%s)`, common, strings.Join(owners[:8], ", ")),
		q("or", `%s = "%s" || %s = "%s" || %s > 9000`, common, values[0], rare, values[1], number),
		q("not", `%s ~ "v*" && !(%s = "%s")`, common, common, values[0]),
		q("in", `%s in ("%s", "%s", "%s")`, common, values[1], values[2], values[3]),
		q("glob-prefix", `%s ~ "v0*"`, common),
		q("glob-inner", `%s ~ "v?[0-4]-*a*"`, common),
		q("owner-100", `$owner = %s`, owners[8]),
		q("newest-100", `*`),
	}
	for i := len(list) - 2; i < len(list); i++ {
		list[i].Limit = 100
	}
	return list
}

// Answer is the right answer to a query: how many entities in which order.
type Answer struct {
	Count int
	keys  uint64 // hash of the keys in order; of this process only
}

// Answers finds the answers to queries on a store that holds the entities of a
// stream, none changed, at its last block. It generates every entity, without
// payload, and tries the queries on each.
func Answers(p Profile, o GenOptions, queries []NamedQuery) ([]Answer, error) {
	exprs := make([]query.Expr, len(queries))
	for i, q := range queries {
		var err error
		if exprs[i], err = query.Parse(q.Text); err != nil {
			return nil, fmt.Errorf("query %s: %w", q.Name, err)
		}
	}
	found := make([][]store.Key, len(queries))
	o = o.withDefaults()
	last := o.Start + o.blocks() - 1
	for b, err := range Blocks(p.WithPayload(0), o) {
		if err != nil {
			return nil, err
		}
		for i := range b.Ops {
			e := made(&b.Ops[i], b.Number)
			for n, expr := range exprs {
				if e.Expiration > last && query.Match(expr, e) {
					found[n] = append(found[n], e.Key)
				}
			}
		}
	}
	answers := make([]Answer, len(queries))
	for i, keys := range found {
		slices.Reverse(keys) // newest first
		if limit := queries[i].Limit; limit > 0 && len(keys) > limit {
			keys = keys[:limit]
		}
		var h maphash.Hash
		h.SetSeed(hashSeed)
		for k := range keys {
			h.Write(keys[k][:])
		}
		answers[i] = Answer{Count: len(keys), keys: h.Sum64()}
	}
	return answers, nil
}
