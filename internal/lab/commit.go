package lab

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/row"
	"github.com/varvedb/varve/internal/memlimit"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// The profiles of Arkiv's Experiments 5 and 6, and the one of 7.
var (
	arkivProfiles = []bench.Profile{
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

// leastMemory is what every engine can work with.
const leastMemory = 64 << 20

// memoryCommits give the engine a part of the data's size, up to more than all.
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

// storageCommits compare the disk with memory at every durability.
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

// committing measures the plans with each of the layouts: commits of whole entities,
// 100 a block, from an empty store on.
func committing(plans func(*Lab) []commitPlan, layouts ...string) func(*Lab) ([]Variant, error) {
	return func(l *Lab) (list []Variant, _ error) {
		for _, layout := range l.LayoutsOr(layouts...) {
			for _, p := range plans(l) {
				c := l.On(layout, p.profile.Name, append([]string{"entities", itoa(p.entities)}, p.more...)...).With("durability", string(p.options.Durability))
				list = append(list, Variant{Name: "Commit", Keys: c, Cost: Cost{Rows: float64(p.entities * p.profile.Rows())}, Run: func(ctx context.Context, r *Record) error { return l.commit(ctx, layout, p, r) }})
			}
		}
		return list, nil
	}
}

// commit fills an empty store with blocks of entities and records each commit and the sizes.
func (l *Lab) commit(ctx context.Context, layout string, p commitPlan, r *Record) error {
	// Apart from its cache each has the same memory.
	if err := memlimit.Resize(l.Memory - memlimit.Cache(l.Memory) + p.options.Memory); err != nil {
		return err
	}
	err := l.WithNew(ctx, p.dir, layout, p.options, r, func(cp *bench.Copy) error {
		gen, expect := bench.GenOptions{Entities: p.entities, PerBlock: perBlock, Seed: l.fresh()}, bench.NewExpectation(false)
		res, err := bench.Commit(ctx, cp.Entities, bench.CommitConfig{
			Blocks: bench.Blocks(p.profile, gen), Expect: expect, Config: pace.Config{N: int64(p.entities / perBlock)},
		})
		r.Result(res)
		if err = res.Checked(ctx, err); err == nil {
			err = r.sizes(ctx, cp.DB, int(expect.Live()), "B/ent")
		}
		return err
	})
	if p.options.Durability != l.Durability && errors.Is(err, store.ErrUnsupported) {
		// Which levels an engine has is certain only of an open one: an embedded
		// server has more than one that others run.
		return fmt.Errorf("%w: %w", ErrSkip, err)
	}
	return err
}

// insertPlan is rows of one table, as in Arkiv's Experiments 1 to 4.
type insertPlan struct {
	size      int // rows at scale 1
	perCommit int
	memory    bool
	indexes   []int
	modes     []row.Mode
}

// minRows is how many rows an insertion has at least; it ends early where they take longer than so many phases.
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
			cfg := row.Config{Indexes: indexes, Rows: l.Scaled(p.size, minRows), PerCommit: p.perCommit, Mode: mode, Seed: l.fresh(), Limit: insertPhases * l.Phase}
			c := l.KeysOf("durability", string(o.Durability), "store", in, "indexes", itoa(indexes),
				"commit", itoa(p.perCommit), "mode", string(mode), "rows", itoa(cfg.Rows))
			list = append(list, Variant{Name: "Insert", Keys: c, Cost: Cost{Rows: float64(cfg.Rows)}, Run: func(ctx context.Context, r *Record) error {
				return l.WithNew(ctx, dir, "", o, r, func(cp *bench.Copy) error {
					res, err := row.Insert(ctx, cp.DB, cfg)
					if r.Result(res); err == nil && res.Rows < uint64(cfg.Rows) {
						r.Note(fmt.Sprintf("ended after %d of %d rows, when the time was up", res.Rows, cfg.Rows))
					}
					return err
				})
			}})
		}
	}
	return list, nil
}

// memoryDir is on a file system in memory.
var memoryDir = fmt.Sprintf("/dev/shm/varve-%d", os.Getuid())

// typical is a data set of typical entities.
func (l *Lab) typical(layout string) bench.Dataset {
	return bench.Dataset{
		Engine: l.Engine, Layout: layout, Profile: bench.Typical,
		Gen: bench.GenOptions{Entities: l.Scaled(800_000, 2_000), PerBlock: perBlock, Seed: l.Seed},
	}
}

