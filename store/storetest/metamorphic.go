package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/query"
	"github.com/varvedb/varve/store/storetest/model"
)

// metamorphicChecks is how many histories RunMetamorphic tries, each in several
// stores, where the harness does not say that the engine is slow.
const metamorphicChecks = 25

// RunMetamorphic puts one random history into stores that differ in all that must
// not matter: layout, page size, memory, checkpoints, how many blocks go into a
// transaction, and when blocks are merged, the log is folded, the store is opened
// anew, or a fork comes and is taken back. All must have the same digest and give
// the same answers. One of them has no index but the primary keys, so that what
// indexes find is compared with scans. How much is tried follows -rapid.checks.
func RunMetamorphic(t *testing.T, h Harness) {
	checks := metamorphicChecks
	if h.Checks > 0 {
		checks = max(h.Checks/3, 2)
	}
	limitChecks(t, checks)
	rapid.Check(t, func(rt *rapid.T) { metamorphic(t, rt, h) })
}

func metamorphic(t *testing.T, rt *rapid.T, h Harness) {
	g := &generator{pick: rapidChooser(rt)}
	linked := linkedDriver(t, h.NewURL(t))
	m := &model.Model{ExtendAdds: g.chance("extend adds", 3), NoNUL: !linked.Capabilities.TextNUL}
	if !m.NoNUL {
		g.nul, g.nulPattern = 12, true
	}
	blocks := validBlocks(g, m, 3+g.pick("blocks", 12))
	scanned := &variant{h: h, driver: linked, layout: "arkiv-0", plain: true}
	variants := []*variant{scanned}
	for range 2 {
		variants = append(variants, &variant{h: h, driver: linked, layout: one(g, "layout", h.layouts())})
	}
	for _, v := range variants {
		v.play(t, rt, g, m.ExtendAdds, blocks)
		defer func() { require.NoError(rt, v.db.Close()) }()
		head := headOf(rt, v.ents)
		require.Equal(rt, m.Head(), head, "%s", v)
	}
	for range 4 {
		at := uint64(store.Head)
		if g.chance("past", 2) {
			at = g.at(m)
		}
		expr, other := g.expr(3, m.Head().Block), g.expr(2, m.Head().Block)
		opts := store.QueryOptions{Order: g.order(), Limit: g.pick("limit", 4)}
		for _, v := range variants {
			v.compare(rt, scanned, at, expr, other, opts)
		}
	}
}

