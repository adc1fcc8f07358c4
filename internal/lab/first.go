package lab

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/arkiv"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/feed"
	"github.com/varvedb/varve/store/query"
	"github.com/varvedb/varve/testdata"
)

// FirstOptions are those of Q1 alone, and flags of varve compare. What is zero has a default.
type FirstOptions struct {
	Profile  string `json:"profile,omitempty" help:"Shape of the generated entities: minimal, typical, large, or with a payload such as typical-256B." default:"typical"`
	Entities int    `min:"100" max:"100000000" json:"entities,omitempty" help:"Generated entities that the store holds before commits are measured." default:"5000"`
	Commits  int    `min:"1" max:"100000000" json:"commits,omitempty" help:"Commits to measure, of 100 generated entities each." default:"100"`
}

func firstLook(l *Lab) (list []Variant, err error) {
	o := *cmp.Or(l.First, &FirstOptions{})
	o.Profile, o.Entities, o.Commits = cmp.Or(o.Profile, "typical"), cmp.Or(o.Entities, 5000), cmp.Or(o.Commits, 100)
	profile, err := bench.ParseProfile(o.Profile)
	for _, layout := range l.layouts(answers...) {
		if l.Source != "" {
			list = append(list, l.ownBlocks(layout, o.Commits))
			continue
		}
		c := l.keys("layout", layout, "durability", string(l.Durability))
		made := c.With("profile", o.Profile).With("entities", itoa(o.Entities)).With("commits", itoa(o.Commits))
		list = append(list,
			l.onNewStore(layout, "RealBlocks", c, realBlocks),
			l.onNewStore(layout, "GeneratedBlocks", made, func(ctx context.Context, ents *store.Entities, r *Record) error {
				return l.generatedBlocks(ctx, ents, profile, o, r)
			}))
	}
	return list, err
}

// onNewStore measures f on a new store, and what that holds then.
func (l *Lab) onNewStore(layout, name string, c Keys, f func(context.Context, *store.Entities, *Record) error) Variant {
	return Variant{name, c, func(ctx context.Context, r *Record) error {
		return l.withStore(ctx, "", layout, l.storeOptions(), r, func(db *store.DB, ents *store.Entities) error {
			if err := f(ctx, ents, r); err != nil {
				return err
			}
			summary, err := ents.Summary(ctx)
			if err != nil {
				return err
			}
			r.Manifest.Set(DigestKey, fmt.Sprintf("%d %s", summary.Head, summary.Digest))
			return r.sizes(ctx, db, int(summary.Live), "B/ent")
		})
	}}
}

// DigestKey is the configuration line with the head and the digest of a store at the end,
// which are the same for all that were given the same.
const DigestKey = "head-digest"

// commits adds those of a write workload.
func (r *Record) commits(res bench.Result) {
	r.part("commit", res.All())
	if busy := res.Busy().Seconds(); busy > 0 {
		r.put(float64(res.Rows)/busy, "rows/s")
	}
}

