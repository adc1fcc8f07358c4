package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/store"
)

// withMendoza runs f on an open copy of a data set of the base profile.
func (l *Lab) withMendoza(ctx context.Context, layout string, scale float64, o *store.Options, r *result.Record, f func(d *mendoza, cp *bench.Copy) error) error {
	d, err := l.mendoza(layout, scale, productionBlock)
	if err != nil {
		return err
	}
	return l.withDataset(ctx, d.Dataset, o, r, func(cp *bench.Copy) error { return f(d, cp) })
}

// withDataset runs f on an open copy of a data set, which is built first if
// need be, and adds the manifest and the size.
func (l *Lab) withDataset(ctx context.Context, d bench.Dataset, o *store.Options, r *result.Record, f func(cp *bench.Copy) error) (err error) {
	var cp *bench.Copy
	err = l.aside(func() (err error) { cp, err = l.Cache.OpenCopy(ctx, d, o); return err })
	if cp == nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Close()) }()
	if err != nil {
		return err
	}
	m, err := bench.NewManifest(ctx, cp, o)
	if err != nil {
		return err
	}
	if r.Manifest, err = l.describe(m); err != nil {
		return err
	}
	if stats, err := cp.DB.Stats(ctx); err == nil && stats.DatabaseBytes != nil {
		put(r, float64(*stats.DatabaseBytes)/1e6, "data-MB")
	}
	return f(cp)
}

// withStore runs f on a new empty store.
func (l *Lab) withStore(ctx context.Context, in, layout string, o *store.Options, r *result.Record, f func(db *database, ents *store.Entities) error) error {
	return l.withDB(ctx, in, layout, o, r, func(db *database) error {
		ents, err := db.Entities(ctx, store.EntityOptions{Layout: layout})
		if err != nil {
			return fmt.Errorf("layout %s: %w", layout, err)
		}
		return f(db, ents)
	})
}

// withDB runs f on a new database.
func (l *Lab) withDB(ctx context.Context, in, layout string, o *store.Options, r *result.Record, f func(db *database) error) (err error) {
	db, err := l.create(ctx, in, layout, o, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return f(db)
}

// database is a new database, whose files go when it is closed.
type database struct {
	*store.DB
	run  *bench.RunDir // a later run removes it if this process is killed
	drop func() error  // removes it from a server
	sync time.Duration // that its disk takes for one
}

// create makes a database on the cache's disk, or in a directory for others, and adds its
// manifest to the record.
func (l *Lab) create(ctx context.Context, in, layout string, o *store.Options, r *result.Record) (_ *database, err error) {
	cache := l.Cache
	if in != "" {
		if cache, err = bench.OpenCache(in); err != nil {
			return nil, err
		}
	}
	d := new(database)
	if d.run, err = cache.NewRun(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	dir := d.run.Data()
	if err = os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if d.DB, d.drop, err = l.Engine.Open(ctx, dir, o); err != nil {
		return nil, err
	}
	m, err := bench.DescribeStore(ctx, d.DB, layout, o, dir)
	if err != nil {
		return nil, err
	}
	d.sync = m.Host.Fsync.Median
	r.Manifest, err = l.describe(m)
	return d, err
}

// Close closes and removes the database.
func (d *database) Close() (err error) {
	if d.DB != nil {
		err = errors.Join(d.DB.Close(), d.drop())
	}
	return errors.Join(err, d.run.Remove())
}

// probed adds what a sync of the database's disk takes.
func (d *database) probed(r *result.Record) {
	put(r, float64(d.sync)/float64(time.Microsecond), "fsync-us")
}

// sizes adds the size of the database without its log, all told and for each of n
// rows.
func (d *database) sizes(ctx context.Context, n int, each string, r *result.Record) error {
	if err := bench.FoldLog(ctx, d.DB); err != nil {
		return err
	}
	stats, err := d.Stats(ctx)
	if size := stats.DatabaseBytes; size != nil {
		put(r, float64(*size)/1e6, "data-MB")
		put(r, float64(*size)/float64(n), each)
	}
	return err
}

// shared is a new database that several variants of an experiment use. The first of
// them that the set does not have yet fills it; filling may be a variant too.
type shared struct {
	lab     *Lab
	layout  string // of the manifest
	options *store.Options
	fill    func(ctx context.Context, db *database, r *result.Record) error

	first    variant // filling
	db       *database
	manifest string
	failed   error // of filling: there is nothing to measure
}

// filling is the variant that fills the empty database.
func (s *shared) filling(name string, config result.Config) variant {
	s.first = variant{name, config, s.open}
	return s.first
}

// variant is one on the database.
func (s *shared) variant(name string, config result.Config, f func(ctx context.Context, r *result.Record) error) variant {
	return variant{name, config, func(ctx context.Context, r *result.Record) error {
		if err := s.ready(ctx); err != nil {
			return err
		}
		r.Started, r.Manifest = time.Now().UTC(), s.manifest
		return f(ctx, r)
	}}
}

// ready fills the database, unless that was done or has failed, of which there is a
// record. What is measured of it anyway is kept.
func (s *shared) ready(ctx context.Context) error {
	if s.failed == nil && s.db == nil {
		if _, err := s.lab.run(ctx, &s.first); err != nil {
			return err
		}
	}
	if s.failed != nil {
		return fmt.Errorf("%w: the database is not as it should be", errSkip)
	}
	if s.db == nil {
		return s.open(ctx, new(result.Record))
	}
	return nil
}

// open fills a new database. One at a time is large enough, so it closes the one
// before it.
func (s *shared) open(ctx context.Context, r *result.Record) (err error) {
	defer func() { s.failed = err }()
	if err := s.lab.close(); err != nil {
		return err
	}
	if s.db, err = s.lab.create(ctx, "", s.layout, s.options, r); err != nil {
		return err
	}
	s.lab.closing = append(s.lab.closing, s.close)
	s.manifest, r.Started = r.Manifest, time.Now().UTC()
	return s.fill(ctx, s.db, r)
}

func (s *shared) close() error {
	db := s.db
	s.db = nil
	return db.Close()
}
