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
func (l *Lab) withMendoza(ctx context.Context, layout string, m mendozaOptions, o *store.Options, r *result.Record, f func(d *mendoza, cp *bench.Copy) error) error {
	d, err := l.mendoza(layout, m)
	if err != nil {
		return err
	}
	return l.withDataset(ctx, d.Dataset, o, r, func(cp *bench.Copy) error { return f(d, cp) })
}

// withDataset runs f on an open copy of a data set, which is built first if
// need be, and adds the manifest and the size.
func (l *Lab) withDataset(ctx context.Context, d bench.Dataset, o *store.Options, r *result.Record, f func(cp *bench.Copy) error) (err error) {
	cp, err := l.Cache.OpenCopy(ctx, d, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Close()) }()
	m, err := bench.NewManifest(ctx, cp, o)
	if err != nil {
		return err
	}
	if r.Manifest, err = l.Set.Manifest(m); err != nil {
		return err
	}
	if stats, err := cp.DB.Stats(ctx); err == nil && stats.DatabaseBytes != nil {
		put(r, float64(*stats.DatabaseBytes)/1e6, "data-MB")
	}
	return f(cp)
}

// withStore runs f on a new empty store and adds the manifest.
func (l *Lab) withStore(ctx context.Context, parent, layout string, o *store.Options, r *result.Record, f func(db *database, ents *store.Entities) error) error {
	return l.withDB(ctx, parent, o, func(db *database) error {
		ents, err := db.Entities(ctx, store.EntityOptions{Layout: layout})
		if err != nil {
			return fmt.Errorf("layout %s: %w", layout, err)
		}
		if err := l.describe(ctx, db, ents.Layout(), o, r); err != nil {
			return err
		}
		return f(db, ents)
	})
}

// withDB runs f on a new database.
func (l *Lab) withDB(ctx context.Context, parent string, o *store.Options, f func(db *database) error) (err error) {
	db, err := l.create(ctx, parent, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return f(db)
}

// database is a new database, whose files go when it is closed.
type database struct {
	*store.DB
	dir    string
	remove func() error
}

// create makes a database in a directory in parent, or on the cache's disk.
func (l *Lab) create(ctx context.Context, parent string, o *store.Options) (*database, error) {
	d := &database{remove: func() error { return nil }}
	err := d.place(l.Cache, parent)
	if err == nil {
		d.DB, err = store.Open(ctx, l.Engine.URL(d.dir), o)
	}
	if err != nil {
		return nil, errors.Join(err, d.remove())
	}
	return d, nil
}

func (d *database) place(cache *bench.Cache, parent string) (err error) {
	if parent != "" {
		d.dir, err = os.MkdirTemp(parent, "varve-run-")
		d.remove = func() error { return os.RemoveAll(d.dir) }
		return err
	}
	run, err := cache.NewRun() // a later run removes it if this process is killed
	if err != nil {
		return err
	}
	d.dir, d.remove = run.Data(), run.Remove
	return os.MkdirAll(d.dir, 0o755)
}

// Close closes and removes the database.
func (d *database) Close() error { return errors.Join(d.DB.Close(), d.remove()) }

// describe stores the manifest of an open store and names it in the record.
func (l *Lab) describe(ctx context.Context, db *database, layout string, o *store.Options, r *result.Record) error {
	m, err := bench.DescribeStore(ctx, db.DB, layout, o, db.dir)
	if err != nil {
		return err
	}
	r.Manifest, err = l.Set.Manifest(m)
	return err
}

// probe adds what a sync of the database's disk takes.
func (d *database) probe(r *result.Record) error {
	fsync, err := bench.ProbeFsync(d.dir, 32)
	put(r, float64(fsync.Median)/float64(time.Microsecond), "fsync-us")
	return err
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
