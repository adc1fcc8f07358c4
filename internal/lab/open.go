package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// Trial is one measurement of a variant: the lab, its record, and the store
// while it is open.
type Trial struct {
	*Lab
	*Record
	*bench.Copy
	Data  *bench.Dataset // the data set of the copy, if it is one
	Store *store.Options // options of the stores that are opened

	activity *pace.Activity // of all loops of the trial
}

func (l *Lab) trial(r *Record) *Trial {
	return &Trial{Lab: l, Record: r, Store: l.StoreOptions(), activity: new(pace.Activity)}
}

// layout is the layout in the variant's name.
func (t *Trial) layout() string { return t.Keys.Get("layout") }

// scale is the scale in the variant's name.
func (t *Trial) scale() float64 {
	scale, _ := strconv.ParseFloat(t.Keys.Get("scale"), 64) // Ftoa wrote it
	return scale
}

// base is the data set of the base profile for the variant.
func (t *Trial) base() (*bench.Dataset, error) {
	return t.Base(t.layout(), t.scale(), ProductionBlock)
}

// WithBase runs f on the open data set of the base profile for the variant.
func (t *Trial) WithBase(ctx context.Context, f func() error) error {
	d, err := t.base()
	if err != nil {
		return err
	}
	return t.withDataset(ctx, *d, f)
}

// withDataset runs f on an open data set, and adds manifest and size to the
// record. It builds the data set first if it is missing, and copies it if the
// experiment modifies it.
func (t *Trial) withDataset(ctx context.Context, d bench.Dataset, f func() error) (err error) {
	var cp *bench.Copy
	err = t.Aside(func() (err error) { cp, err = t.Cache.OpenCopy(ctx, d, t.Store); return err })
	if cp == nil {
		return err
	}
	t.used = t.used || cp.Built
	if err == nil && cp.Built && t.holdsTooMuch(t.Memory) { // the memory that loading has used would be missing for the page cache
		if err = cp.Close(); err == nil {
			err = t.renew()
		}
		if err == nil {
			err = t.withDataset(ctx, d, f)
		}
		return err
	}
	t.Data = &d
	return t.with(ctx, cp, err, func() error {
		t.Manifest.Set("dataset", cp.Ready.Key)
		if stats, err := cp.DB.Engine().Stats(ctx); err == nil && stats.DatabaseBytes != nil {
			t.Put(float64(*stats.DatabaseBytes)/1e6, "data-MB")
		}
		return f()
	})
}

// with runs f on an open store and closes it; err is the error of opening it.
func (t *Trial) with(ctx context.Context, cp *bench.Copy, err error, f func() error) error {
	outer := t.Copy
	t.Copy = cp
	if err == nil {
		err = t.Manifest.OfStore(ctx, cp.DB, t.Store)
	}
	if err == nil {
		err = f()
	}
	t.Copy = outer
	return errors.Join(err, cp.Close())
}

// A warming makes the engine answer before a phase begins; nil means none.
type warming func(ctx context.Context) error

// Timed measures f on the open store. The record gets its costs, and the share
// of the files that is in the page cache before and after.
func (t *Trial) Timed(ctx context.Context, warm warming, f func() (*pace.Outcome, error)) error {
	// Complete the work that earlier phases deferred, and drop the files' pages
	// from the cache, whichever process has read them.
	if err := t.flush(ctx); err != nil {
		return err
	}
	if err := t.Evict(ctx); err != nil {
		return err
	}

	// Warm up the engine.
	if warm != nil {
		if err := warm(ctx); err != nil {
			return err
		}
	}
	if err := t.residency("resident-before"); err != nil {
		return err
	}

	// Run f while the machine and the engine are sampled.
	var started time.Time
	var samples *probe.Samples
	var out *pace.Outcome
	err := t.metered(ctx, "", func() (err error) {
		started = time.Now()
		sampler := probe.Start(ctx, 0, t.DB.Engine().Stats)
		watch := probe.Pauses(ctx, t.activity.Counts, sampler.PIDs)
		out, err = f()
		t.pauses(started, watch)
		samples = sampler.Stop()
		return err
	})
	if samples == nil {
		return err // f did not begin
	}

	// Add the samples to the record.
	var seconds []latency.Second
	if out != nil {
		started, seconds = out.Started, out.Seconds()
	}
	t.samples(samples, started, seconds)
	if err == nil {
		err = t.residency("resident-after")
	}
	return err
}

