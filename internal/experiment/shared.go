package experiment

import (
	"context"
	"fmt"
	"time"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/store"
)

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
	if s.db, err = s.lab.create(ctx, "", s.options); err != nil {
		return err
	}
	s.lab.closing = append(s.lab.closing, s.close)
	if err := s.lab.describe(ctx, s.db, s.layout, s.options, r); err != nil {
		return err
	}
	s.manifest, r.Started = r.Manifest, time.Now().UTC()
	return s.fill(ctx, s.db, r)
}

func (s *shared) close() error {
	db := s.db
	s.db = nil
	return db.Close()
}
