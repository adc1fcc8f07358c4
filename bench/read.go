package bench

import (
	"fmt"
	"slices"
	"strings"

	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// NamedQuery is one of the fixed queries.
type NamedQuery struct {
	Name  string // as in the names of benchmarks
	Text  string
	Limit int // newest first; 0: no limit
}

// Queries returns the fixed queries over the attributes that Blocks generates.
// Of n typical entities about n/100 have a given string attribute, n/170 a
// given numeric one, and n/50 a given owner.
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

// Answer computes the expected keys, in order, on a store that holds the
// unchanged entities of a stream, at its last block. It generates every entity,
// without payload, and evaluates the query on each.
func (q NamedQuery) Answer(p Profile, o GenOptions) (keys []entity.Key, err error) {
	expr, err := q.parse()
	if err != nil {
		return nil, err
	}
	for b, err := range Blocks(p.WithPayload(0), o) {
		if err != nil {
			return nil, err
		}
		for i := range b.Ops {
			if e := madeEntity(&b.Ops[i], b.Number); query.Match(expr, e) {
				keys = append(keys, e.Key)
			}
		}
	}
	slices.Reverse(keys) // newest first
	if q.Limit > 0 {
		keys = keys[:min(q.Limit, len(keys))]
	}
	return keys, nil
}

func (q NamedQuery) parse() (query.Expr, error) {
	expr, err := query.Parse(q.Text)
	if err != nil {
		err = fmt.Errorf("query %s: %w", q.Name, err)
	}
	return expr, err
}

// Reads returns a mix that repeats a query. The keys and their order must equal
// the answer.
func (q NamedQuery) Reads(answer []entity.Key) (mix.Reads, error) {
	expr, err := q.parse()
	check := func(_ mix.Op, a mix.Answer) error {
		if !slices.Equal(a.Keys, answer) {
			return mismatch("%d entities, want %d, or these in another order", len(a.Keys), len(answer))
		}
		return nil
	}
	return mix.Fixed{Of: q.Name, Ops: []mix.Op{{Kind: q.Name, Block: store.Head, Expr: expr, Limit: q.Limit}}, Right: check}, err
}

// sample is how many different entities are read, repeatedly and in random
// order.
const sample = 4096

// Gets returns a mix that reads whole entities of an unchanged stream by key.
// The seed chooses them.
func Gets(p Profile, of GenOptions, seed uint64) (mix.Reads, error) {
	g := newGenerator(p, of)
	n := min(sample, g.o.Entities)
	if n == 0 {
		return nil, fmt.Errorf("get: %w: no entities to read", store.ErrInvalid)
	}
	choice := newRandom(seed)
	choice.at(sampleStream, 0, 0)
	ops, wants := make([]mix.Op, n), make(map[entity.Key]*want, n)
	for i, nth := range choice.distinct(n, g.o.Entities) {
		op := g.op(entity.Create, nth%g.o.PerBlock, uint64(g.o.Skip+nth), 0)
		ops[i] = mix.Op{Kind: "get", Block: store.Head, Get: true, Key: op.Key}
		wants[op.Key] = newWant(&op, g.o.Start+uint64(nth/g.o.PerBlock))
	}
	check := func(op mix.Op, a mix.Answer) error { return wants[op.Key].check(a.Entity) }
	return mix.Fixed{Of: "get", Ops: ops, Right: check}, nil
}
