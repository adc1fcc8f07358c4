package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/row"
	"github.com/varvedb/varve/internal/memlimit"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// The profiles of Arkiv's Experiments 5 to 7.
var (
	arkivProfiles = []bench.Profile{
		bench.Typical, bench.Large, bench.Minimal,
		bench.Typical.WithPayload(256), bench.Large.WithPayload(256), bench.Minimal.WithPayload(256),
	}
	memoryProfile = bench.Profile{Name: "memory", Strings: 10, Numbers: 7, Payload: 50 << 10}
)

// commitPlan configures commits of generated entities into an empty store.
type commitPlan struct {
	profile  bench.Profile
	entities int
	options  *store.Options
	dir      string   // of the database; empty means on the cache's disk
	more     []string // of the configuration
}

// The minimum number of committed entities, and the entities a block.
const (
	minEntities = 4_000
	perBlock    = 100
)

func (l *Lab) typicalCommits() []commitPlan {
	return []commitPlan{{profile: bench.Typical, entities: l.Scaled(100_000, minEntities), options: l.StoreOptions()}}
}

func (l *Lab) seedCommits() (plans []commitPlan) {
	for _, profile := range arkivProfiles {
		p := l.typicalCommits()[0]
		if p.profile = profile; profile.Payload > 10<<10 {
			p.entities /= 4 // the same bytes as the others, roughly
		}
		plans = append(plans, p)
	}
	return plans
}

// leastMemory is enough for every engine.
const leastMemory = 64 << 20

// memoryCommits give the engine caches of various fractions of the data's size,
// up to more than all of it.
func (l *Lab) memoryCommits() (plans []commitPlan) {
	entities := l.Scaled(50_000, 2_000)
	data := float64(entities * (memoryProfile.Payload + 8<<10))
	for _, part := range []float64{0.1, 0.5, 1.5} {
		o := l.StoreOptions()
		o.Memory = max(int64(part*data), leastMemory)
		plans = append(plans, commitPlan{profile: memoryProfile, entities: entities, options: o, more: []string{"memory", Ftoa(part)}})
	}
	return plans
}

// storageCommits compare disk and memory at every durability level.
func (l *Lab) storageCommits() (plans []commitPlan) {
	for _, d := range []driver.Durability{driver.Durable, driver.Relaxed, driver.Unsafe} {
		for _, on := range [][2]string{{"", "disk"}, {memoryDir, "tmpfs"}} {
			p := l.typicalCommits()[0]
			p.options.Durability, p.dir, p.more = d, on[0], []string{"store", on[1]}
			plans = append(plans, p)
		}
	}
	return plans
}

// committing measures the plans with each layout: commits of whole entities,
// 100 a block, into an empty store.
func committing(plans func(*Lab) []commitPlan, layouts ...string) func(*Lab) ([]Variant, error) {
	return func(l *Lab) ([]Variant, error) {
		return across(l.LayoutsOr(layouts...), plans(l), func(layout string, p commitPlan) Variant {
			c := l.On(layout, p.profile.Name, append([]string{"entities", itoa(p.entities)}, p.more...)...).With("durability", string(p.options.Durability))
			return Variant{Name: "Commit", Keys: c, Cost: Cost{Rows: float64(p.entities * p.profile.Rows())}, Run: func(t *Trial, ctx context.Context) error { return p.commit(ctx, t) }}
		})
	}
}

// commit fills an empty store with blocks of entities and records each commit
// and the sizes.
func (p commitPlan) commit(ctx context.Context, t *Trial) error {
	// All variants have the same memory besides the cache.
	if err := memlimit.Resize(t.Memory - memlimit.Cache(t.Memory) + p.options.Memory); err != nil {
		return err
	}
	t.Store = p.options
	err := t.WithNew(ctx, p.dir, t.layout(), func() error {
		gen, expect := bench.GenOptions{Entities: p.entities, PerBlock: perBlock, Seed: t.questionSeed()}, bench.NewExpectation(false)
		res, err := bench.Commit(ctx, t.Entities, bench.CommitConfig{
			Blocks: bench.Blocks(p.profile, gen), Expect: expect, Config: pace.Config{N: int64(p.entities / perBlock)},
		})
		t.Result(res)
		if err = res.Checked(ctx, err); err == nil {
			err = t.size(ctx, int(expect.Live()), "B/ent")
		}
		return err
	})
	if p.options.Durability != t.Durability && errors.Is(err, store.ErrUnsupported) {
		// The levels of an engine are only known once it is open: an embedded
		// server has more than a server that others run.
		return fmt.Errorf("%w: %w", ErrSkip, err)
	}
	return err
}

// insertPlan configures inserts into one table, as in Arkiv's Experiments 1 to
// 4.
type insertPlan struct {
	size      int // rows at scale 1
	perCommit int
	memory    bool
	indexes   []int
	modes     []row.Mode
}

// minRows is the minimum number of inserted rows; the run ends early if they
// take longer than maxPhases phases.
const (
	minRows      = 20_000
	insertPhases = 2
)

