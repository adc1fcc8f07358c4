package store

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/varvedb/varve/store/driver"
)

// Repair rebuilds derived data: the engine's indexes, attribute rows or sets of
// ids, keys and counters of the entities, postings and the list of IDs of the
// events. It never changes the source data: versions, payloads, blocks and
// events. When source data are damaged it fails with ErrCorrupt before it
// changes a table, and names the last block up to which the store is sound. The
// entities and the events of the database must not be open yet (ErrInvalid).
// The returned report is of a complete check afterwards.
//
// In a pruned store, and in a layout without history, damaged versions cannot
// be recognised. Repair then rebuilds from them, and the check afterwards
// reports whether the store is consistent.
func (db *DB) Repair(ctx context.Context, opts *CheckOptions) (CheckReport, error) {
	rebuilt, err := db.repair(ctx, opts)
	if err != nil {
		return CheckReport{Rebuilt: rebuilt}, fmt.Errorf("repair: %w", err)
	}
	r, err := db.Check(ctx, opts)
	r.Rebuilt = rebuilt
	return r, err
}

func (db *DB) repair(ctx context.Context, opts *CheckOptions) (rebuilt []string, err error) {
	if db.ro {
		return nil, ErrReadOnly
	}
	db.mu.Lock()
	used := db.entities != nil || db.events != nil
	db.mu.Unlock()
	if used {
		return nil, fmt.Errorf("%w: the entities or events are open; repair a database before they are", ErrInvalid)
	}
	if err := db.checkComplete(ctx); err != nil { // before anything is written
		return nil, err
	}
	// Rebuild indexes first, because the source data are read through them.
	if indexes, ok := db.engine.(driver.Reindexer); ok {
		if err := indexes.Reindex(ctx); err != nil {
			return nil, fmt.Errorf("rebuild the indexes: %w", err)
		}
		rebuilt = append(rebuilt, "indexes")
	}
	recorded, err := db.recorded(ctx)
	if err != nil {
		return rebuilt, err
	}
	c := db.newChecker(opts)
	c.opts.Findings = math.MaxInt
	var ents *Entities
	if recorded[metaLayout] != "" {
		if ents, err = c.soundEntities(ctx); err != nil {
			return rebuilt, err
		}
	}
	var evs *Events
	if recorded[metaEventLayout] != "" {
		if evs, err = c.soundEvents(ctx); err != nil {
			return rebuilt, err
		}
	}
	err = db.writeBulk(ctx, func(inner context.Context, tx driver.Tx) error {
		if ents != nil {
			err := db.readBulk(ctx, func(_ context.Context, q driver.Querier) error {
				return ents.layout.Rebuild(inner, tx, countedQuerier{q, everyRow(ctx, nil)})
			})
			if err != nil {
				return fmt.Errorf("entities: %w", err)
			}
			rebuilt = append(rebuilt, "entities: what finds versions")
		}
		if evs != nil {
			if err := evs.log.Rebuild(inner, tx); err != nil {
				return fmt.Errorf("events: %w", err)
			}
			rebuilt = append(rebuilt, "events: postings and IDs")
			again, err := evs.rebuildCheckpoints(inner, tx)
			if err != nil {
				return fmt.Errorf("events: %w", err)
			}
			if again {
				rebuilt = append(rebuilt, "events: the table of checkpoints, which had no columns")
			}
		}
		return nil
	})
	return rebuilt, err
}

// soundEntities opens the entities unless their history is damaged.
func (c *checker) soundEntities(ctx context.Context) (*Entities, error) {
	ents, err := c.db.openedEntities(ctx)
	if err != nil {
		return nil, err
	}
	views, err := ents.views(ctx, 3)
	if err != nil {
		return nil, err
	}
	err = c.digest(ctx, ents, views)
	if err = errors.Join(err, closeViews(views)); outcomeOf(err) == Damaged {
		err = fmt.Errorf("%w: the versions themselves are damaged and cannot be made anew; the store is sound up to %s: "+
			"restore a backup, or import those blocks again: %w", ErrCorrupt, c.report.Sound, err)
	}
	return ents, err
}

// soundEvents opens the events unless one of them is damaged.
func (c *checker) soundEvents(ctx context.Context) (*Events, error) {
	evs, err := c.db.openedEvents(ctx)
	if err != nil {
		return nil, err
	}
	done, _, problems, err := c.eventLog(ctx, evs)
	switch {
	case done.Source:
		for _, p := range problems {
			err = errors.Join(err, errors.New(p))
		}
		return nil, fmt.Errorf("%w: the events themselves are damaged and cannot be made anew; they are sound up to event %d: restore a backup: %w",
			ErrCorrupt, done.Head, err)
	case outcomeOf(err) == NotChecked:
		return nil, err
	}
	return evs, nil
}
