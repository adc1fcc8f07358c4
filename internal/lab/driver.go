package experiment

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/stat"
	"github.com/varvedb/varve/store"
)

// A8 and A14 ask what drives the time of a commit. The seed contradicts itself:
// its Experiments 5 to 7 say payload, 8 to 10 say attributes. A correlation on
// production blocks, in which entities, strings and numbers come and go together and
// payload hardly varies, cannot settle it; blocks that vary them independently can.

// designLevels are those of A14: attributes and payload of each entity, and entities, on
// both sides of what the seed has.
var designLevels = [][]float64{{2, 8, 24}, {256, 5 << 10, 50 << 10}, {10, 40, 120}}

// Designed experiments repeat each combination, in random order, after filling
// the store.
const (
	designRepeats = 4
	minDesignBase = 5_000
)

func designed(l *Lab) (list []variant, _ error) {
	base := l.scaled(10*minDesignBase, minDesignBase)
	for _, layout := range l.layouts() {
		c := l.config("layout", layout, "durability", string(l.Durability), "entities", itoa(base))
		list = append(list, variant{"Designed", c, func(ctx context.Context, r *result.Record) error {
			return l.withStore(ctx, "", layout, l.storeOptions(), r, func(db *database, ents *store.Entities) error {
				db.probed(r)
				return l.design(ctx, ents, base, r)
			})
		}})
	}
	return list, nil
}

func (l *Lab) design(ctx context.Context, ents *store.Entities, base int, r *result.Record) error {
	expect := bench.NewExpectation(false)
	gen := bench.GenOptions{Entities: base, PerBlock: perBlock, Seed: l.Seed}
	if _, err := bench.Commit(ctx, ents, bench.CommitConfig{
		Blocks: bench.Blocks(bench.Typical, gen), Expect: expect, Loop: bench.Times(base / perBlock),
	}); err != nil {
		return err
	}
	points := stat.Factorial(l.Seed, designRepeats, designLevels...)
	blocks := designBlocks(gen, points, func(p []float64) (strings, numbers, payload, entities float64) {
		return math.Ceil(p[0] / 2), math.Floor(p[0] / 2), p[1], p[2]
	})
	r.Table = &result.Table{Columns: []string{"attributes", "payload_bytes", "entities", "ms"}}
	return observed(ctx, ents, bench.CommitConfig{Blocks: blocks, Expect: expect, Loop: bench.Times(len(points))}, r,
		func(_ *store.Block, took time.Duration) []float64 {
			return append(slices.Clone(points[len(r.Table.Rows)]), milliseconds(took))
		})
}

// observed makes commits with a row of the record's table for each.
func observed(ctx context.Context, ents *store.Entities, cfg bench.CommitConfig, r *result.Record, row func(*store.Block, time.Duration) []float64) error {
	cfg.Observe = func(b *store.Block, took time.Duration) { r.Table.Rows = append(r.Table.Rows, row(b, took)) }
	res, err := bench.Commit(ctx, ents, cfg)
	add(r, "commit", res)
	return err
}

// designBlocks yields a block for each point, after others: so many entities, each
// with so many strings, numbers and bytes of payload.
func designBlocks(after bench.GenOptions, points [][]float64, each func(p []float64) (strings, numbers, payload, entities float64)) iter.Seq2[store.Block, error] {
	return func(yield func(store.Block, error) bool) {
		for _, p := range points {
			strings, numbers, payload, entities := each(p)
			profile := bench.Profile{Name: "design-" + strconv.Itoa(int(strings+numbers)), Strings: int(strings), Numbers: int(numbers), Payload: int(payload)}
			after = after.Next(int(entities))
			after.PerBlock = int(entities)
			for b, err := range bench.Blocks(profile, after) {
				if !yield(b, err) || err != nil {
					return
				}
			}
		}
	}
}

// independentLevels are those of A8's own blocks: entities, and strings, numbers and
// bytes of payload of the whole block. They are the smallest of which all others are
// multiples, so that every entity of a block has the same, and each factor is balanced
// over all levels of the others.
var independentLevels = [][]float64{{5, 10, 40}, {40, 160, 640}, {40, 160, 640}, {40 << 10, 160 << 10, 640 << 10}}

// independent yields blocks after a head, with the factors varied independently.
func independent(head, seed uint64, repeats int) iter.Seq2[store.Block, error] {
	points := stat.Factorial(seed, repeats, independentLevels...)
	after := bench.GenOptions{Seed: seed, Start: head + 1}
	return designBlocks(after, points, func(p []float64) (strings, numbers, payload, entities float64) {
		return p[1] / p[0], p[2] / p[0], p[3] / p[0], p[0]
	})
}

// minSampled is how many blocks are sampled at least, and sampledRepeats how often
// A8's own blocks repeat each combination at scale 1.
const (
	minSampled     = 2_000
	sampledRepeats = 80
)

// sampling is blocks whose commits are timed.
type sampling struct {
	profile string
	n       int
	blocks  func(d *mendoza, head uint64) iter.Seq2[store.Block, error]
	relate  func(*result.Record) error // the times to what is in the blocks
}