// realBlocks applies the embedded Arkiv blocks and asks the recorded queries, and for
// every visible entity by its key.
func realBlocks(ctx context.Context, ents *store.Entities, r *Record) error {
	res, err := arkiv.Apply(ctx, ents, arkiv.Blocks())
	if err != nil {
		return err
	}
	r.commits(res)
	list, err := feed.ParseRecordedQueries(testdata.ArkivQueries)
	if err != nil {
		return err
	}
	if !ents.Temporal() {
		list = slices.DeleteFunc(list, func(q feed.RecordedQuery) bool { return q.AtBlock != testdata.ArkivHead })
	}
	asked, err := pace.Loop(ctx, pace.Config{N: int64(len(list))}, func(ctx context.Context, s *pace.Step) error {
		q := list[s.N]
		if err := askRecorded(ctx, ents, q, s); err != nil {
			return fmt.Errorf("%s at block %d: %w", q.Query, q.AtBlock, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.part("query", asked.All())
	return getAll(ctx, ents, r)
}

// askRecorded reads the answer of a query at its block to the end, and compares the
// keys.
func askRecorded(ctx context.Context, ents *store.Entities, q feed.RecordedQuery, s *pace.Step) error {
	expr, err := query.Parse(q.Query)
	if err != nil {
		return err
	}
	snap, err := ents.At(ctx, q.AtBlock)
	if err != nil {
		return err
	}
	defer snap.Close()
	var keys []store.Key
	s.Begin()
	for e, err := range snap.Query(ctx, expr, nil) {
		if err != nil {
			return err
		}
		keys = append(keys, e.Key)
	}
	s.Stop()
	slices.SortFunc(keys, func(a, b store.Key) int { return bytes.Compare(a[:], b[:]) })
	if !slices.Equal(keys, q.Keys) {
		return fmt.Errorf("%w: %d entities match, want %d", bench.ErrMismatch, len(keys), len(q.Keys))
	}
	return nil
}

// getAll reads every visible entity by its key and compares it with what a query for
// all has found.
func getAll(ctx context.Context, ents *store.Entities, r *Record) error {
	snap, err := ents.At(ctx, store.Head)
	if err != nil {
		return err
	}
	defer snap.Close()
	var all []*store.Entity
	for e, err := range snap.Query(ctx, nil, nil) {
		if err != nil {
			return err
		}
		all = append(all, e)
	}
	got, err := pace.Loop(ctx, pace.Config{N: int64(len(all))}, func(ctx context.Context, s *pace.Step) error {
		e, err := snap.Get(ctx, all[s.N].Key)
		s.Stop()
		if err == nil && !reflect.DeepEqual(e, all[s.N]) {
			err = fmt.Errorf("%w: entity %s by its key is not what a query finds", bench.ErrMismatch, all[s.N].Key)
		}
		return err
	})
	r.part("get", got.All())
	return err
}

// generatedBlocks loads generated entities, measures reads of them, and then commits
// of further ones.
func (l *Lab) generatedBlocks(ctx context.Context, ents *store.Entities, profile bench.Profile, o FirstOptions, r *Record) error {
	gen := bench.GenOptions{Entities: o.Entities, Seed: l.Seed}
	data := bench.Dataset{Profile: profile, Gen: gen}
	ready, err := data.Fill(ctx, ents)
	if err != nil {
		return err
	}
	r.put(ready.Seconds, "load-s")
	got, err := bench.Get(ctx, ents, bench.GetConfig{Profile: profile, Of: gen, Config: pace.Config{Seed: l.fresh(), N: 2000}})
	if err != nil {
		return err
	}
	r.part("get", got.All())
	if err := fixedQueries(ctx, ents, profile, gen, r); err != nil {
		return err
	}
	expect, err := data.Expectation(ready)
	if err != nil {
		return err
	}
	res, err := bench.Commit(ctx, ents, bench.CommitConfig{
		Blocks: bench.Blocks(profile, gen.Next(o.Commits*100)), Expect: expect, Config: pace.Config{N: int64(o.Commits)},
	})
	r.commits(res)
	return err
}

// fixedQueries asks the fixed set several times over.
func fixedQueries(ctx context.Context, ents *store.Entities, profile bench.Profile, gen bench.GenOptions, r *Record) error {
	list := bench.Queries()
	answers, err := bench.Answers(profile, gen, list)
	if err != nil {
		return err
	}
	asked := latency.NewRecorder()
	for i := range list {
		res, err := bench.Query(ctx, ents, bench.QueryConfig{Query: list[i], Answer: answers[i], Config: pace.Config{N: 5}})
		if err != nil {
			return err
		}
		asked.Merge(res.All())
	}
	r.part("query", asked)
	return nil
}

// ownReads are those of a first look at a source.
const ownReads = 2_000

// ownBlocks is the first look at a source: it is loaded, read by the everyday mix, and goes on
// with blocks of its own.
func (l *Lab) ownBlocks(layout string, commits int) Variant {
	return l.onNewStore(layout, "RealBlocks", l.onBase(layout, "commits", itoa(commits)), func(ctx context.Context, ents *store.Entities, r *Record) error {
		d, err := l.base(layout, l.Scale, 0)
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