// pauses notes when no operation ended for a while, and what was going on then.
// Where each tenth operation takes as long, the engine is slow and does not pause.
func (t *Trial) pauses(started time.Time, watch *probe.Watch) {
	count, longest := watch.Stop()
	_, operations := t.activity.Counts()
	if count == 0 || int64(count) > operations/10 {
		return
	}
	t.Note(fmt.Sprintf("%d pauses of all operations of at least %v", count, probe.MinPause))
	for _, p := range longest {
		t.Note(fmt.Sprintf("pause of %.2f s at %.1f s: %s", p.Length.Seconds(), p.Begun.Sub(started).Seconds(), p.Seen))
	}
}

// flush completes the work that earlier commits deferred. Otherwise it would be
// charged to the next metered part.
func (t *Trial) flush(ctx context.Context) error {
	if t.Engine.Server != "" {
		return nil
	}
	return t.Flush(ctx)
}

// metered runs a phase, or a part of one, and adds the costs of each operation,
// if the engine's processes are visible. The caller has called flush. Work that
// the part's commits deferred is completed and counted at the end, because they
// caused it.
func (t *Trial) metered(ctx context.Context, part string, f func() error) error {
	if t.Engine.Server != "" {
		return f()
	}
	meter, err := probe.NewMeter(ctx, t.DB.Engine())
	if errors.Is(err, probe.ErrUnsupported) {
		return f()
	}
	if err != nil {
		return err
	}
	defer meter.Close()
	before := t.operations
	err = f()
	if err == nil {
		err = t.Flush(ctx)
	}
	cost, failed := meter.Cost()
	if failed == nil {
		t.costs(part, t.operations-before, cost)
	}
	return errors.Join(err, failed)
}

// Workload is the measured part of a phase.
type Workload = func(ctx context.Context) (bench.Result, error)

// timed runs a phase of one workload, whose figures become the record's, and
// then checks the workload's effects.
func (t *Trial) timed(ctx context.Context, f Workload) error {
	var res bench.Result
	err := t.Timed(ctx, nil, func() (_ *pace.Outcome, err error) {
		res, err = f(ctx)
		t.Result(res)
		return nil, err
	})
	return res.Checked(ctx, err)
}

// On returns the Run of a variant with one workload on a data set. The
// workload's checks are prepared first, outside of the budget.
func On(d bench.Dataset, prepare func(t *Trial) (Workload, error)) Run {
	return func(t *Trial, ctx context.Context) error {
		return t.withDataset(ctx, d, func() error {
			var f Workload
			if err := t.Aside(func() (err error) { f, err = prepare(t); return err }); err != nil {
				return err
			}
			return t.timed(ctx, f)
		})
	}
}

// eachOn returns the Each of a variant on a data set.
func (l *Lab) eachOn(d bench.Dataset, open func(ctx context.Context, cp *bench.Copy) (*bench.Operations, error)) func(context.Context, func(*bench.Copy, *bench.Operations) error) error {
	return func(ctx context.Context, f func(*bench.Copy, *bench.Operations) error) error {
		t := l.trial(new(Record))
		return t.withDataset(ctx, d, func() error {
			ops, err := open(ctx, t.Copy)
			if err != nil {
				return err
			}
			defer ops.Close()
			return f(t.Copy, ops)
		})
	}
}

// residency adds the share of the files that is in the page cache, unless they
// are another server's or the system does not report it.
func (t *Trial) residency(unit string) error {
	if t.Engine.Server != "" {
		return nil
	}
	res, err := probe.Residency(t.Dir)
	switch {
	case err == nil:
		t.Put(res.Share(), unit)
	case errors.Is(err, probe.ErrUnsupported):
		err = nil
	}
	return err
}

// WithNew runs f on a new database, on the cache's disk or in a directory for
// others; if a layout is given, with an empty store. The files are removed
// afterwards, or by a later run if this process is killed.
func (t *Trial) WithNew(ctx context.Context, in, layout string, f func() error) (err error) {
	cache := t.Cache
	if in != "" {
		if cache, err = bench.OpenCache(in); err != nil {
			return err
		}
	}
	cp, err := cache.NewCopy(ctx, t.Engine, t.Store)
	if err != nil {
		return err
	}
	if layout != "" {
		if cp.Entities, err = cp.DB.Entities(ctx, &store.EntityOptions{Layout: layout}); err != nil {
			err = fmt.Errorf("layout %s: %w", layout, err)
		}
	}
	return t.with(ctx, cp, err, f)
}

// WithLayout runs f on a new store with the variant's layout.
func (t *Trial) WithLayout(ctx context.Context, f func() error) error {
	return t.WithNew(ctx, "", t.layout(), f)
}

