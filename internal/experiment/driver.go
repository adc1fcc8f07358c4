package experiment

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/stat"
	"github.com/varvedb/varve/store"
)

// drivers ask what drives the time of a commit. The seed contradicts itself:
// its Experiments 5 to 7 say payload, 8 to 10 say attributes. A correlation on
// production blocks, in which payload hardly varies, cannot settle it; a designed
// experiment can.
func drivers() []Experiment {
	return []Experiment{
		{
			ID: "A8", Title: "Blocks as in production", Layouts: []string{"arkiv", "simple"},
			Question: "What is the time of a commit correlated with, over blocks whose number of entities is heavy-tailed?",
			Earlier:  "50,000 production blocks: attributes 0.96, entities 0.90, payload -0.06; strings 0.97, numbers 0.94; median 4 ms, max 1,523 ms; simple: strings 0.96, numbers 0.91, median 3 ms",
			Run:      sampledBlocks,
		},
		{
			ID: "A14", Title: "Attributes, payload or entities", Layouts: []string{"arkiv", "simple"},
			Question: "How much does each attribute, each kilobyte of payload and each entity add to a commit?",
			Earlier:  "contradictory: payload dominates (22x, Experiment 5), payload does not matter (-0.06, Experiment 8)",
			Run:      designed,
		},
	}
}

// The levels of the designed experiment, on both sides of what the seed has.
var (
	attributeLevels = []float64{2, 8, 24}
	payloadLevels   = []float64{256, 5 << 10, 50 << 10}
	entityLevels    = []float64{10, 40, 120}
)

// Designed experiments repeat each combination, in random order, after filling
// the store.
const (
	designRepeats = 4
	minDesignBase = 5_000
)

// designColumns are those of the observations of a designed experiment.
var designColumns = []string{"attributes", "payload_bytes", "entities", "ms"}

// designBase is how many entities a store holds before.
func (l *Lab) designBase() int { return l.scaled(10*minDesignBase, minDesignBase) }

func designed(ctx context.Context, l *Lab) error {
	for _, layout := range l.layouts("arkiv", "simple") {
		c := l.config("layout", layout, "durability", string(l.Durability), "entities", itoa(l.designBase()))
		err := l.measure(ctx, "Designed", c, func(ctx context.Context, r *result.Record) error {
			return l.withStore(ctx, "", layout, l.storeOptions(), r, func(ctx context.Context, _ *store.DB, ents *store.Entities) error {
				return l.design(ctx, ents, r)
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) design(ctx context.Context, ents *store.Entities, r *result.Record) error {
	expect := bench.NewExpectation(false)
	base := bench.GenOptions{Entities: l.designBase(), PerBlock: perBlock, Seed: l.Seed}
	if _, err := bench.Commit(ctx, ents, bench.CommitConfig{
		Blocks: bench.Blocks(bench.Typical, base), Expect: expect, Loop: bench.Times(base.Entities / perBlock),
	}); err != nil {
		return err
	}
	points := stat.Factorial(l.Seed, designRepeats, attributeLevels, payloadLevels, entityLevels)
	r.Table = &result.Table{Columns: designColumns}
	res, err := bench.Commit(ctx, ents, bench.CommitConfig{
		Blocks: designBlocks(base, points), Expect: expect, Loop: bench.Times(len(points)),
		Observe: func(_ *store.Block, took time.Duration) {
			p := points[len(r.Table.Rows)]
			r.Table.Rows = append(r.Table.Rows, []float64{p[0], p[1], p[2], float64(took) / float64(time.Millisecond)})
		},
	})
	add(r, "commit", res)
	return err
}

// designBlocks yields a block for each point: attributes, payload, entities.
func designBlocks(base bench.GenOptions, points [][]float64) iter.Seq2[store.Block, error] {
	return func(yield func(store.Block, error) bool) {
		gen := base
		for _, p := range points {
			attributes, payload, entities := int(p[0]), int(p[1]), int(p[2])
			profile := bench.Profile{
				Name:    "design-" + strconv.Itoa(attributes),
				Strings: attributes - attributes/2, Numbers: attributes / 2, Payload: payload,
			}
			gen = gen.Next(entities)
			gen.PerBlock = entities
			for b, err := range bench.Blocks(profile, gen) {
				if !yield(b, err) || err != nil {
					return
				}
			}
		}
	}
}

// sampledColumns are those of the observations of sampled blocks.
var sampledColumns = []string{"block", "entities", "strings", "numbers", "payload_bytes", "ms"}

// minSampled is how many blocks are sampled at least.
const minSampled = 2_000

func sampledBlocks(ctx context.Context, l *Lab) error {
	blocks := l.scaled(50_000, minSampled)
	for _, layout := range l.layouts("arkiv", "simple") {
		c := l.config("layout", layout, "profile", l.profile(), "durability", string(l.Durability), "blocks", itoa(blocks))
		err := l.measure(ctx, "SampledBlocks", c, func(ctx context.Context, r *result.Record) error {
			return l.sample(ctx, layout, blocks, r)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sample applies blocks of the base profile as they are, empty ones left out, and
// correlates the time of each commit with what is in it.
func (l *Lab) sample(ctx context.Context, layout string, blocks int, r *result.Record) error {
	d, err := l.mendoza(layout, mendozaOptions{})
	if err != nil {
		return err
	}
	return l.withDataset(ctx, d.Dataset, l.storeOptions(), r, func(ctx context.Context, cp *bench.Copy) error {
		expect, err := d.Expectation(cp.Ready)
		if err != nil {
			return err
		}
		r.Table = &result.Table{Columns: sampledColumns}
		res, err := bench.Commit(ctx, cp.Entities, bench.CommitConfig{
			Blocks: d.Rest(), Expect: expect, Loop: bench.Times(blocks),
			Observe: func(b *store.Block, took time.Duration) {
				r.Table.Rows = append(r.Table.Rows, observe(b, took))
			},
		})
		add(r, "commit", res)
		if err != nil {
			return err
		}
		return correlate(r)
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
	return []float64{
		float64(b.Number), float64(len(b.Ops)), float64(strings), float64(numbers), float64(payload),
		float64(took) / float64(time.Millisecond),
	}
}

// correlate adds the correlations that the seed reports.
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
	for _, v := range []struct {
		name   string
		values []float64
	}{
		{"entities", entities}, {"attributes", attributes}, {"strings", strings}, {"numbers", numbers},
		{"payload", payload}, {"payload-each", perEntity},
	} {
		c, err := stat.Pearson(v.values, ms)
		if err != nil {
			return err
		}
		r.Metrics = append(r.Metrics, result.Metric{Value: c.R, Unit: "r-" + v.name})
		r.Notes = append(r.Notes, fmt.Sprintf("correlation of %s with the time: %.3f, 95 %% interval %.3f to %.3f", v.name, c.R, c.Low, c.High))
	}
	return nil
}