func (p insertPlan) variants(l *Lab) (list []Variant, _ error) {
	o, dir, in := l.StoreOptions(), "", "file"
	if p.memory && l.Engine.Server != "" {
		return nil, nil // where its files are is the server's affair
	}
	if p.memory {
		dir, in = memoryDir, "memory"
		if linked, _ := driver.Lookup(l.Engine.Name); slices.Contains(linked.Capabilities.Durabilities, driver.Unsafe) {
			o.Durability = driver.Unsafe // a memory file cannot be durable, so the engine should sync as little as it can
		}
	}
	for _, indexes := range p.indexes {
		for _, mode := range p.modes {
			cfg := row.Config{Indexes: indexes, Rows: l.Scaled(p.size, minRows), PerCommit: p.perCommit, Mode: mode, Seed: l.questionSeed(), Limit: insertPhases * l.Phase}
			c := l.KeysOf("durability", string(o.Durability), "store", in, "indexes", itoa(indexes),
				"commit", itoa(p.perCommit), "mode", string(mode), "rows", itoa(cfg.Rows))
			list = append(list, Variant{Name: "Insert", Keys: c, Cost: Cost{Rows: float64(cfg.Rows)}, Run: func(t *Trial, ctx context.Context) error {
				t.Store = o
				return t.WithNew(ctx, dir, "", func() error {
					res, err := row.Insert(ctx, t.DB, cfg)
					if t.Result(res); err == nil && res.Rows < uint64(cfg.Rows) {
						t.Note(fmt.Sprintf("ended after %d of %d rows, when the time was up", res.Rows, cfg.Rows))
					}
					return err
				})
			}})
		}
	}
	return list, nil
}

// memoryDir is a directory on a memory file system.
var memoryDir = fmt.Sprintf("/dev/shm/varve-%d", os.Getuid())

// typical returns a data set of typical entities.
func (l *Lab) typical(layout string) bench.Dataset {
	return bench.Dataset{
		Engine: l.Engine, Layout: layout, Profile: bench.Typical,
		Gen: bench.GenOptions{Entities: l.Scaled(800_000, 2_000), PerBlock: perBlock, Seed: l.Seed},
	}
}

// measured is a workload on an open data set, in two forms: the whole run, and
// single operations.
type measured struct {
	run  Workload
	each func(ctx context.Context) (*bench.Operations, error)
}

// operation plans one workload on a data set of typical entities.
func (l *Lab) operation(name, layout string, prepare func(d *bench.Dataset, cp *bench.Copy) (measured, error), more ...string) Variant {
	d := l.typical(layout)
	v := Variant{Name: name, Keys: l.On(layout, d.Profile.Name, more...), Cost: Cost{Phases: 1, Set: float64(d.Gen.Entities * d.Profile.Rows())}}
	v.Run = On(d, func(t *Trial) (Workload, error) {
		m, err := prepare(&d, t.Copy)
		return m.run, err
	})
	v.Each = l.eachOn(d, func(ctx context.Context, cp *bench.Copy) (*bench.Operations, error) {
		m, err := prepare(&d, cp)
		if err != nil {
			return nil, err
		}
		return m.each(ctx)
	})
	return v
}

// operations measures single operations, which show the effect of a code change
// first.
func operations(l *Lab) (list []Variant, _ error) {
	for _, layout := range l.LayoutsOr() {
		committed := func(name string, blocks func(d *bench.Dataset) bench.Stream) {
			list = append(list, l.operation(name, layout, func(d *bench.Dataset, cp *bench.Copy) (measured, error) {
				return l.commits(d, cp, bench.CommitConfig{Blocks: blocks(d)})
			}))
		}
		committed("Commit", func(d *bench.Dataset) bench.Stream {
			return bench.Blocks(d.Profile, d.Gen.Next(bench.Endless))
		})
		committed("Update", func(d *bench.Dataset) bench.Stream {
			return bench.Updates(d.Profile, d.Gen, l.questionSeed())
		})
		list = append(list, l.operation("Get", layout, func(d *bench.Dataset, cp *bench.Copy) (measured, error) {
			m, err := bench.Gets(d.Profile, d.Gen, l.questionSeed())
			return l.held(cp, m, bench.Result{Entities: 1, Rows: uint64(d.Profile.Rows())}, eachReads), err
		}))
	}
	return list, nil
}

// commits commits the blocks after a data set, for one phase if no number is
// given.
func (l *Lab) commits(d *bench.Dataset, cp *bench.Copy, cfg bench.CommitConfig) (_ measured, err error) {
	cfg.Expect, err = d.Expectation(cp.Ready)
	if cfg.N == 0 {
		cfg.Duration = l.Phase
	}
	return measured{
		func(ctx context.Context) (bench.Result, error) { return bench.Commit(ctx, cp.Entities, cfg) },
		func(context.Context) (*bench.Operations, error) { return bench.EachCommit(cp.Entities, cfg), nil },
	}, err
}

// eachReads is the number of different reads that single-operation benchmarks
// repeat.
const eachReads = 500

// held reads one open snapshot: for a phase, or, as single operations, a fixed
// number of reads again and again. Of has the counts of one read.
func (l *Lab) held(cp *bench.Copy, m mix.Reads, of bench.Result, reads int64) measured {
	cfg := bench.ReadMixConfig{Mix: m, Held: true, Config: pace.Config{Duration: l.Phase, Seed: l.questionSeed()}}
	return measured{func(ctx context.Context) (res bench.Result, err error) {
		res.Outcome, err = bench.ReadMix(ctx, cp.Entities, cfg)
		n := uint64(res.Count)
		res.Entities, res.Rows = n*of.Entities, n*of.Rows
		return res, err
	}, func(ctx context.Context) (*bench.Operations, error) {
		cfg.N = reads
		return bench.EachRead(ctx, cp.Entities, cfg)
	}}
}

// queries measures each query of the fixed set.
func queries(l *Lab) ([]Variant, error) {
	return across(l.LayoutsOr(), bench.Queries(), func(layout string, q bench.NamedQuery) Variant {
		return l.operation("Query", layout, func(d *bench.Dataset, cp *bench.Copy) (m measured, err error) {
			answer, err := q.Answer(d.Profile, d.Gen)
			if err != nil {
				return m, err
			}
			reads, err := q.Reads(answer)
			return l.held(cp, reads, bench.Result{Entities: uint64(len(answer))}, 1), err
		}, "query", q.Name)
	})
}
