package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// NamedQuery is a query of the fixed set.
type NamedQuery struct {
	Name  string // as in the names of benchmarks
	Text  string
	Limit int // newest first; 0: no limit
}

// Queries are the fixed set, over the attributes that Blocks generates. Of n typical entities about n/100 have
// a given string attribute, n/170 a given numeric one, and n/50 a given owner.
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

// Answers finds the answers to queries, keys in their order, on a store that holds the entities of a stream,
// none changed, at its last block. It generates every entity, without payload, and tries the queries on each.
func Answers(p Profile, o GenOptions, queries []NamedQuery) ([][]entity.Key, error) {
	exprs := make([]query.Expr, len(queries))
	for i, q := range queries {
		var err error
		if exprs[i], err = query.Parse(q.Text); err != nil {
			return nil, fmt.Errorf("query %s: %w", q.Name, err)
		}
	}
	found := make([][]entity.Key, len(queries))
	for b, err := range Blocks(p.WithPayload(0), o) {
		if err != nil {
			return nil, err
		}
		for i := range b.Ops {
			e := made(&b.Ops[i], b.Number)
			for n, expr := range exprs {
				if query.Match(expr, e) {
					found[n] = append(found[n], e.Key)
				}
			}
		}
	}
	for i, keys := range found {
		slices.Reverse(keys) // newest first
		if limit := queries[i].Limit; limit > 0 {
			found[i] = keys[:min(limit, len(keys))]
		}
	}
	return found, nil
}

// QueryConfig is a closed loop of one query on one open snapshot at the head.
type QueryConfig struct {
	pace.Config
	Query  NamedQuery
	Answer []entity.Key // as Answers gives it
}

// Query runs a query to its end again and again and records the latency of each run. It compares the keys and
// their order with the answer and fails with ErrMismatch.
func Query(ctx context.Context, ents *store.Entities, cfg QueryConfig) (res Result, err error) {
	expr, err := query.Parse(cfg.Query.Text)
	if err == nil {
		keys := make([]entity.Key, 0, len(cfg.Answer))
		res.Outcome, err = atHead(ctx, ents, cfg.Config, func(ctx context.Context, snap *store.Snapshot, s *pace.Step) error {
			keys = keys[:0]
			for e, err := range snap.Query(ctx, expr, &store.QueryOptions{Limit: cfg.Query.Limit}) {
				if err != nil {
					return err
				}
				keys = append(keys, e.Key)
			}
			s.Stop()
			if !slices.Equal(keys, cfg.Answer) {
				return mismatch("%d entities, want %d, or these in another order", len(keys), len(cfg.Answer))
			}
			return nil
		})
		res.Entities = uint64(res.Count) * uint64(len(cfg.Answer))
	}
	if err != nil {
		err = fmt.Errorf("query %s: %w", cfg.Query.Name, err)
	}
	return res, err
}

// EachQuery gives f the runs of a query, one at a time, on one open snapshot at
// the head. Its answer was right before.
func EachQuery(ctx context.Context, ents *store.Entities, cfg QueryConfig, f func(*Operations) error) error {
	cfg.N = 1
	if _, err := Query(ctx, ents, cfg); err != nil {
		return err
	}
	expr, err := query.Parse(cfg.Query.Text)
	if err != nil {
		return err
	}
	return withHead(ctx, ents, func(snap *store.Snapshot) error {
		return f(&Operations{Do: func(ctx context.Context, _ int) error {
			n := 0
			for _, err := range snap.Query(ctx, expr, &store.QueryOptions{Limit: cfg.Query.Limit}) {
				if err != nil {
					return err
				}
				n++
			}
			if n != len(cfg.Answer) {
				return mismatch("%d entities, want %d", n, len(cfg.Answer))
			}
			return nil
		}})
	})
}

// GetConfig is a closed loop of reads by key on one open snapshot at the head.
type GetConfig struct {
	pace.Config // whose seed chooses the entities
	Profile     Profile
	Of          GenOptions // the stream that created the entities, none changed since
}

// sample is how many different entities are read, in random order again and again.
const sample = 4096

// Get reads existing entities whole and records the latency of each Get,
// without the comparison that follows. It fails with ErrMismatch when an entity
// differs.
func Get(ctx context.Context, ents *store.Entities, cfg GetConfig) (res Result, err error) {
	wants, err := cfg.wants()
	if err == nil {
		res.Outcome, err = atHead(ctx, ents, cfg.Config, func(ctx context.Context, snap *store.Snapshot, s *pace.Step) error {
			w := wants[s.Rand.IntN(len(wants))]
			e, err := snap.Get(ctx, w.Key)
			s.Check(func() error { return w.check(e, err) })
			return nil
		})
		res.Entities = uint64(res.Count)
		res.Rows = res.Entities * uint64(cfg.Profile.Rows())
	}
	if err != nil {
		err = fmt.Errorf("get: %w", err)
	}
	return res, err
}

// EachGet gives f reads of existing entities, one at a time, on one open snapshot
// at the head. All of these entities were right before.
func EachGet(ctx context.Context, ents *store.Entities, cfg GetConfig, f func(*Operations) error) error {
	wants, err := cfg.wants()
	if err != nil {
		return err
	}
	return withHead(ctx, ents, func(snap *store.Snapshot) error {
		for _, w := range wants {
			if err := w.check(snap.Get(ctx, w.Key)); err != nil {
				return fmt.Errorf("get: %w", err)
			}
		}
		next := 0
		return f(&Operations{Do: func(ctx context.Context, _ int) error {
			w := wants[next%len(wants)]
			next++
			e, err := snap.Get(ctx, w.Key)
			if err == nil && e.Key != w.Key {
				err = mismatch("entity %s, want %s", e.Key, w.Key)
			}
			return err
		}})
	})
}

// withHead runs f on one open snapshot at the head.
func withHead(ctx context.Context, ents *store.Entities, f func(*store.Snapshot) error) error {
	snap, err := ents.At(ctx, store.Head)
	if err != nil {
		return err
	}
	return errors.Join(f(snap), snap.Close())
}

// atHead reads on one open snapshot at the head.
func atHead(ctx context.Context, ents *store.Entities, cfg pace.Config, read func(ctx context.Context, snap *store.Snapshot, s *pace.Step) error) (out *pace.Outcome, err error) {
	err = withHead(ctx, ents, func(snap *store.Snapshot) (err error) {
		out, err = pace.Loop(ctx, cfg, func(ctx context.Context, s *pace.Step) error { return read(ctx, snap, s) })
		return err
	})
	if out == nil {
		out = new(pace.Outcome)
	}
	return out, err
}

// wants returns the expected versions of the sampled entities.
func (cfg *GetConfig) wants() ([]*want, error) {
	g := newGenerator(cfg.Profile, cfg.Of)
	n := min(sample, g.o.Entities)
	if n == 0 {
		return nil, fmt.Errorf("%w: no entities to read", store.ErrInvalid)
	}
	choice := newRandom(cfg.Seed)
	choice.at(sampleStream, 0, 0)
	wants := make([]*want, n)
	for i, nth := range choice.distinct(n, g.o.Entities) {
		op := g.op(entity.Create, nth%g.o.PerBlock, uint64(g.o.Skip+nth), 0)
		wants[i] = newWant(&op, g.o.Start+uint64(nth/g.o.PerBlock))
	}
	return wants, nil
}
