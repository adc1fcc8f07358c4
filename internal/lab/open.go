package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/internal/memlimit"
	"github.com/varvedb/varve/store"
)

// WithBase runs f on an open data set of the base profile.
func (l *Lab) WithBase(ctx context.Context, layout string, scale float64, o *store.Options, r *Record, f func(d *bench.Dataset, cp *bench.Copy) error) error {
	d, err := l.Base(layout, scale, ProductionBlock)
	if err != nil {
		return err
	}
	return l.withDataset(ctx, *d, o, r, func(cp *bench.Copy) error { return f(d, cp) })
}

// withDataset runs f on an open data set, which is built first if need be, or on a copy of it
// where the experiment changes it, and adds the manifest and the size.
func (l *Lab) withDataset(ctx context.Context, d bench.Dataset, o *store.Options, r *Record, f func(cp *bench.Copy) error) (err error) {
	var cp *bench.Copy
	err = l.Aside(func() (err error) { cp, err = l.Cache.OpenCopy(ctx, d, o); return err })
	if cp == nil {
		return err
	}
	l.used = l.used || cp.Built
	if err == nil && cp.Built && l.spent(l.Memory) { // what loading has used, the page cache would lack
		if err = cp.Close(); err == nil {
			err = l.renew()
		}
		if err == nil {
			err = l.withDataset(ctx, d, o, r, f)
		}
		return err
	}
	defer func() { err = errors.Join(err, cp.Close()) }()
	if err == nil {
		err = r.Manifest.OfStore(ctx, cp.DB, o)
	}
	if err != nil {
		return err
	}
	r.Manifest.Set("dataset", cp.Ready.Key)
	if stats, err := cp.DB.Engine().Stats(ctx); err == nil && stats.DatabaseBytes != nil {
		r.Put(float64(*stats.DatabaseBytes)/1e6, "data-MB")
	}
	return f(cp)
}

// A warming has the engine answer before a phase begins; nil is none.
type warming func(ctx context.Context) error

// Timed measures f on an open data set with an empty page cache.
func (l *Lab) Timed(ctx context.Context, cp *bench.Copy, r *Record, f func(ctx context.Context) (*pace.Outcome, error)) error {
	return l.phaseAt(ctx, cp, nil, r, f)
}

// phaseAt measures f on an open data set. First the work that earlier phases
// put off is done, and the pages of all files are dropped, whichever process
// has read them. Then the engine is warmed up. The record has the part that is
// resident then, and the disk reads meanwhile.
func (l *Lab) phaseAt(ctx context.Context, cp *bench.Copy, warm warming, r *Record, f func(ctx context.Context) (*pace.Outcome, error)) error {
	reach := l.Engine.Server == "" // of the files
	err := l.flush(ctx, cp)
	if err != nil {
		return err
	}
	err = cp.Evict()
	if err == nil && warm != nil {
		err = warm(ctx)
	}
	if err == nil && reach {
		err = r.residency(cp.Dir, "resident-before")
	}
	if err != nil && !errors.Is(err, probe.ErrUnsupported) {
		return err
	}
	var started time.Time
	var samples *probe.Samples
	var out *pace.Outcome
	err = l.metered(ctx, cp, r, "", func() (err error) {
		started = time.Now()
		sampler := probe.Start(ctx, 0, cp.DB.Engine().Stats)
		out, err = f(ctx)
		samples = sampler.Stop()
		return err
	})
	if samples == nil {
		return err
	}
	var seconds []latency.Second
	if out != nil {
		started, seconds = out.Started, out.Seconds()
	}
	r.samples(samples, started, seconds)
	if err == nil && reach {
		if err = r.residency(cp.Dir, "resident-after"); errors.Is(err, probe.ErrUnsupported) {
			err = nil
		}
	}
	return err
}

// flush does the work that earlier commits put off, because it would count as
// the next part's, where that is metered.
func (l *Lab) flush(ctx context.Context, cp *bench.Copy) error {
	if l.Engine.Server != "" {
		return nil
	}
	return cp.Flush(ctx)
}

