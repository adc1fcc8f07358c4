package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/procfs"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/internal/memlimit"
	"github.com/varvedb/varve/store"
)

// withBase runs f on an open data set of the base profile.
func (l *Lab) withBase(ctx context.Context, layout string, scale float64, o *store.Options, r *Record, f func(d *baseData, cp *bench.Copy) error) error {
	d, err := l.base(layout, scale, productionBlock)
	if err != nil {
		return err
	}
	return l.withDataset(ctx, d.Dataset, o, r, func(cp *bench.Copy) error { return f(d, cp) })
}

// withDataset runs f on an open data set, which is built first if need be, or on a copy of it
// where the experiment changes it, and adds the manifest and the size.
func (l *Lab) withDataset(ctx context.Context, d bench.Dataset, o *store.Options, r *Record, f func(cp *bench.Copy) error) (err error) {
	var cp *bench.Copy
	err = l.aside(func() (err error) { cp, err = l.Cache.OpenCopy(ctx, d, o); return err })
	if cp == nil {
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
	if stats, err := cp.DB.Stats(ctx); err == nil && stats.DatabaseBytes != nil {
		r.put(float64(*stats.DatabaseBytes)/1e6, "data-MB")
	}
	return f(cp)
}

// temperature is how much of its data an engine finds in memory when a phase begins.
type temperature struct {
	fill bool                            // what the budget holds of the files is in the page cache
	warm func(ctx context.Context) error // the engine has answered; nil for none
}

// phase measures f on an open data set. First the pages of all its files are dropped, whoever
// has read them, and read again, as many as the budget holds; then the engine is warmed up. How
// much is resident then, and what is read from the disk meanwhile, is in the record.
func (l *Lab) phase(ctx context.Context, cp *bench.Copy, t temperature, r *Record, f func(ctx context.Context) (*pace.Outcome, error)) error {
	reach := l.Engine.Server == "" // of the files
	err := cp.Evict()
	if err == nil && t.fill && reach {
		err = probe.Fill(cp.Dir, l.Memory)
	}
	if err == nil && t.warm != nil {
		err = t.warm(ctx)
	}
	if err == nil && reach {
		err = r.residency(cp.Dir, "resident-before")
	}
	if err != nil && !errors.Is(err, probe.ErrUnsupported) {
		return err
	}
	cfg := probe.Config{Stats: cp.DB.Stats}
	if reach {
		cfg.Dir = cp.Dir
	}
	started := time.Now()
	sampler := probe.Start(ctx, cfg)
	out, err := f(ctx)
	samples := sampler.Stop()
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

// timed is a phase of one workload, whose figures are the record's.
func (l *Lab) timed(ctx context.Context, cp *bench.Copy, r *Record, f func(ctx context.Context) (bench.Result, error)) error {
	return l.phase(ctx, cp, temperature{fill: true}, r, func(ctx context.Context) (*pace.Outcome, error) {
		res, err := f(ctx)
		r.result(res)
		return nil, err
	})
}

// residency adds the part of the files that is in the page cache.
func (r *Record) residency(dir, unit string) error {
	res, err := probe.Residency(dir)
	if err == nil {
		r.put(res.Share(), unit)
	}
	return err
}

// withStore runs f on a new empty store.
func (l *Lab) withStore(ctx context.Context, in, layout string, o *store.Options, r *Record, f func(db *store.DB, ents *store.Entities) error) error {
	return l.withDB(ctx, in, o, r, func(db *store.DB) error {
		ents, err := db.Entities(ctx, store.EntityOptions{Layout: layout})
		if err != nil {
			return fmt.Errorf("layout %s: %w", layout, err)
		}
		return f(db, ents)
	})
}

// withDB runs f on a new database.
func (l *Lab) withDB(ctx context.Context, in string, o *store.Options, r *Record, f func(db *store.DB) error) error {
	return l.withNew(ctx, in, o, r, func(cp *bench.Copy) error { return f(cp.DB) })
}

// withNew runs f on a new database, as on a copy of an empty data set, on the cache's disk or in
// a directory for others. Its files, and what lies beside its directory, go afterwards: a later
// run removes them if this process is killed.
func (l *Lab) withNew(ctx context.Context, in string, o *store.Options, r *Record, f func(cp *bench.Copy) error) (err error) {
	cache := l.Cache
	if in != "" {
		if cache, err = bench.OpenCache(in); err != nil {
			return err
		}
	}
	run, err := cache.NewRun()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.Remove()) }()
	if err := os.MkdirAll(run.Data(), 0o755); err != nil {
		return err
	}
	db, drop, err := l.Engine.Open(ctx, run.Data(), o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(), drop()) }()
	if err := r.Manifest.OfStore(ctx, db, o); err != nil {
		return err
	}
	return f(&bench.Copy{DB: db, Dir: run.Data()})
}

// besideOf is the path of a file of a run, on the same disk as its database.
func besideOf(cp *bench.Copy, name string) string { return filepath.Join(filepath.Dir(cp.Dir), name) }

// within is the lab with another budget, where the machine has so much memory free; zero is its
// own.
func (l *Lab) within(budget int64, r *Record) (*Lab, error) {
	if budget == 0 {
		return l, nil
	}
	if proc, err := procfs.NewDefaultFS(); err == nil {
		if m, err := proc.Meminfo(); err == nil && m.MemAvailableBytes != nil && uint64(budget) > *m.MemAvailableBytes {
			return nil, fmt.Errorf("%w: %d MiB of memory are wanted, and the machine has %d free", ErrSkip, budget>>20, *m.MemAvailableBytes>>20)
		}
	}
	if l.used && l.Renew != nil && resident() > budget/4 {
		err := memlimit.Resize(memlimit.None) // a limit is the group's, and outlives the process
		if err == nil {
			err = l.Renew()
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return nil, err
		}
	}
	r.Manifest.Set("memory-mb", itoa(int(budget>>20)))
	at := *l
	at.Memory = budget
	return &at, nil
}

// resident is the memory of this process in bytes, 0 where the system does not tell.
func resident() int64 {
	p, err := procfs.Self()
	if err != nil {
		return 0
	}
	st, err := p.Stat()
	if err != nil {
		return 0
	}
	return int64(st.ResidentMemory())
}

// sizes adds the size of a database without its log, all told and for each of n rows.
func (r *Record) sizes(ctx context.Context, db *store.DB, n int, each string) error {
	if err := bench.FoldLog(ctx, db); err != nil {
		return err
	}
	stats, err := db.Stats(ctx)
	if size := stats.DatabaseBytes; size != nil {
		r.put(float64(*size)/1e6, "data-MB")
		r.put(float64(*size)/float64(n), each)
	}
	return err
}
