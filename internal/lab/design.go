package lab

import (
	"context"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/gonum/stat/combin"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store/entity"
)

// A8 and A14 ask what drives the time of a commit. The seed contradicts itself:
// its Experiments 5 to 7 say payload, 8 to 10 say attributes. A correlation on
// production blocks, in which entities, strings and numbers come and go together and
// payload hardly varies, cannot settle it; blocks that vary them independently can.

// sampling is blocks whose commits are timed, each with what is in it.
type sampling struct {
	n       int
	blocks  func(head uint64) iter.Seq2[entity.Block, error]
	columns []string // of the observations, before the time
	observe func(nth int, b *entity.Block) []float64
}

// sampled applies blocks to a data set, and keeps the time of each commit.
func (l *Lab) sampled(name string, c Keys, d bench.Dataset, s sampling) Variant {
	return Variant{name, c, func(ctx context.Context, r *Record) error {
		return l.withDataset(ctx, d, l.StoreOptions(), r, func(cp *bench.Copy) error {
			var expect *bench.Expectation
			if err := l.Aside(func() (err error) { expect, err = d.Expectation(cp.Ready); return err }); err != nil {
				return err
			}
			r.Columns = slices.Concat(s.columns, []string{"ms"})
			cfg := bench.CommitConfig{Blocks: s.blocks(cp.Ready.Head), Expect: expect, Config: pace.Config{N: int64(s.n)}}
			cfg.Observe = func(b *entity.Block, took time.Duration) {
				r.Rows = append(r.Rows, append(s.observe(len(r.Rows), b), Milliseconds(took.Round(time.Microsecond))))
			}
			return l.timed(ctx, cp, r, func(ctx context.Context) (bench.Result, error) { return bench.Commit(ctx, cp.Entities, cfg) })
		})
	}}
}

// designLevels are those of A14: attributes and payload of each entity, and entities, on
// both sides of what the seed has.
var designLevels = [][]float64{{2, 8, 24}, {256, 5 << 10, 50 << 10}, {10, 40, 120}}

// Designed experiments repeat each combination, in random order, on a store of typical entities.
const (
	designRepeats = 4
	minDesignBase = 5_000
)

func designed(l *Lab) (list []Variant, _ error) {
	gen := bench.GenOptions{Entities: l.Scaled(10*minDesignBase, minDesignBase), PerBlock: perBlock, Seed: l.Seed}
	points := factorial(l.fresh(), designRepeats, designLevels...)
	s := sampling{
		n: len(points), columns: []string{"attributes", "payload_bytes", "entities"},
		blocks: func(uint64) iter.Seq2[entity.Block, error] {
			return designBlocks(gen, points, func(p []float64) (strings, numbers, payload, entities float64) {
				return math.Ceil(p[0] / 2), math.Floor(p[0] / 2), p[1], p[2]
			})
		},
		observe: func(nth int, _ *entity.Block) []float64 { // totals of the block
			p := points[nth]
			return []float64{p[0] * p[2], p[1] * p[2], p[2]}
		},
	}
	for _, layout := range l.LayoutsOr() {
		c := l.KeysOf("layout", layout, "durability", string(l.Durability), "entities", itoa(gen.Entities))
		list = append(list, l.sampled("Designed", c, bench.Dataset{Engine: l.Engine, Layout: layout, Profile: bench.Typical, Gen: gen}, s))
	}
	return list, nil
}

// designBlocks yields a block for each point, after others: so many entities, each
// with so many strings, numbers and bytes of payload.
func designBlocks(after bench.GenOptions, points [][]float64, each func(p []float64) (strings, numbers, payload, entities float64)) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
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
func independent(head, seed uint64, repeats int) iter.Seq2[entity.Block, error] {
	points := factorial(seed, repeats, independentLevels...)
	return designBlocks(bench.GenOptions{Seed: seed, Start: head + 1}, points, func(p []float64) (strings, numbers, payload, entities float64) {
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

// sampledBlocks measures commits of the blocks of the base profile or the source, which are as they
// are but for empty ones, and of blocks whose parts vary independently.
func sampledBlocks(l *Lab) (list []Variant, _ error) {
	repeats := l.Scaled(sampledRepeats, 1)
	for _, layout := range l.LayoutsOr() {
		d, err := l.Base(layout, l.Scale, 0)
		if err != nil {
			return nil, err
		}
		add := func(profile string, n int, blocks func(head uint64) iter.Seq2[entity.Block, error]) {
			c := l.On(layout, profile, "blocks", itoa(n))
			list = append(list, l.sampled("SampledBlocks", c, *d, sampling{n, blocks, []string{"entities", "strings", "numbers", "payload_bytes"}, observe}))
		}
		rest := func(uint64) iter.Seq2[entity.Block, error] { return d.Rest() }
		if l.Source != "" { // its own blocks, each once
			add(l.profile(), min(maxSampled, d.Source.Changing), rest)
			continue
		}
		add(l.profile(), l.Scaled(maxSampled, minSampled), rest)
		add("independent", len(factorial(l.Seed, repeats, independentLevels...)), func(head uint64) iter.Seq2[entity.Block, error] {
			return independent(head, l.fresh(), repeats)
		})
	}
	return list, nil
}

// observe counts what a block writes: creations and updates have attributes and
// payload, other operations none.
func observe(_ int, b *entity.Block) []float64 {
	var strings, numbers, payload int
	for i := range b.Ops {
		strings += len(b.Ops[i].StringAttributes)
		numbers += len(b.Ops[i].NumericAttributes)
		payload += len(b.Ops[i].Content)
	}
	return []float64{float64(len(b.Ops)), float64(strings), float64(numbers), float64(payload)}
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