// metered runs a phase, or one of its parts, and adds the costs of each
// operation, where the engine's processes can be seen. The caller has called
// flush; the work that the part's own commits put off is done and counted at
// the end, because they caused it.
func (l *Lab) metered(ctx context.Context, cp *bench.Copy, r *Record, part string,
	f func() error) error {
	if l.Engine.Server != "" {
		return f()
	}
	meter, err := probe.NewMeter(ctx, cp.DB.Engine())
	if errors.Is(err, probe.ErrUnsupported) {
		return f()
	}
	if err != nil {
		return err
	}
	defer meter.Close()
	before := r.operations
	err = f()
	if err == nil {
		err = cp.Flush(ctx)
	}
	cost, failed := meter.Cost()
	if failed == nil {
		r.costs(part, r.operations-before, cost)
	}
	return errors.Join(err, failed)
}

// timed is a phase of one workload, whose figures are the record's, and then
// the check of its effects.
func (l *Lab) timed(ctx context.Context, cp *bench.Copy, r *Record, f workload) error {
	var res bench.Result
	err := l.Timed(ctx, cp, r, func(ctx context.Context) (_ *pace.Outcome, err error) {
		res, err = f(ctx)
		r.Result(res)
		return nil, err
	})
	return res.Checked(ctx, err)
}

// TimedOn is a variant of one workload on a data set.
func (l *Lab) TimedOn(name string, c Keys, cost Cost, d bench.Dataset, f func(ctx context.Context, cp *bench.Copy) (bench.Result, error)) Variant {
	return l.prepared(name, c, cost, d, func(cp *bench.Copy, _ *Record) (workload, error) {
		return func(ctx context.Context) (bench.Result, error) { return f(ctx, cp) }, nil
	})
}

// workload is the measured part of a phase.
type workload = func(ctx context.Context) (bench.Result, error)

// prepared is a variant of one workload on a data set. Its checks are made
// first, outside of the budget.
func (l *Lab) prepared(name string, c Keys, cost Cost, d bench.Dataset, prepare func(cp *bench.Copy, r *Record) (workload, error)) Variant {
	return Variant{Name: name, Keys: c, Cost: cost, Run: func(ctx context.Context, r *Record) error {
		return l.withDataset(ctx, d, l.StoreOptions(), r, func(cp *bench.Copy) error {
			var f workload
			if err := l.Aside(func() (err error) { f, err = prepare(cp, r); return err }); err != nil {
				return err
			}
			return l.timed(ctx, cp, r, f)
		})
	}}
}

// eachOn is the Each of a variant on a data set.
func (l *Lab) eachOn(d bench.Dataset,
	each func(ctx context.Context, cp *bench.Copy, f func(*bench.Operations) error) error,
) func(context.Context, func(*bench.Copy, *bench.Operations) error) error {
	return func(ctx context.Context, f func(*bench.Copy, *bench.Operations) error) error {
		return l.withDataset(ctx, d, l.StoreOptions(), new(Record), func(cp *bench.Copy) error {
			return each(ctx, cp, func(ops *bench.Operations) error { return f(cp, ops) })
		})
	}
}

// residency adds the part of the files that is in the page cache.
func (r *Record) residency(dir, unit string) error {
	res, err := probe.Residency(dir)
	if err == nil {
		r.Put(res.Share(), unit)
	}
	return err
}

// WithNew runs f on a new database, as on a copy of an empty data set, on the
// cache's disk or in a directory for others; with an empty store of a layout
// where one is given. Its files, and the files next to its directory, are
// removed afterwards: by a later run if this process is killed.
func (l *Lab) WithNew(ctx context.Context, in, layout string, o *store.Options, r *Record, f func(cp *bench.Copy) error) (err error) {
	cache := l.Cache
	if in != "" {
		if cache, err = bench.OpenCache(in); err != nil {
			return err
		}
	}
	cp, err := cache.NewCopy(ctx, l.Engine, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Close()) }()
	if layout != "" {
		if cp.Entities, err = cp.DB.Entities(ctx, &store.EntityOptions{Layout: layout}); err != nil {
			return fmt.Errorf("layout %s: %w", layout, err)
		}
	}
	if err := r.Manifest.OfStore(ctx, cp.DB, o); err != nil {
		return err
	}
	return f(cp)
}

// besideOf is the path of a file of a run, on the same disk as its database.
func besideOf(cp *bench.Copy, name string) string { return filepath.Join(filepath.Dir(cp.Dir), name) }