// file returns the path of another file of the run, on the same disk as its
// database.
func (t *Trial) file(name string) string { return filepath.Join(filepath.Dir(t.Dir), name) }

// setMemory gives the trial another memory budget, if the machine has that much
// memory free; zero means the lab's.
func (t *Trial) setMemory(budget int64) error {
	if budget == 0 {
		return nil
	}
	if proc, err := procfs.NewDefaultFS(); err == nil {
		if m, err := proc.Meminfo(); err == nil && m.MemAvailableBytes != nil && uint64(budget) > *m.MemAvailableBytes {
			return fmt.Errorf("%w: %d MiB of memory are needed, and %d are free", ErrSkip, budget>>20, *m.MemAvailableBytes>>20)
		}
	}
	if t.holdsTooMuch(budget) {
		if err := t.renew(); err != nil {
			return err
		}
	}
	t.Manifest.Set("memory-mb", itoa(int(budget>>20)))
	at := *t.Lab
	at.Memory = budget
	t.Lab, t.Store.Memory = &at, memlimit.Cache(budget)
	return nil
}

// holdsTooMuch reports whether this process can be replaced and still holds
// memory of earlier work, more than a quarter of a budget.
func (l *Lab) holdsTooMuch(budget int64) bool {
	return l.used && l.Renew != nil && resident() > budget/4
}

// renew replaces this process by a new one. If that is not possible, this
// process goes on and does not try again.
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

// resident is the memory of this process in bytes, 0 if the system does not
// report it.
func resident() int64 {
	if p, err := procfs.Self(); err == nil {
		if st, err := p.Stat(); err == nil {
			return int64(st.ResidentMemory())
		}
	}
	return 0
}

// size adds the size of the database without its log, in total and for each of
// n rows.
func (t *Trial) size(ctx context.Context, n int, each string) error {
	if err := bench.FoldLog(ctx, t.DB); err != nil {
		return err
	}
	stats, err := t.DB.Engine().Stats(ctx)
	if size := stats.DatabaseBytes; size != nil {
		t.Put(float64(*size)/1e6, "data-MB")
		t.Put(float64(*size)/float64(n), each)
	}
	return err
}

// ProductionBlock is the number of entities in a block of about blockRows rows,
// the block of the user's documents.
const (
	ProductionBlock = 20
	blockRows       = 500
)

// loaded is the share of the base profile that a store holds before commits
// begin.
const loaded = 0.6

// Base is the data set of the base profile with a share of a scale loaded, in
// blocks of perBlock entities; 0 leaves the blocks unmerged. With a source it
// is the source's data, in its blocks.
func (l *Lab) Base(layout string, scale float64, perBlock int) (*bench.Dataset, error) {
	source, err := l.history(scale, perBlock)
	if err != nil {
		return nil, err
	}
	return &bench.Dataset{Engine: l.Engine, Layout: layout, Source: source}, nil
}

// history returns a data set's blocks and the blocks after it.
func (l *Lab) history(scale float64, perBlock int) (*bench.Source, error) {
	if l.Source != "" {
		return bench.TarSource(l.Cache, l.Source, uint64(scale), l.Seed)
	}
	return bench.MendozaSource(scale/loaded, l.Seed, perBlock, loaded)
}

// own is the prefix of a source's profile name, which distinguishes it from the
// base profile.
const own = "own-"

// profile is the name of the base profile or the source in records.
func (l *Lab) profile() string {
	if l.Source != "" {
		return own + strings.TrimSuffix(filepath.Base(l.Source), ".tar")
	}
	return "mendoza"
}

// mixes are the possible read mixes: A, B and C need the attributes of the base
// profile.
func (l *Lab) mixes() []string {
	if l.Source != "" {
		return []string{mix.W}
	}
	return mix.Names
}

// roundScales rounds the scales of a source to whole multiples of it.
func (o *Options) roundScales() {
	if o.Source == "" {
		return
	}
	o.Scale = math.Ceil(o.Scale)
	o.Sizes = slices.Clone(o.Sizes)
	for i, size := range o.Sizes {
		o.Sizes[i] = math.Ceil(size)
	}
}

// scaleBytes is the approximate size of a block tar of the base profile at
// scale 1.
const scaleBytes = 5 << 30

// worth converts a scale of the data into the scale of the base profile with
// about as much data.
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

// Oracle returns the oracle of the loaded part.
func (l *Lab) Oracle(m *bench.Dataset) (*mix.Oracle, error) {
	o := mix.NewOracle()
	return o, l.Aside(func() error { return o.Follow(m.Source.Blocks()) })
}