// validBlocks draws blocks, the model following, without those that it refuses.
func validBlocks(g *generator, m *model.Model, n int) (blocks []store.Block) {
	for range n {
		if b := g.block(m); m.Apply(b) == nil {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// variant is one of the stores that hold the same.
type variant struct {
	h      Harness
	driver driver.Driver
	layout string
	plain  bool // block by block, with the defaults

	url    string
	params []string
	db     *store.DB
	ents   *store.Entities
}

func (v *variant) String() string { return fmt.Sprintf("layout %s, parameters %q", v.layout, v.params) }

// play makes the store.
func (v *variant) play(t *testing.T, rt *rapid.T, g *generator, extendAdds bool, blocks []store.Block) {
	v.url = v.h.quickURL(t)
	if _, ok := v.driver.Params["page_size"]; ok && !v.plain {
		v.url = withParams(t, v.url, "page_size", one(g, "page size", []string{"4096", "512", "1024", "65536"}))
	}
	v.open(t, rt, g, extendAdds)
	m := &model.Model{ExtendAdds: extendAdds, NoNUL: !v.driver.Capabilities.TextNUL} // for forks
	for len(blocks) > 0 {
		n := 1
		if !v.plain {
			n = min(1+g.pick("blocks", 4), len(blocks))
			v.between(t, rt, g, m)
		}
		v.take(rt, g, blocks[:n])
		for _, b := range blocks[:n] {
			require.NoError(rt, m.Apply(b))
		}
		blocks = blocks[n:]
	}
	if !v.plain {
		v.between(t, rt, g, m)
	}
}

func (v *variant) open(t *testing.T, rt *rapid.T, g *generator, extendAdds bool) {
	v.params = nil
	if !v.plain {
		v.params = v.drawParams(g)
	}
	var err error
	v.db, err = store.Open(context.Background(), withParams(t, v.url, v.params...), nil)
	require.NoError(rt, err, "%s", v)
	v.ents, err = v.db.Entities(context.Background(), store.EntityOptions{Layout: v.layout, ExtendAdds: extendAdds})
	require.NoError(rt, err, "%s", v)
}

// drawParams draws what may be another one each time the store is opened.
func (v *variant) drawParams(g *generator) (pairs []string) {
	memory := []string{"256MiB", "64MiB"}
	if _, ok := v.driver.Params["page_size"]; ok {
		memory = []string{"256MiB", "64KiB", "1MiB"} // of page caches, which need hold nothing
		pairs = append(pairs, "mmap", one(g, "mmap", []string{"0", "65536", "100000000"}))
	}
	pairs = append(pairs, "memory", one(g, "memory", memory))
	if v.driver.Capabilities.WALCheckpoint {
		policies := []driver.CheckpointPolicy{driver.Background, driver.Inline, driver.Manual}
		pairs = append(pairs, "checkpoint", string(one(g, "checkpoint", policies)), "checkpoint_frames", one(g, "frames", []string{"1000", "1", "20"}))
	}
	if g.chance("backlog", 2) {
		pairs = append(pairs, "backlog", one(g, "backlog", []string{"1", "3", "20"}))
	}
	return pairs
}

// take puts blocks into the store, in one transaction or several.
func (v *variant) take(rt *rapid.T, g *generator, blocks []store.Block) {
	if !v.plain && g.chance("load", 2) {
		opts := store.LoadOptions{Changes: 1 + g.pick("changes", 8)}
		_, err := v.ents.Load(context.Background(), stream(blocks, nil), opts)
		require.NoError(rt, err, "%s: load %+v", v, blocks)
		return
	}
	for _, b := range blocks {
		_, err := v.ents.Apply(context.Background(), b)
		require.NoError(rt, err, "%s: apply %+v", v, b)
	}
}

// between does something that leaves the store's content as it is.
func (v *variant) between(t *testing.T, rt *rapid.T, g *generator, m *model.Model) {
	ctx := context.Background()
	switch g.pick("between", 6) {
	case 2:
		require.NoError(rt, v.db.Close())
		v.open(t, rt, g, m.ExtendAdds)
	case 3:
		require.NoError(rt, v.ents.Settle(ctx))
	case 4:
		if v.driver.Capabilities.WALCheckpoint {
			_, err := v.db.Checkpoint(ctx, g.chance("truncate", 2))
			require.NoError(rt, err)
		}
	case 5:
		head := m.Head()
		if head.Empty || !v.ents.Temporal() {
			return
		}
		fork := m.Clone()
		for _, b := range validBlocks(g, fork, 1+g.pick("fork", 3)) {
			_, err := v.ents.Apply(ctx, b)
			require.NoError(rt, err, "%s: fork %+v", v, b)
		}
		require.NoError(rt, v.ents.Rewind(ctx, head.Block))
	}
}

// compare asks the store and another one the same, and checks that the store's
// own answers fit together.
func (v *variant) compare(rt *rapid.T, other *variant, at uint64, expr, second query.Expr, opts store.QueryOptions) {
	ctx := context.Background()
	mine, err := v.ents.At(ctx, at)
	theirs, otherErr := other.ents.At(ctx, at)
	if theirs != nil {
		defer theirs.Close()
	}
	if !v.ents.Temporal() && sentinelName(err) == sentinelName(store.ErrUnsupported) {
		return
	}
	requireSameError(rt, otherErr, err)
	if err != nil {
		return
	}
	defer mine.Close()
	rt.Logf("%s at block %d: %s", v, mine.Block(), expr)
	want := collected(rt, theirs.Query(ctx, expr, &opts))
	got := collected(rt, mine.Query(ctx, expr, &opts))
	requireEntities(rt, want, got)
	if len(got) > 0 {
		checkRest(rt, mine, expr, opts, got)
	}
	checkPartition(rt, mine, expr, second)
}

// checkRest checks that a page and what comes after its cursor are what there is without
// a limit.
func checkRest(rt *rapid.T, s *store.Snapshot, expr query.Expr, opts store.QueryOptions, page []*store.Entity) {
	ctx := context.Background()
	rest := store.QueryOptions{Order: opts.Order}
	all := collected(rt, s.Query(ctx, expr, &rest))
	var err error
	rest.After, err = s.Cursor(page[len(page)-1], &opts)
	require.NoError(rt, err)
	others := collected(rt, s.Query(ctx, expr, &rest))
	requireEntities(rt, all, slices.Concat(page, others))
}

// checkPartition checks relations between queries that hold whatever the store
// has: a condition and its negation share no entity and leave none out, two
// conditions count together what either and both of them count, and what is found
// is what of all entities matches.
func checkPartition(rt *rapid.T, s *store.Snapshot, p, q query.Expr) {
	ctx := context.Background()
	rows := func(e query.Expr) []*store.Entity {
		list, err := collect(s.Query(ctx, e, nil))
		require.NoError(rt, err, "%s", e)
		n, err := s.Count(ctx, e)
		require.NoError(rt, err, "%s", e)
		require.EqualValues(rt, len(list), n, "count of %s", e)
		return list
	}
	all := rows(query.All{})
	yes := rows(p)
	requireEntities(rt, all, inOrder(yes, rows(query.Not{Term: p})))
	requireEntities(rt, slices.DeleteFunc(slices.Clone(all), func(e *store.Entity) bool { return !query.Match(p, e) }), yes)
	either, both := rows(query.Or{Terms: []query.Expr{p, q}}), rows(query.And{Terms: []query.Expr{p, q}})
	requireEntities(rt, inOrder(yes, rows(q)), inOrder(either, both))
	if opposite, has := opposites(p); has != nil {
		requireEntities(rt, rows(has), inOrder(yes, rows(opposite)))
	}
}

// inOrder returns both lists as one, in the order of results.
func inOrder(a, b []*store.Entity) []*store.Entity {
	list := slices.Concat(a, b)
	slices.SortStableFunc(list, func(a, b *store.Entity) int { return model.Compare(nil, a, b) })
	return list
}

// opposites returns, of a comparison, the one that is true of the other values, and
// one that is true of every value. An entity without the attribute satisfies none
// of the three. It returns nil for other conditions.
func opposites(p query.Expr) (opposite, has query.Expr) {
	switch p := p.(type) {
	case query.Compare:
		has = having(p.Name, p.Value)
		p.Op = map[query.CompareOp]query.CompareOp{
			query.Equal: query.NotEqual, query.NotEqual: query.Equal,
			query.Less: query.GreaterOrEqual, query.GreaterOrEqual: query.Less,
			query.Greater: query.LessOrEqual, query.LessOrEqual: query.Greater,
		}[p.Op]
		return p, has
	case query.In:
		has = having(p.Name, p.Values[0])
		p.Negated = !p.Negated
		return p, has
	case query.Glob:
		has = having(p.Name, query.Text(""))
		p.Negated = !p.Negated
		return p, has
	}
	return nil, nil
}

// having returns a comparison of a type that every value satisfies.
func having(name string, v query.Value) query.Expr {
	if v.Kind == query.Number(0).Kind {
		return query.Compare{Name: name, Op: query.GreaterOrEqual, Value: query.Number(0)}
	}
	return query.Compare{Name: name, Op: query.GreaterOrEqual, Value: query.Text("")}
}
