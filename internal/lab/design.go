package lab

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/stat/combin"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store/entity"
)

// A8 and A14 ask which contents determine the time of a commit. The seed
// documents contradict each other: Experiments 5 to 7 say payload, 8 to 10 say
// attributes. In production blocks the numbers of entities, strings and numbers
// are correlated and payload hardly varies, so correlations cannot decide it.
// Blocks that vary them independently can.

// sampled applies n blocks to a data set, at a rate of rows if given, and
// records the time of each commit with the block's contents.
func sampled(name string, c Keys, rows float64, d bench.Dataset, n int, blocks iter.Seq2[entity.Block, error]) Variant {
	return Variant{Name: name, Keys: c, Cost: Cost{Rows: rows}, Run: On(d, func(t *Trial) (_ Workload, err error) {
		t.Columns = blockColumns
		cfg := bench.CommitConfig{Blocks: blocks, Config: pace.Config{N: int64(n)}, Observe: func(b *entity.Block, took time.Duration) {
			t.Rows = append(t.Rows, append(observe(b), Milliseconds(took.Round(time.Microsecond))))
		}}
		cfg.Expect, err = d.Expectation(t.Ready)
		return func(ctx context.Context) (bench.Result, error) { return bench.Commit(ctx, t.Entities, cfg) }, err
	})}
}

// designLevels are the levels of A14, below and above the seed's: string
// attributes, numeric attributes and payload of each entity, and entities in a
// block.
var designLevels = [][]float64{{1, 4, 12}, {1, 4, 12}, {256, 5 << 10, 50 << 10}, {10, 40, 120}}

// Designed experiments repeat each combination, in random order, on a store of
// typical entities.
const (
	designRepeats = 4
	minDesignBase = 5_000
)

func designed(l *Lab) (list []Variant, _ error) {
	gen := bench.GenOptions{Entities: l.Scaled(10*minDesignBase, minDesignBase), PerBlock: perBlock, Seed: l.Seed}
	points, rows := factorial(l.questionSeed(), designRepeats, designLevels...), 0.0
	for _, p := range points {
		rows += p[3] * float64(designProfile(p).Rows())
	}
	for _, layout := range l.LayoutsOr() {
		c := l.KeysOf("layout", layout, "durability", string(l.Durability), "entities", itoa(gen.Entities))
		list = append(list, sampled("Designed", c, rows, bench.Dataset{Engine: l.Engine, Layout: layout, Profile: bench.Typical, Gen: gen}, len(points), designBlocks(gen, points)))
	}
	return list, nil
}

// designBlocks yields one block for each point: a number of entities with given
// numbers of strings, numeric attributes and payload bytes. They follow the
// blocks of after.
func designBlocks(after bench.GenOptions, points [][]float64) bench.Stream {
	return func(yield func(entity.Block, error) bool) {
		after := after // the same blocks each time
		for _, p := range points {
			after = after.Next(int(p[3]))
			after.PerBlock = int(p[3])
			for b, err := range bench.Blocks(designProfile(p), after) {
				if !yield(b, err) || err != nil {
					return
				}
			}
		}
	}
}

func designProfile(p []float64) bench.Profile {
	return bench.Profile{Strings: int(p[0]), Numbers: int(p[1]), Payload: int(p[2])}
}

// minSampled is the minimum number of sampled blocks, and maxSampled the number
// at scale 1.
const (
	minSampled = 2_000
	maxSampled = 50_000
)

// sampledBlocks measures commits of the unmodified blocks of the base profile
// or the source, without empty ones.
func sampledBlocks(l *Lab) (list []Variant, _ error) {
	for _, layout := range l.LayoutsOr() {
		d, err := l.Base(layout, l.Scale, 0)
		if err != nil {
			return nil, err
		}
		n := l.Scaled(maxSampled, minSampled)
		if l.Source != "" { // its own blocks, each once
			n = min(maxSampled, d.Source.Changing)
		}
		c := l.On(layout, l.profile(), "blocks", itoa(n))
		list = append(list, sampled("SampledBlocks", c, float64(n*blockRows), *d, n, d.Rest()))
	}
	return list, nil
}

// blockColumns are the columns of observe, and the time.
var blockColumns = []string{"entities", "strings", "numbers", "payload_bytes", "ms"}

// observe returns the contents of a block. Only creations and updates have
// attributes and payload.
func observe(b *entity.Block) []float64 {
	var strings, numbers, payload int
	for i := range b.Ops {
		strings += len(b.Ops[i].StringAttributes)
		numbers += len(b.Ops[i].NumericAttributes)
		payload += len(b.Ops[i].Content)
	}
	return []float64{float64(len(b.Ops)), float64(strings), float64(numbers), float64(payload)}
}

// factorial returns the points of a full factorial experiment: every
// combination of the factors' levels, repeated, in an order that the seed
// shuffles. Each repetition is complete before the next begins, so that a drift
// during the experiment, such as a growing store, affects all combinations
// equally.
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
