package experiment

import (
	"context"
	"errors"
	"fmt"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/memlimit"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// The profiles of the seed's Experiments 5 and 6, and the one of 7.
var (
	seedProfiles = []bench.Profile{
		bench.Typical, bench.Large, bench.Minimal,
		bench.Typical.WithPayload(256), bench.Large.WithPayload(256), bench.Minimal.WithPayload(256),
	}
	memoryProfile = bench.Profile{Name: "memory", Strings: 10, Numbers: 7, Payload: 50 << 10}
)

// commitPlan is commits of generated entities into an empty store.
type commitPlan struct {
	profile  bench.Profile
	entities int
	options  *store.Options
	dir      string   // of the database; empty means on the cache's disk
	more     []string // of the configuration
}

// minEntities are at least committed, perBlock a block.
const (
	minEntities = 4_000
	perBlock    = 100
)

func (l *Lab) typicalPlan() commitPlan {
	return commitPlan{profile: bench.Typical, entities: l.scaled(100_000, minEntities), options: l.storeOptions()}
}

func typicalCommits(l *Lab) []commitPlan { return []commitPlan{l.typicalPlan()} }

func seedCommits(l *Lab) (plans []commitPlan) {
	for _, profile := range seedProfiles {
		p := l.typicalPlan()
		if p.profile = profile; profile.Payload > 10<<10 {
			p.entities /= 4 // the same bytes as the others, roughly
		}
		plans = append(plans, p)
	}
	return plans
}

// leastMemory is what every engine can work with.
const leastMemory = 64 << 20

// memoryCommits give the engine a part of what the data take, up to more than all.
func memoryCommits(l *Lab) (plans []commitPlan) {
	entities := l.scaled(50_000, 2_000)
	data := float64(entities * (memoryProfile.Payload + 8<<10))
	for _, part := range []float64{0.1, 0.5, 1.5} {
		o := l.storeOptions()
		o.Memory = max(int64(part*data), leastMemory)
		plans = append(plans, commitPlan{profile: memoryProfile, entities: entities, options: o, more: []string{"memory", ftoa(part)}})
	}
	return plans
}

// storageCommits compare the disk with memory at every durability.
func storageCommits(l *Lab) (plans []commitPlan) {
	for _, d := range []driver.Durability{driver.Durable, driver.Relaxed, driver.Unsafe} {
		for _, on := range [][2]string{{"", "disk"}, {memoryDir, "tmpfs"}} {
			p := l.typicalPlan()
			p.options.Durability, p.dir, p.more = d, on[0], []string{"store", on[1]}
			plans = append(plans, p)
		}
	}
	return plans
}

// committing measures the plans with each of the layouts: commits of whole entities,
// 100 a block, from an empty store on.
func committing(plans func(*Lab) []commitPlan, layouts ...string) func(*Lab) ([]variant, error) {
	return func(l *Lab) ([]variant, error) {
		return variants[commitPlan]{
			name: "Commit", layouts: l.layouts(layouts...), values: plans(l), run: l.commit,
			config: func(layout string, p commitPlan) result.Config {
				return l.on(layout, p.profile.Name, append([]string{"entities", itoa(p.entities)}, p.more...)...).With("durability", string(p.options.Durability))
			},
		}.of(l), nil
	}
}

// commit fills an empty store with blocks of entities and records each commit,
// the sizes and a probe of the disk.
func (l *Lab) commit(ctx context.Context, layout string, p commitPlan, r *result.Record) error {
	// Beside its cache each has the same memory.
	if err := memlimit.Resize(l.Memory - memlimit.Cache(l.Memory) + p.options.Memory); err != nil {
		return err
	}
	err := l.withStore(ctx, p.dir, layout, p.options, r, func(db *database, ents *store.Entities) error {
		if err := db.probe(r); err != nil {
			return err
		}
		before, err := db.Stats(ctx)
		if err != nil {
			return err
		}
		gen := bench.GenOptions{Entities: p.entities, PerBlock: perBlock, Seed: l.Seed}
		res, err := bench.Commit(ctx, ents, bench.CommitConfig{
			Blocks: bench.Blocks(p.profile, gen), Expect: bench.NewExpectation(false), Loop: bench.Times(p.entities / perBlock),
		})
		if err == nil {
			err = res.AddSizes(ctx, db.DB, ents, before)
		}
		add(r, "commit", res)
		return err
	})
	if p.options.Durability != l.Durability && errors.Is(err, store.ErrUnsupported) {
		// Which levels an engine has is certain only of an open one: an embedded
		// server has more than one that others run.
		return fmt.Errorf("%w: %w", errSkip, err)
	}
	return err
}
