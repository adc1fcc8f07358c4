package lab

import (
	"context"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store"
)

// ownReads are those of a first look at a source.
const ownReads = 2_000

// ownBlocks is the first look at a source: it is loaded, read by the everyday mix, and goes on
// with blocks of its own.
func (l *Lab) ownBlocks(layout string, commits int) Variant {
	return l.onNewStore(layout, "RealBlocks", l.onBase(layout, "commits", itoa(commits)), func(ctx context.Context, ents *store.Entities, r *Record) error {
		d, err := l.mendoza(layout, l.Scale, 0)
		if err != nil {
			return err
		}
		if err := l.roomToLoad(3 * l.Scale); err != nil { // and for the answers
			return err
		}
		ready, err := d.Fill(ctx, ents)
		if err != nil {
			return err
		}
		r.put(ready.Seconds, "load-s")
		if err := everyday(ctx, ents, d.Source, l.fresh(), r); err != nil {
			return err
		}
		expect, err := d.Expectation(ready)
		if err != nil {
			return err
		}
		res, err := bench.Commit(ctx, ents, bench.CommitConfig{
			Blocks: d.Rest(), Expect: expect, Config: pace.Config{N: int64(min(commits, d.Source.Changing))},
		})
		r.commits(res)
		return err
	})
}

// everyday reads by mix W what a store holds of a source: entities by their keys, and queries.
func everyday(ctx context.Context, ents *store.Entities, source *bench.Source, seed uint64, r *Record) error {
	oracle := mix.NewOracle()
	if err := oracle.Follow(source.Blocks()); err != nil {
		return err
	}
	m, err := mix.New(mix.W, oracle)
	if err != nil {
		return err
	}
	out, err := bench.ReadMix(ctx, ents, bench.ReadMixConfig{Mix: m, Config: pace.Config{N: ownReads, Seed: seed}})
	if err != nil {
		return err
	}
	got, asked := latency.NewRecorder(), latency.NewRecorder()
	for _, k := range out.Kinds {
		if k.Name == "entity" || k.Name == "payload" {
			got.Merge(k.Latency)
		} else {
			asked.Merge(k.Latency)
		}
	}
	r.part("get", got)
	r.part("query", asked)
	return nil
}
