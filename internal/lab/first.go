package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
)

// FirstOptions are the options of experiment Q1, and flags of varve compare.
// Zero values have defaults.
type FirstOptions struct {
	Entities int `min:"100" max:"100000000" json:"entities,omitempty" help:"Generated entities that the store holds before commits are measured." default:"5000"`
	Commits  int `min:"1" max:"100000000" json:"commits,omitempty" help:"Commits to measure, of 100 generated entities each." default:"50"`
}

// A first look does ownReads reads, or as many as readTime allows.
const (
	ownReads = 1_000
	readTime = 1500 * time.Millisecond
)

// DigestKey is the configuration line with the store's final head and digest.
// They are equal for all stores with the same input.
const DigestKey = "head-digest"

// firstLook measures generated blocks, or the source's.
func firstLook(l *Lab) (list []Variant, _ error) {
	o := *cmp.Or(l.First, &FirstOptions{})
	o.Entities, o.Commits = cmp.Or(o.Entities, 5000), cmp.Or(o.Commits, 50)
	profile := bench.Typical
	gen := bench.GenOptions{Entities: o.Entities, PerBlock: perBlock, Seed: l.Seed}
	source := func() (*bench.Source, error) {
		if l.Source != "" {
			return l.history(l.Scale, 0)
		}
		return &bench.Source{
			Blocks:   func() bench.Stream { return bench.Blocks(profile, gen) },
			Rest:     func() bench.Stream { return bench.Blocks(profile, gen.Next(o.Commits*perBlock)) },
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
		list = append(list, Variant{Name: "FirstLook", Keys: c, Cost: Cost{Rows: rows}, Run: func(t *Trial, ctx context.Context) error {
			source, err := source()
			if err != nil {
				return err
			}
			t.Data = &bench.Dataset{Source: source}
			return t.runFirstLook(ctx, o.Commits)
		}})
	}
	return list, nil
}

// runFirstLook loads a source into a new store, reads it with mix W, and
// continues with the source's blocks.
func (t *Trial) runFirstLook(ctx context.Context, commits int) error {
	if t.Source != "" {
		if err := t.roomToLoad(3 * t.Scale); err != nil { // and for the answers
			return err
		}
	}
	return t.WithLayout(ctx, func() error {
		ready, err := t.Data.Fill(ctx, t.Entities)
		if err != nil {
			return err
		}
		t.Put(ready.Seconds, "load-s")
		if err := t.flush(ctx); err != nil {
			return err
		}
		if err := t.everyday(ctx); err != nil {
			return err
		}
		expect, err := t.Data.Expectation(ready)
		if err != nil {
			return err
		}
		n := int64(min(commits, t.Data.Source.Changing))
		var res bench.Result
		err = t.metered(ctx, "commit-", func() (err error) {
			res, err = bench.Commit(ctx, t.Entities, bench.CommitConfig{Blocks: t.Data.Rest(), Expect: expect, Config: pace.Config{N: n}})
			t.operations += res.Total
			return err
		})
		if res.Outcome == nil {
			return err
		}
		err = res.Checked(ctx, err)
		t.part("commit", res.All())
		t.Put(res.RowRate(), "rows/s")
		summary, failed := t.Entities.Summary(ctx)
		if err := errors.Join(err, failed); err != nil {
			return err
		}
		t.Manifest.Set(DigestKey, fmt.Sprintf("%d %s", summary.Head, summary.Digest))
		return t.size(ctx, int(summary.Live), "B/ent")
	})
}

// everyday reads the store's part of a data set with mix W: entities by key,
// and queries.
func (t *Trial) everyday(ctx context.Context) error {
	m, err := t.mixOf(mix.W)
	if err != nil {
		return err
	}
	var out *pace.Outcome
	err = t.metered(ctx, "read-", func() (err error) {
		out, err = bench.ReadMix(ctx, t.Entities, bench.ReadMixConfig{Mix: m, Config: pace.Config{N: ownReads, Duration: readTime, Seed: t.questionSeed()}})
		t.operations += out.Total
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
	t.part("get", got)
	t.part("query", asked)
	return err
}