func sampledBlocks(l *Lab) (list []variant, _ error) {
	repeats := l.scaled(sampledRepeats, 1)
	of := []sampling{
		{l.profile(), l.scaled(50_000, minSampled), func(d *mendoza, _ uint64) iter.Seq2[store.Block, error] { return d.Rest() }, correlate},
		{"independent", len(stat.Factorial(l.Seed, repeats, independentLevels...)), func(_ *mendoza, head uint64) iter.Seq2[store.Block, error] {
			return independent(head, l.Seed, repeats)
		}, explain},
	}
	for _, layout := range l.layouts() {
		for _, s := range of {
			c := l.on(layout, s.profile, "blocks", itoa(s.n))
			list = append(list, variant{"SampledBlocks", c, func(ctx context.Context, r *result.Record) error { return l.sample(ctx, layout, s, r) }})
		}
	}
	return list, nil
}

// sampledColumns are those of the observations of sampled blocks.
var sampledColumns = []string{"block", "entities", "strings", "numbers", "payload_bytes", "ms"}

// sample applies blocks to a store of the base profile, whose own are as they are but
// for empty ones, and relates the time of each commit to what is in it.
func (l *Lab) sample(ctx context.Context, layout string, s sampling, r *result.Record) error {
	d, err := l.mendoza(layout, l.Scale, 0)
	if err != nil {
		return err
	}
	return l.withDataset(ctx, d.Dataset, l.storeOptions(), r, func(cp *bench.Copy) error {
		var expect *bench.Expectation
		if err := l.aside(func() (err error) { expect, err = d.Expectation(cp.Ready); return err }); err != nil {
			return err
		}
		cfg := bench.CommitConfig{Blocks: s.blocks(d, cp.Ready.Head), Expect: expect, Loop: bench.Times(s.n)}
		r.Table = &result.Table{Columns: sampledColumns}
		if err := observed(ctx, cp.Entities, cfg, r, observe); err != nil {
			return err
		}
		return s.relate(r)
	})
}

// observe counts what a block writes: creations and updates have attributes and
// payload, other operations none.
func observe(b *store.Block, took time.Duration) []float64 {
	var strings, numbers, payload int
	for i := range b.Ops {
		strings += len(b.Ops[i].StringAttributes)
		numbers += len(b.Ops[i].NumericAttributes)
		payload += len(b.Ops[i].Content)
	}
	return []float64{float64(b.Number), float64(len(b.Ops)), float64(strings), float64(numbers), float64(payload), milliseconds(took.Round(time.Microsecond))}
}

// correlate adds the correlations that the seed reports, and how far they are those of
// other factors as well.
func correlate(r *result.Record) error {
	ms := r.Table.Column("ms")
	attributes := make([]float64, len(ms))
	perEntity := make([]float64, len(ms)) // the seed's payload_kb does not grow with the number of entities
	strings, numbers := r.Table.Column("strings"), r.Table.Column("numbers")
	payload, entities := r.Table.Column("payload_bytes"), r.Table.Column("entities")
	for i := range ms {
		attributes[i] = strings[i] + numbers[i]
		perEntity[i] = payload[i] / max(entities[i], 1)
	}
	for _, v := range []stat.Predictor{
		{Name: "entities", Values: entities}, {Name: "attributes", Values: attributes}, {Name: "strings", Values: strings},
		{Name: "numbers", Values: numbers}, {Name: "payload", Values: payload}, {Name: "payload-each", Values: perEntity},
	} {
		c, err := stat.Pearson(v.Values, ms)
		if err != nil {
			return err
		}
		put(r, c.R, "r-"+v.Name)
		r.Notes = append(r.Notes, fmt.Sprintf("correlation of %s with the time: %.3f, 95 %% interval %.3f to %.3f", v.Name, c.R, c.Low, c.High))
	}
	return explain(r)
}

// inflated is the variance inflation above which the effect of a factor is that of
// others as well.
const inflated = 2

// explain adds what each factor of the blocks does to the time while the others stay,
// as its partial correlation and its coefficient in standard deviations. By how much
// the variance of these is inflated, because the factors vary together, is added too,
// and alone where it is too much.
func explain(r *result.Record) error {
	var factors []stat.Predictor
	for _, column := range []string{"entities", "strings", "numbers", "payload_bytes"} {
		factors = append(factors, stat.Predictor{Name: column, Values: r.Table.Column(column)})
	}
	effects, err := stat.Effects(r.Table.Column("ms"), factors)
	if errors.Is(err, stat.ErrDependent) {
		r.Notes = append(r.Notes, "the factors of these blocks depend on each other: their effects cannot be told apart")
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range effects {
		put(r, e.Inflation, "vif-"+e.Name)
		if e.Inflation >= inflated {
			r.Notes = append(r.Notes, fmt.Sprintf("%s cannot be told apart from the others, with which it varies: variance inflation %.3g", e.Name, e.Inflation))
			continue
		}
		put(r, e.Partial, "partial-"+e.Name)
		put(r, e.Beta, "beta-"+e.Name)
		r.Notes = append(r.Notes, fmt.Sprintf("%s, the others held: partial correlation %.3f, coefficient in standard deviations %.3f; variance inflation %.3g",
			e.Name, e.Partial, e.Beta, e.Inflation))
	}
	return nil
}
