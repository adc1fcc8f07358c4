// Package store has a versioned entity store for blockchain data and an event
// store, over any of five engines. A node imports it.
//
//	db, err := store.Open(ctx, "sqlite:///var/lib/node/varve.db", nil)
//	ents, err := db.Entities(ctx, nil)
//	_, err = ents.Apply(ctx, block)          // one block, one transaction
//	snap, err := ents.At(ctx, store.Head)    // or a past block
//	e, err := snap.Get(ctx, key)
//
// The calls that a node makes, in their order, are in docs/api.md.
//
// An engine is linked by importing its package for its side effect, such as
// github.com/varvedb/varve/store/sqlite. The URL's scheme chooses among the
// linked ones.
//
// Optional arguments come last and may be nil: a pointer to options, whose zero
// value is the default, or a func that is called with the progress.
package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/varvedb/varve/internal/storeurl"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
)

// Options are the settings that all engines have. A field that is not zero wins
// over the parameter of the URL. The fields and their defaults: Durability
// (durable), Checkpoint (background), WALFrames (the pages of 16 MiB), Memory
// (256 MiB), Readers (4), Concurrency (GOMAXPROCS; of servers, Readers),
// LockTimeout (5 s), MaxReaderAge (1 min), ReadOnly, and Params, the settings
// of one engine. [driver.Options] describes each.
type Options = driver.Options

// DB is an open database. Its methods may be called from several goroutines.
type DB struct {
	engine  driver.Engine
	name    string // its URL, for errors
	meta    meta
	layout  string // of the URL, or ""
	backlog int    // of the URL, or 0
	ro      bool

	mu       sync.Mutex
	entities *Entities
	events   *Events
}

// Open opens the database that a URL names and makes it when it does not
// exist. The scheme names the engine:
//
//	sqlite:///abs/path.db   sqlite:rel.db
//	libsql:///abs/path.db   libsql:https://host
//	duckdb:///abs/path.duckdb
//	postgres:///abs/dir     an embedded server that Varve starts and stops
//	postgres://host/db      a running server
//
// Parameters: durability (durable, relaxed, unsafe), layout, backlog
// (EntityOptions.Backlog), memory (bytes, or with a suffix such as 256MiB),
// checkpoint (background, inline, manual), checkpoint_frames, readers, concurrency,
// lock_timeout, max_reader_age, read_only; the rest is the engine's. Layout is that of
// EntityOptions.
//
// An unknown parameter or layout is ErrInvalid, before a file is made, and an
// engine that is not linked is ErrUnsupported. With ReadOnly no file is made
// either: Open fails with ErrNotExist when there is no database. It fails with
// ErrLocked when another process has a database that takes only one, and with
// ErrCorrupt when the file is not the engine's.
func Open(ctx context.Context, rawURL string, opts *Options) (*DB, error) {
	target, err := storeurl.Parse(rawURL, opts)
	if err != nil {
		return nil, err
	}
	name := driver.Redact(rawURL)
	engine, err := target.Driver.Open(ctx, target.URL, target.Options)
	if err != nil {
		if errors.Is(err, ErrNotExist) {
			err = fmt.Errorf("%w; check the name in the URL", err)
		}
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	db := &DB{engine: engine, name: name, layout: target.Layout, backlog: target.Backlog, ro: target.Options.ReadOnly}
	if db.meta.ownTables, err = newOwnTables(schemas.MetaTables(string(engine.Info().Dialect))); err != nil {
		return nil, fmt.Errorf("open %s: %w", name, errors.Join(err, engine.Close()))
	}
	return db, nil
}

// Engine returns the underlying engine, for its settings (Settings), sizes and
// counters (Stats), and maintenance, such as driver.Checkpoint and
// driver.TakeLease.
func (db *DB) Engine() driver.Engine { return db.engine }

// ReadOnly reports whether the database was opened for reading only.
func (db *DB) ReadOnly() bool { return db.ro }

// Close closes the database. Open snapshots end with ErrClosed.
func (db *DB) Close() error {
	db.mu.Lock()
	if db.entities != nil {
		db.entities.maintainer.close()
	}
	events := db.events
	db.mu.Unlock()
	if events != nil {
		events.listener.close()
		defer events.news.publish() // to those who wait, that it is closed
	}
	if err := db.engine.Close(); err != nil {
		return fmt.Errorf("close %s database: %w", db.engine.Info().Name, err)
	}
	return nil
}

// wrap adds the name of the failed step to an error, if there is one.
func wrap(err *error, did string) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", did, *err)
	}
}

// stream makes a sequence of a function that yields values, until yield returns
// false, and returns the error that ended it.
func stream[T any](did string, run func(yield func(T) bool) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err := run(func(v T) bool { return yield(v, nil) }); err != nil {
			var none T
			yield(none, fmt.Errorf("%s: %w", did, err))
		}
	}
}

// tune sets the maintenance settings of tables, on engines that have any.
func (db *DB) tune(ctx context.Context, tables []*driver.Table) error {
	tuner, ok := db.engine.(driver.Tuner)
	if !ok || db.ro {
		return nil
	}
	return tuner.Tune(ctx, tables)
}

// write runs f in a write transaction. Engine calls inside are not cancelled
// half-way: ctx is checked before they begin and before the commit.
func (db *DB) write(ctx context.Context, f func(ctx context.Context, tx driver.Tx) error) error {
	return db.writeExpecting(ctx, func() []driver.Prefetch { return nil }, f)
}

// writeExpecting is write, with the queries that f is expected to run.
func (db *DB) writeExpecting(ctx context.Context, expected func() []driver.Prefetch, f func(ctx context.Context, tx driver.Tx) error) error {
	tx, err := driver.Begin(ctx, db.engine, expected)
	if err != nil {
		return err
	}
	defer tx.Rollback() // for a panic in f: Close would wait for the transaction
	if err := f(context.WithoutCancel(ctx), tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit(ctx)
}

// writeBulk is write without server timeouts, for work that grows with the
// data.
func (db *DB) writeBulk(ctx context.Context, f func(ctx context.Context, tx driver.Tx) error) error {
	return db.write(ctx, func(ctx context.Context, tx driver.Tx) error {
		if err := driver.LiftTimeouts(ctx, tx); err != nil {
			return err
		}
		return f(ctx, tx)
	})
}

// readBulk is read without server timeouts, for work that grows with the data.
func (db *DB) readBulk(ctx context.Context, f func(ctx context.Context, q driver.Querier) error) error {
	return db.read(ctx, func(ctx context.Context, q driver.Querier) error {
		if err := driver.LiftTimeouts(ctx, q); err != nil {
			return err
		}
		return f(ctx, q)
	})
}

// read runs f in a read view.
func (db *DB) read(ctx context.Context, f func(ctx context.Context, q driver.Querier) error) error {
	r, err := db.engine.View(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(context.WithoutCancel(ctx), r), r.Close())
}

// inView returns the result of f in a read view.
func inView[T any](ctx context.Context, db *DB, f func(ctx context.Context, q driver.Querier) (T, error)) (v T, err error) {
	err = db.read(ctx, func(ctx context.Context, q driver.Querier) error {
		v, err = f(ctx, q)
		return err
	})
	return v, err
}
