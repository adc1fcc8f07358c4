// Package store is what a node imports: a store of entities in blocks over any
// of five engines.
//
//	db, err := store.Open(ctx, "sqlite:///var/lib/node/varve.db", nil)
//	ents, err := db.Entities(ctx, store.EntityOptions{})
//	_, err = ents.Apply(ctx, block)          // one block, one transaction
//	snap, err := ents.At(ctx, store.Head)    // or a past block
//	e, err := snap.Get(ctx, key)
//
// An engine is linked by importing its package for its side effect, such as
// github.com/varvedb/varve/store/sqlite. The URL's scheme chooses among the
// linked ones.
package store

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
)

// Options are the settings common to all engines; see [driver.Options]. A field
// that is not zero wins over the URL.
type Options = driver.Options

// DB is an open database. Its methods may be called from several goroutines.
type DB struct {
	engine  driver.Engine
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
// lock_timeout, max_reader_age, read_only; the rest is the engine's. Layout names one of
// Layouts, which DB.Entities takes.
//
// An unknown parameter or layout is ErrInvalid, before anything is made. For reading
// only nothing is made either: Open fails with ErrNotExist when there is no database.
func Open(ctx context.Context, rawURL string, opts *Options) (*DB, error) {
	target, err := parseURL(rawURL, opts)
	if err != nil {
		return nil, err
	}
	engine, err := target.driver.Open(ctx, target.url, target.options)
	if err != nil {
		if errors.Is(err, ErrNotExist) {
			err = fmt.Errorf("%w; check the name in the URL", err)
		}
		return nil, fmt.Errorf("open %s: %w", driver.Redact(rawURL), err)
	}
	db := &DB{engine: engine, layout: target.layout, backlog: target.backlog, ro: target.options.ReadOnly}
	if db.meta.Meta, err = schemas.MetaTables(string(engine.Info().Dialect)); err != nil {
		return nil, fmt.Errorf("open %s: %w", driver.Redact(rawURL), errors.Join(err, engine.Close()))
	}
	return db, nil
}

// Engine returns the engine below, for its settings (Settings), sizes and counters (Stats), and for tools.
func (db *DB) Engine() driver.Engine { return db.engine }

// Checkpoint moves the write-ahead log into the database, and with truncate
// empties it. It fails with ErrUnsupported on engines without such a log.
func (db *DB) Checkpoint(ctx context.Context, truncate bool) (driver.CheckpointResult, error) {
	return db.engine.Checkpoint(ctx, truncate)
}

// Ended is closed when the database has ended, by Close or by itself, as an embedded
// server does that is killed: then Close says why. It is nil on engines that have no
// process of their own.
func (db *DB) Ended() <-chan struct{} { return db.engine.Ended() }

// Ready returns nil while commits are possible as far as the engine knows without one; see
// driver.Upkeep. It is cheap.
func (db *DB) Ready(ctx context.Context) error {
	if err := db.engine.Probe(ctx); err != nil {
		return fmt.Errorf("%s database: %w", db.engine.Info().Name, err)
	}
	return nil
}

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

// tune gives tables the settings of their upkeep, on engines that have such.
func (db *DB) tune(ctx context.Context, tables []*driver.Table) error {
	if db.ro {
		return nil
	}
	return db.engine.Tune(ctx, tables)
}

// write runs f in a write transaction. Engine calls inside are not cancelled
// half-way: ctx is checked before they begin and before the commit.
func (db *DB) write(ctx context.Context, f func(ctx context.Context, tx driver.Tx) error) error {
	tx, err := db.engine.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() // for a panic in f: Close would wait for the transaction
	if err := f(context.WithoutCancel(ctx), tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit(ctx)
}

// writeBulk is write for work that takes as long as there is data.
func (db *DB) writeBulk(ctx context.Context, f func(ctx context.Context, tx driver.Tx) error) error {
	return db.write(ctx, func(ctx context.Context, tx driver.Tx) error {
		if err := driver.LiftTimeouts(ctx, tx); err != nil {
			return err
		}
		return f(ctx, tx)
	})
}

// readBulk is read for such work.
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