// within is the lab with another budget, where the machine has so much memory free; zero is its own.
func (l *Lab) within(budget int64, r *Record) (*Lab, error) {
	if budget == 0 {
		return l, nil
	}
	if proc, err := procfs.NewDefaultFS(); err == nil {
		if m, err := proc.Meminfo(); err == nil && m.MemAvailableBytes != nil && uint64(budget) > *m.MemAvailableBytes {
			return nil, fmt.Errorf("%w: %d MiB of memory are needed, and %d are free", ErrSkip, budget>>20, *m.MemAvailableBytes>>20)
		}
	}
	if l.spent(budget) {
		if err := l.renew(); err != nil {
			return nil, err
		}
	}
	r.Manifest.Set("memory-mb", itoa(int(budget>>20)))
	at := *l
	at.Memory = budget
	return &at, nil
}

// spent reports whether this process holds memory that it does not free, and
// can be replaced.
func (l *Lab) spent(budget int64) bool { return l.used && l.Renew != nil && resident() > budget/4 }

// renew gives way to a new process. Where that cannot be, this one goes on and does not try again.
func (l *Lab) renew() error {
	err := memlimit.Resize(memlimit.None) // a limit is the group's, and outlives the process
	if err == nil {
		err = l.Renew()
	}
	if errors.Is(err, errors.ErrUnsupported) {
		l.Renew, err = nil, nil
	}
	return err
}

// resident is the memory of this process in bytes, 0 where the system does not tell.
func resident() int64 {
	if p, err := procfs.Self(); err == nil {
		if st, err := p.Stat(); err == nil {
			return int64(st.ResidentMemory())
		}
	}
	return 0
}

// sizes adds the size of a database without its log, all told and for each of n rows.
func (r *Record) sizes(ctx context.Context, db *store.DB, n int, each string) error {
	if err := bench.FoldLog(ctx, db); err != nil {
		return err
	}
	stats, err := db.Engine().Stats(ctx)
	if size := stats.DatabaseBytes; size != nil {
		r.Put(float64(*size)/1e6, "data-MB")
		r.Put(float64(*size)/float64(n), each)
	}
	return err
}

// ProductionBlock is the entities of a block that has about the blockRows of the user's documents.
const (
	ProductionBlock = 20
	blockRows       = 500
)

// loaded is the part of the base profile that a store holds before commits begin.
const loaded = 0.6

// Base is the data set of the base profile with a part of a scale loaded, in
// blocks of so many entities; 0 leaves them as they are. With a source it is
// the source's, with its own blocks.
func (l *Lab) Base(layout string, scale float64, perBlock int) (*bench.Dataset, error) {
	source, err := l.history(scale, perBlock)
	if err != nil {
		return nil, err
	}
	return &bench.Dataset{Engine: l.Engine, Layout: layout, Source: source}, nil
}

// history is a data set's blocks and the blocks after it.
func (l *Lab) history(scale float64, perBlock int) (*bench.Source, error) {
	if l.Source != "" {
		return bench.TarSource(l.Cache, l.Source, uint64(scale), l.Seed)
	}
	return bench.MendozaSource(scale/loaded, l.Seed, perBlock, loaded)
}

// own is the prefix of a source's profile name. It keeps a source apart from the base profile.
const own = "own-"

// profile is the name of the base profile or the source in records.
func (l *Lab) profile() string {
	if l.Source != "" {
		return own + strings.TrimSuffix(filepath.Base(l.Source), ".tar")
	}
	return "mendoza"
}

// mixes are the read mixes: those over the base profile ask for its attributes.
func (l *Lab) mixes() []string {
	if l.Source != "" {
		return []string{mix.W}
	}
	return mix.Names
}

// whole makes scales of a source whole multiples of it.
func (o *Options) whole() {
	if o.Source == "" {
		return
	}
	o.Scale = math.Ceil(o.Scale)
	o.Sizes = slices.Clone(o.Sizes)
	for i, size := range o.Sizes {
		o.Sizes[i] = math.Ceil(size)
	}
}

// scaleBytes is about the size of a block tar of the base profile at scale 1.
const scaleBytes = 5 << 30

// worth is about the scale of the base profile that has as much as a scale of the data.
func (o *Options) worth(scale float64) float64 {
	if o.Source == "" {
		return scale
	}
	st, err := os.Stat(o.Source)
	if err != nil {
		return scale // opening it will return the error
	}
	return scale * float64(st.Size()) / scaleBytes
}

// Oracle knows the answers on the loaded part.
func (l *Lab) Oracle(m *bench.Dataset) (*mix.Oracle, error) {
	o := mix.NewOracle()
	return o, l.Aside(func() error { return o.Follow(m.Source.Blocks()) })
}