// operation is one workload on a data set of typical entities.
func (l *Lab) operation(name, layout string, prepare func(d *bench.Dataset, cp *bench.Copy) (workload, error), more ...string) Variant {
	d := l.typical(layout)
	cost := Cost{Phases: 1, Set: float64(d.Gen.Entities * d.Profile.Rows())}
	return l.prepared(name, l.On(layout, d.Profile.Name, more...), cost, d, func(cp *bench.Copy, _ *Record) (workload, error) { return prepare(&d, cp) })
}

// committed is the operation that commits blocks which follow the data set.
func (l *Lab) committed(name, layout string, blocks func(d *bench.Dataset) iter.Seq2[entity.Block, error]) Variant {
	v := l.operation(name, layout, func(d *bench.Dataset, cp *bench.Copy) (workload, error) {
		return l.commits(d, cp, bench.CommitConfig{Blocks: blocks(d)})
	})
	d := l.typical(layout)
	v.Each = l.eachOn(d, func(ctx context.Context, cp *bench.Copy, f func(*bench.Operations) error) error {
		expect, err := d.Expectation(cp.Ready)
		if err != nil {
			return err
		}
		return bench.EachCommit(ctx, cp.Entities, bench.CommitConfig{Blocks: blocks(&d), Expect: expect}, f)
	})
	return v
}

// operations measures single operations: the effects of a change of the code
// are seen here first.
func operations(l *Lab) (list []Variant, _ error) {
	for _, layout := range l.LayoutsOr() {
		d := l.typical(layout)
		cfg := bench.GetConfig{Profile: d.Profile, Of: d.Gen, Config: pace.Config{Duration: l.Phase, Seed: l.fresh()}}
		get := l.operation("Get", layout, func(_ *bench.Dataset, cp *bench.Copy) (workload, error) {
			return func(ctx context.Context) (bench.Result, error) { return bench.Get(ctx, cp.Entities, cfg) }, nil
		})
		get.Each = l.eachOn(d, func(ctx context.Context, cp *bench.Copy, f func(*bench.Operations) error) error {
			return bench.EachGet(ctx, cp.Entities, cfg, f)
		})
		list = append(list,
			l.committed("Commit", layout, func(d *bench.Dataset) iter.Seq2[entity.Block, error] {
				return bench.Blocks(d.Profile, d.Gen.Next(bench.Endless))
			}),
			l.committed("Update", layout, func(d *bench.Dataset) iter.Seq2[entity.Block, error] {
				return bench.Updates(d.Profile, d.Gen, l.fresh())
			}),
			get)
	}
	return list, nil
}

// commits commits what follows a data set, for a phase where no number is given.
func (l *Lab) commits(d *bench.Dataset, cp *bench.Copy, cfg bench.CommitConfig) (_ workload, err error) {
	cfg.Expect, err = d.Expectation(cp.Ready)
	if cfg.N == 0 {
		cfg.Duration = l.Phase
	}
	return func(ctx context.Context) (bench.Result, error) { return bench.Commit(ctx, cp.Entities, cfg) }, err
}

// queries measures each query of the fixed set.
func queries(l *Lab) (list []Variant, _ error) {
	for _, layout := range l.LayoutsOr() {
		for i, q := range bench.Queries() {
			d := l.typical(layout)
			config := func() (bench.QueryConfig, error) {
				answers, err := bench.Answers(d.Profile, d.Gen, bench.Queries()[i:i+1])
				if err != nil {
					return bench.QueryConfig{}, err
				}
				return bench.QueryConfig{Query: q, Answer: answers[0], Config: pace.Config{Duration: l.Phase}}, nil
			}
			v := l.operation("Query", layout, func(_ *bench.Dataset, cp *bench.Copy) (workload, error) {
				cfg, err := config()
				return func(ctx context.Context) (bench.Result, error) { return bench.Query(ctx, cp.Entities, cfg) }, err
			}, "query", q.Name)
			v.Each = l.eachOn(d, func(ctx context.Context, cp *bench.Copy, f func(*bench.Operations) error) error {
				cfg, err := config()
				if err != nil {
					return err
				}
				return bench.EachQuery(ctx, cp.Entities, cfg, f)
			})
			list = append(list, v)
		}
	}
	return list, nil
}
