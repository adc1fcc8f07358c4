package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/memlimit"
	"github.com/varvedb/varve/schemas"
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

// commits are the seed's Experiments 5 to 7, its question about storage, and index
// by index, which it asks for and did not do: whole entities, 100 a block, from an
// empty store on.
func commits() []Experiment {
	return []Experiment{
		{
			ID: "A5", Title: "Full schema, realistic payloads", Layouts: []string{"arkiv"},
			Question: "How many entities a second does the 13-index schema take, and what do payloads cost?",
			Earlier:  "714 typical, 85 large, 3,141 minimal entities/s; with payloads of 256 B 3,241, 1,842 and 6,849",
			Run:      committing(seedCommits, "arkiv"),
		},
		{
			ID: "A6", Title: "Without history", Layouts: []string{"simple"},
			Question: "What is saved by six indexes and no history?",
			Earlier:  "735 typical, 82 large, 3,137 minimal entities/s: 1.03, 0.96 and 1.00 times the full schema",
			Run:      committing(seedCommits, "simple"),
		},
		{
			ID: "A7", Title: "Memory", Layouts: []string{"arkiv"},
			Question: "How much memory for caching pays with large payloads?",
			Earlier:  "50,000 entities of 10+7 attributes and 50 KB, cache 3 to 7.5 GB: 69 to 75 entities/s, no effect",
			Run:      committing(memoryCommits, "arkiv"),
		},
		{
			ID: "A11", Title: "Index by index, writes",
			Question: "What does each of the thirteen indexes add to a commit, in the seed's order?",
			Earlier:  "asked, not measured; whole sets: 2.1x in memory, 5x on file, nothing with payloads",
			Run:      committing(typicalCommits, schemas.AblationLayouts()...),
		},
		{
			ID: "A13", Title: "Storage", Layouts: []string{"arkiv"},
			Question: "What does the disk, and what does the promise of durability cost?",
			Earlier:  "asked, not measured",
			Run:      committing(storageCommits, "arkiv"),
		},
	}
}

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

// committing measures the plans with each of the layouts.
func committing(plans func(*Lab) []commitPlan, layouts ...string) func(context.Context, *Lab) error {
	return func(ctx context.Context, l *Lab) error {
		return variants[commitPlan]{
			name: "Commit", layouts: l.layouts(layouts...), values: plans(l),
			config: func(layout string, p commitPlan) result.Config {
				return l.on(layout, p.profile.Name, append([]string{"entities", itoa(p.entities)}, p.more...)...).With("durability", string(p.options.Durability))
			},
			run: func(ctx context.Context, layout string, p commitPlan, r *result.Record) error {
				// Beside its cache each has the same memory.
				if err := memlimit.Resize(l.Memory - memlimit.Cache(l.Memory) + p.options.Memory); err != nil {
					return err
				}
				return l.commit(ctx, layout, p, r)
			},
		}.measure(ctx, l)
	}
}

// commit fills an empty store with blocks of entities and records each commit,
// the sizes and a probe of the disk.
func (l *Lab) commit(ctx context.Context, layout string, p commitPlan, r *result.Record) error {
	err := l.withStore(ctx, p.dir, layout, p.options, r, func(ctx context.Context, db *store.DB, ents *store.Entities) error {
		before, err := db.Stats(ctx)
		if err != nil {
			return err
		}
		gen := bench.GenOptions{Entities: p.entities, PerBlock: perBlock, Seed: l.Seed}
		res, err := bench.Commit(ctx, ents, bench.CommitConfig{
			Blocks: bench.Blocks(p.profile, gen), Expect: bench.NewExpectation(false), Loop: bench.Times(p.entities / perBlock),
		})
		add(r, "commit", res)
		if err != nil {
			return err
		}
		sizes, err := bench.ReadSizes(ctx, db, ents, before, res)
		r.Metrics = append(r.Metrics, sizes.Metrics()...)
		return err
	})
	if p.options.Durability != l.Durability && errors.Is(err, store.ErrUnsupported) {
		// Which levels an engine has is certain only of an open one: an embedded
		// server has more than one that others run.
		return fmt.Errorf("%w: %w", errSkip, err)
	}
	return err
}

// withStore runs f on a new empty store, in a directory that is removed
// afterwards, and adds the manifest.
func (l *Lab) withStore(ctx context.Context, parent, layout string, o *store.Options, r *result.Record,
	f func(ctx context.Context, db *store.DB, ents *store.Entities) error) error {
	probe := func(dir string) error {
		fsync, err := bench.ProbeFsync(dir, 32)
		put(r, float64(fsync.Median)/float64(time.Microsecond), "fsync-us")
		return err
	}
	return l.withDB(ctx, parent, o, probe, func(db *store.DB, dir string) error {
		ents, err := db.Entities(ctx, store.EntityOptions{Layout: layout})
		if err != nil {
			return fmt.Errorf("layout %s: %w", layout, err)
		}
		if err := l.describe(ctx, db, ents.Layout(), o, dir, r); err != nil {
			return err
		}
		return f(ctx, db, ents)
	})
}

// withDB runs f on a new database, in a directory that is removed afterwards and
// that a function may have before. Without a parent it is on the cache's disk.
func (l *Lab) withDB(ctx context.Context, parent string, o *store.Options,
	before func(dir string) error, f func(db *store.DB, dir string) error) (err error) {
	if parent == "" {
		var run *bench.RunDir // a later run removes it if this process is killed
		if run, err = l.Cache.NewRun(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, run.Remove()) }()
		parent = filepath.Dir(run.Data())
	}
	dir, err := os.MkdirTemp(parent, "varve-run-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := before(dir); err != nil {
		return err
	}
	db, err := store.Open(ctx, l.Engine.URL(dir), o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return f(db, dir)
}

// describe stores the manifest of an open store and names it in the record.
func (l *Lab) describe(ctx context.Context, db *store.DB, layout string, o *store.Options, dir string, r *result.Record) error {
	m, err := bench.DescribeStore(ctx, db, layout, o, dir)
	if err != nil {
		return err
	}
	r.Manifest, err = l.Set.Manifest(m)
	return err
}
