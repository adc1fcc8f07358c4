package lab

import (
	"context"
	"iter"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"gonum.org/v1/gonum/stat/combin"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
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

func designed(l *Lab) (list []Variant, _ error) {
	base := l.scaled(10*minDesignBase, minDesignBase)
	for _, layout := range l.layouts() {
		c := l.keys("layout", layout, "durability", string(l.Durability), "entities", itoa(base))
		list = append(list, Variant{"Designed", c, func(ctx context.Context, r *Record) error {
			return l.withStore(ctx, "", layout, l.storeOptions(), r, func(_ *store.DB, ents *store.Entities) error {
				return l.design(ctx, ents, base, r)
			})
		}})
	}
	return list, nil
}

func (l *Lab) design(ctx context.Context, ents *store.Entities, base int, r *Record) error {
	expect := bench.NewExpectation(false)
	gen := bench.GenOptions{Entities: base, PerBlock: perBlock, Seed: l.Seed}
	if _, err := bench.Commit(ctx, ents, bench.CommitConfig{
		Blocks: bench.Blocks(bench.Typical, gen), Expect: expect, Config: pace.Config{N: int64(base / perBlock)},
	}); err != nil {
		return err
	}
	points := factorial(l.fresh(), designRepeats, designLevels...)
	blocks := designBlocks(gen, points, func(p []float64) (strings, numbers, payload, entities float64) {
		return math.Ceil(p[0] / 2), math.Floor(p[0] / 2), p[1], p[2]
	})
	r.Columns = []string{"attributes", "payload_bytes", "entities", "ms"}
	return observed(ctx, ents, bench.CommitConfig{Blocks: blocks, Expect: expect, Config: pace.Config{N: int64(len(points))}}, r,
		func(_ *store.Block, took time.Duration) []float64 { // totals of the block
			p := points[len(r.Rows)]
			return []float64{p[0] * p[2], p[1] * p[2], p[2], milliseconds(took)}
		})
}

// observed makes commits with an observation for each.
func observed(ctx context.Context, ents *store.Entities, cfg bench.CommitConfig, r *Record, row func(*store.Block, time.Duration) []float64) error {
	cfg.Observe = func(b *store.Block, took time.Duration) { r.Rows = append(r.Rows, row(b, took)) }
	res, err := bench.Commit(ctx, ents, cfg)
	r.result(res)
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
	points := factorial(seed, repeats, independentLevels...)
	after := bench.GenOptions{Seed: seed, Start: head + 1}
	return designBlocks(after, points, func(p []float64) (strings, numbers, payload, entities float64) {
		return p[1] / p[0], p[2] / p[0], p[3] / p[0], p[0]
	})
}

// minSampled is how many blocks are sampled at least, maxSampled how many at scale 1, and
// sampledRepeats how often A8's own blocks repeat each combination then.
const (
	minSampled     = 2_000
	maxSampled     = 50_000
	sampledRepeats = 80
)

// sampling is blocks whose commits are timed.
type sampling struct {
	profile string
	n       int
	blocks  func(d *baseData, head uint64) iter.Seq2[store.Block, error]
}

func sampledBlocks(l *Lab) (list []Variant, _ error) {
	repeats := l.scaled(sampledRepeats, 1)
	of := []sampling{
		{l.profile(), l.scaled(maxSampled, minSampled), func(d *baseData, _ uint64) iter.Seq2[store.Block, error] { return d.Rest() }},
		{"independent", len(factorial(l.Seed, repeats, independentLevels...)), func(_ *baseData, head uint64) iter.Seq2[store.Block, error] {
			return independent(head, l.fresh(), repeats)
		}},
	}
	if l.Source != "" { // its own blocks, each once
		source, err := l.history(l.Scale, 0)
		if err != nil {
			return nil, err
		}
		of = of[:1]
		of[0].n = min(maxSampled, source.Changing)
	}
	for _, layout := range l.layouts() {
		for _, s := range of {
			c := l.on(layout, s.profile, "blocks", itoa(s.n))
			list = append(list, Variant{"SampledBlocks", c, func(ctx context.Context, r *Record) error { return l.sample(ctx, layout, s, r) }})
		}
	}
	return list, nil
}

// sampledColumns are those of the observations of sampled blocks.
var sampledColumns = []string{"entities", "strings", "numbers", "payload_bytes", "ms"}

// sample applies blocks to a store of the base profile or the source, whose own are as they
// are but for empty ones, and keeps the time of each commit with what is in it.
func (l *Lab) sample(ctx context.Context, layout string, s sampling, r *Record) error {
	d, err := l.base(layout, l.Scale, 0)
	if err != nil {
		return err
	}
	return l.withDataset(ctx, d.Dataset, l.storeOptions(), r, func(cp *bench.Copy) error {
		var expect *bench.Expectation
		if err := l.aside(func() (err error) { expect, err = d.Expectation(cp.Ready); return err }); err != nil {
			return err
		}
		cfg := bench.CommitConfig{Blocks: s.blocks(d, cp.Ready.Head), Expect: expect, Config: pace.Config{N: int64(s.n)}}
		r.Columns = sampledColumns
		return l.phase(ctx, cp, temperature{fill: true}, r, func(ctx context.Context) (*pace.Outcome, error) {
			return nil, observed(ctx, cp.Entities, cfg, r, observe)
		})
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
	return []float64{float64(len(b.Ops)), float64(strings), float64(numbers), float64(payload), milliseconds(took.Round(time.Microsecond))}
}

// factorial returns the points of a full factorial experiment: every combination of the levels
// of its factors, as many times as repeats says, in a random order of the seed. Each repetition
// is complete before the next begins, so that what drifts while the experiment runs, such as a
// growing store, falls on all combinations alike.
func factorial(seed uint64, repeats int, levels ...[]float64) (points [][]float64) {
	sizes := make([]int, len(levels))
	for i, factor := range levels {
		sizes[i] = len(factor)
	}
	combinations := combin.Cartesian(sizes)
	random := rand.New(rand.NewPCG(seed, uint64(len(combinations))))
	for range repeats {
		for _, i := range random.Perm(len(combinations)) {
			point := make([]float64, len(levels))
			for factor, level := range combinations[i] {
				point[factor] = levels[factor][level]
			}
			points = append(points, point)
		}
	}
	return points
}
