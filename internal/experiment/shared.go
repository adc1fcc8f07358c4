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

// shared is a new database that several variants of an experiment use. The first of
// them that the set does not have yet fills it; filling may be a variant too.
type shared struct {
	lab     *Lab
	layout  string // of the manifest
	options *store.Options
	fill    func(ctx context.Context, db *store.DB, r *result.Record) error

	first    *variant // filling, if that is measured
	db       *store.DB
	run      *bench.RunDir
	manifest string
	failed   error // of filling: there is nothing to measure
}

// filling adds the filling of the empty database as a variant.
func (s *shared) filling(_ context.Context, name string, config result.Config) error {
	s.first = &variant{name, config, func(ctx context.Context, r *result.Record) error {
		if s.failed = s.close(); s.failed == nil {
			s.failed = s.open(ctx, r)
		}
		return s.failed
	}}
	s.lab.variants = append(s.lab.variants, *s.first)
	s.lab.atEnd(s.close)
	return nil
}

// measure adds a variant on the database.
func (s *shared) measure(ctx context.Context, name string, config result.Config, f func(ctx context.Context, r *result.Record) error) error {
	return s.lab.measure(ctx, name, config, func(ctx context.Context, r *result.Record) error {
		if err := s.ready(ctx); err != nil {
			return err
		}
		r.Started, r.Manifest = time.Now().UTC(), s.manifest
		return f(ctx, r)
	})
}

// ready fills the database, unless that was done or has failed, of which there is a
// record. What is measured of it anyway is kept.
func (s *shared) ready(ctx context.Context) error {
	if s.failed != nil {
		return fmt.Errorf("%w: the database is not as it should be", errSkip)
	}
	if s.db != nil {
		return nil
	}
	if _, err := s.lab.run(ctx, s.first); err != nil {
		return err
	}
	if s.failed != nil || s.db != nil {
		return s.ready(ctx)
	}
	s.failed = s.open(ctx, new(result.Record))
	return s.failed
}

func (s *shared) open(ctx context.Context, r *result.Record) (err error) {
	if other := s.lab.shared; other != nil && other != s { // one at a time is large enough
		if err := other.close(); err != nil {
			return err
		}
	}
	s.lab.shared = s
	if s.run, err = s.lab.Cache.NewRun(ctx); err != nil {
		return err
	}
	dir := s.run.Data()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if s.db, err = store.Open(ctx, s.lab.Engine.URL(dir), s.options); err != nil {
		return err
	}
	if err := s.lab.describe(ctx, s.db, s.layout, s.options, dir, r); err != nil {
		return err
	}
	s.manifest, r.Started = r.Manifest, time.Now().UTC()
	return s.fill(ctx, s.db, r)
}

// close closes and removes the database, if there is one.
func (s *shared) close() (err error) {
	if s.db != nil {
		err = s.db.Close()
	}
	if s.run != nil {
		err = errors.Join(err, s.run.Remove())
	}
	s.db, s.run = nil, nil
	return err
}

// sizes adds the size of the database without its log, all told and for each of n
// rows.
func sizes(ctx context.Context, db *store.DB, n int, each string, r *result.Record) error {
	if err := bench.FoldLog(ctx, db); err != nil {
		return err
	}
	stats, err := db.Stats(ctx)
	if size := stats.DatabaseBytes; size != nil {
		r.Metrics = append(r.Metrics,
			result.Metric{Value: float64(*size) / 1e6, Unit: "data-MB"}, result.Metric{Value: float64(*size) / float64(n), Unit: each})
	}
	return err
}
