package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/store/driver"
)

// Repaired is what Repair did.
type Repaired struct {
	Rebuilt []string    `json:"rebuilt"` // what was made anew
	After   CheckReport `json:"after"`   // a check of everything afterwards
}

// Repair makes anew what is derived: the engine's indexes, attribute rows or sets
// of ids, keys and counters of the entities, postings and the list of IDs of the
// events. It never changes what these are made from: versions, payloads, blocks
// and events. When one of those is damaged it fails with ErrCorrupt before it
// changes a table, and says up to which block the store is sound. The entities and
// the events of the database must not be open yet.
//
// Of a pruned store, and of one whose layout keeps no history, damage to versions
// cannot be told from what is right; such a store is repaired, and the check
// afterwards says whether it agrees with itself.
func (db *DB) Repair(ctx context.Context, opts CheckOptions) (r Repaired, err error) {
	if db.ro {
		return r, fmt.Errorf("repair: %w", ErrReadOnly)
	}
	db.mu.Lock()
	used := db.entities != nil || db.events != nil
	db.mu.Unlock()
	if used {
		return r, fmt.Errorf("repair: %w: the entities or events are open; repair a database before they are", ErrInvalid)
	}
	if err := db.repair(ctx, opts, &r); err != nil {
		return r, fmt.Errorf("repair: %w", err)
	}
	r.After, err = db.Check(ctx, opts)
	return r, err
}

func (db *DB) repair(ctx context.Context, opts CheckOptions, r *Repaired) error {
	// First: the sources are read through indexes.
	switch err := db.engine.Reindex(ctx); {
	case err == nil:
		r.Rebuilt = append(r.Rebuilt, "indexes")
	case !errors.Is(err, ErrUnsupported):
		return fmt.Errorf("make indexes anew: %w", err)
	}
	recorded, err := db.recorded(ctx)
	if err != nil {
		return err
	}
	var ents *Entities
	if recorded[metaLayout] != "" {
		if ents, err = db.soundEntities(ctx, opts); err != nil {
			return err
		}
	}
	var evs *Events
	if recorded[metaEventLayout] != "" {
		if evs, err = db.soundEvents(ctx, opts); err != nil {
			return err
		}
	}
	return db.rebuild(ctx, ents, evs, r)
}

// soundEntities opens the entities unless their history is damaged.
func (db *DB) soundEntities(ctx context.Context, opts CheckOptions) (*Entities, error) {
	ents, err := db.openedEntities(ctx)
	if err != nil {
		return nil, err
	}
	if err := db.missing(ctx, ents.layout.Tables()); err != nil {
		return nil, err
	}
	c := checker{db: db, opts: opts}
	v, err := ents.verifyDigest(ctx, c.progress(PartHistory, "changes", 0))
	if OutcomeOf(err) == Damaged {
		err = fmt.Errorf("%w: the versions themselves are damaged and cannot be made anew; the store is sound up to %s: "+
			"restore a backup, or import those blocks again: %w", ErrCorrupt, v.Sound, err)
	}
	return ents, err
}

// soundEvents opens the events unless one of them is damaged.
func (db *DB) soundEvents(ctx context.Context, opts CheckOptions) (*Events, error) {
	evs, err := db.openedEvents(ctx)
	if err != nil {
		return nil, err
	}
	if err := db.missing(ctx, eventlog.Tables); err != nil {
		return nil, err
	}
	c := checker{db: db, opts: opts}
	var problems []error
	err = db.readBulk(ctx, func(_ context.Context, q driver.Querier) error {
		done, err := evs.log.Check(ctx, q, func(problem string) bool {
			problems = append(problems, errors.New(problem))
			return true
		}, c.progress(PartEvents, "events", 0))
		if done.Source {
			return fmt.Errorf("%w: the events themselves are damaged and cannot be made anew; they are sound up to event %d: restore a backup: %w",
				ErrCorrupt, done.Head, errors.Join(append(problems, err)...))
		}
		if OutcomeOf(err) == NotChecked {
			return err
		}
		return nil
	})
	return evs, err
}

// rebuild does it in one transaction.
func (db *DB) rebuild(ctx context.Context, ents *Entities, evs *Events, r *Repaired) error {
	tx, err := db.engine.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := driver.LiftTimeouts(ctx, tx); err != nil {
		return err
	}
	if ents != nil {
		err := db.readBulk(ctx, func(_ context.Context, q driver.Querier) error {
			count := &rowCount{}
			return ents.layout.Rebuild(context.WithoutCancel(ctx), tx, count.of(ctx, q))
		})
		if err != nil {
			return fmt.Errorf("entities: %w", err)
		}
		r.Rebuilt = append(r.Rebuilt, "entities: what finds versions")
	}
	if evs != nil {
		if err := evs.log.Rebuild(context.WithoutCancel(ctx), tx); err != nil {
			return fmt.Errorf("events: %w", err)
		}
		r.Rebuilt = append(r.Rebuilt, "events: postings and IDs")
	}
	return tx.Commit(ctx)
}
