package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store/entity"
)

// FirstOptions are options of Q1 alone, and flags of varve compare. A zero has
// a default.
type FirstOptions struct {
	Entities int `min:"100" max:"100000000" json:"entities,omitempty" help:"Generated entities that the store holds before commits are measured." default:"5000"`
	Commits  int `min:"1" max:"100000000" json:"commits,omitempty" help:"Commits to measure, of 100 generated entities each." default:"100"`
}

// ownReads are the reads of a first look.
const ownReads = 1_000

// DigestKey is the configuration line with the head and the digest of a store at the end,
// which are the same for all that were given the same.
const DigestKey = "head-digest"

// firstLook measures generated blocks, or the source's.
func firstLook(l *Lab) (list []Variant, _ error) {
	o := *cmp.Or(l.First, &FirstOptions{})
	o.Entities, o.Commits = cmp.Or(o.Entities, 5000), cmp.Or(o.Commits, 100)
	profile := bench.Typical
	gen := bench.GenOptions{Entities: o.Entities, PerBlock: perBlock, Seed: l.Seed}
	source := func() (*bench.Source, error) {
		if l.Source != "" {
			return l.history(l.Scale, 0)
		}
		return &bench.Source{
			Blocks:   func() iter.Seq2[entity.Block, error] { return bench.Blocks(profile, gen) },
			Rest:     func() iter.Seq2[entity.Block, error] { return bench.Blocks(profile, gen.Next(o.Commits*perBlock)) },
			Changing: o.Commits,
		}, nil
	}
	for _, layout := range l.LayoutsOr(answers...) {
		c := l.KeysOf("layout", layout, "durability", string(l.Durability), "mix", mix.W).
			With("profile", profile.Name).With("entities", itoa(o.Entities)).With("commits", itoa(o.Commits))
		rows := float64((o.Entities + o.Commits*perBlock) * profile.Rows())
		if l.Source != "" {
			c, rows = l.OnBase(layout, l.Scale, "commits", itoa(o.Commits), "mix", mix.W), 0
		}
		list = append(list, l.look(layout, rows, c, o.Commits, source))
	}
	return list, nil
}

// look loads a source into a new store, reads it by the everyday mix, and goes
// on with its own blocks.
func (l *Lab) look(layout string, rows float64, c Keys, commits int, of func() (*bench.Source, error)) Variant {
	return Variant{Name: "FirstLook", Keys: c, Cost: Cost{Rows: rows}, Run: func(ctx context.Context, r *Record) error {
		source, err := of()
		if err == nil && l.Source != "" {
			err = l.roomToLoad(3 * l.Scale) // and for the answers
		}
		if err != nil {
			return err
		}
		d := bench.Dataset{Source: source}
		return l.WithNew(ctx, "", layout, l.StoreOptions(), r, func(cp *bench.Copy) error {
			ents := cp.Entities
			ready, err := d.Fill(ctx, ents)
			if err != nil {
				return err
			}
			r.Put(ready.Seconds, "load-s")
			if err := l.flush(ctx, cp); err != nil {
				return err
			}
			if err := l.everyday(ctx, cp, &d, r); err != nil {
				return err
			}
			expect, err := d.Expectation(ready)
			if err != nil {
				return err
			}
			n := int64(min(commits, source.Changing))
			var res bench.Result
			err = l.metered(ctx, cp, r, "commit-", func() (err error) {
				res, err = bench.Commit(ctx, ents, bench.CommitConfig{Blocks: d.Rest(), Expect: expect, Config: pace.Config{N: n}})
				r.operations += res.Total
				return err
			})
			if res.Outcome == nil {
				return err
			}
			err = res.Checked(ctx, err)
			r.part("commit", res.All())
			r.Put(res.RowRate(), "rows/s")
			summary, failed := ents.Summary(ctx)
			if err := errors.Join(err, failed); err != nil {
				return err
			}
			r.Manifest.Set(DigestKey, fmt.Sprintf("%d %s", summary.Head, summary.Digest))
			return r.sizes(ctx, cp.DB, int(summary.Live), "B/ent")
		})
	}}
}

// everyday reads a store's part of a data set by mix W: entities by their keys,
// and queries.
func (l *Lab) everyday(ctx context.Context, cp *bench.Copy, d *bench.Dataset, r *Record) error {
	m, err := l.mixOf(mix.W, d)
	if err != nil {
		return err
	}
	var out *pace.Outcome
	err = l.metered(ctx, cp, r, "read-", func() (err error) {
		out, err = bench.ReadMix(ctx, cp.Entities, bench.ReadMixConfig{Mix: m, Config: pace.Config{N: ownReads, Seed: l.fresh()}})
		r.operations += out.Total
		return err
	})
	if out == nil {
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
	return err
}
