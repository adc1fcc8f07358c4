package store

import (
	"context"
	"fmt"

	"github.com/varvedb/varve/store/driver"
)

// Rewind returns the store to a block exactly, as if later blocks had never
// come; afterwards the head is the last block at or below it. It fails with
// ErrUnsupported when the layout keeps no history, and with ErrBlockRange when
// the block is above the head, or when the block or the resulting head was
// pruned.
func (e *Entities) Rewind(ctx context.Context, to uint64) (err error) {
	defer wrap(&err, "rewind")
	if !e.layout.Temporal() {
		return fmt.Errorf("layout %s keeps no history: %w", e.layout.Name(), ErrUnsupported)
	}
	return e.db.writeBulk(ctx, func(ctx context.Context, tx driver.Tx) error {
		head, horizon, err := e.db.meta.headAndHorizon(ctx, tx)
		if err != nil {
			return err
		}
		next, err := e.db.meta.headAt(ctx, tx, to)
		if err != nil {
			return err
		}
		switch {
		case to > head.Number:
			return fmt.Errorf("block %d: %w: the head is %d", to, ErrBlockRange, head.Number)
		case next.Number < horizon:
			// The new head must be readable. If numbers have gaps, it can be
			// below the horizon although the given block is not.
			return fmt.Errorf("block %d: %w: the last block up to it is %d, and versions before block %d were pruned", to, ErrBlockRange, next.Number, horizon)
		}
		w, err := e.layout.Writer(ctx, tx)
		if err != nil {
			return err
		}
		last := int64(-1)
		if !next.Empty {
			last = int64(next.Number)
		}
		if err := w.Rewind(ctx, head.Number, last); err != nil {
			return err
		}
		e.db.keepRewind(next)
		return e.db.meta.Exec(ctx, tx, "delete_blocks_above", int64(to))
	})
}

// Prune deletes the versions that are not visible at block before or later.
// Blocks below it can then no longer be read or rewound to. It fails with
// ErrBlockRange when the block is above the head.
func (e *Entities) Prune(ctx context.Context, before uint64) (err error) {
	defer wrap(&err, "prune")
	return e.db.writeBulk(ctx, func(ctx context.Context, tx driver.Tx) error {
		head, horizon, err := e.db.meta.headAndHorizon(ctx, tx)
		switch {
		case err != nil:
			return err
		case before > head.Number:
			return fmt.Errorf("block %d: %w: the head is %d", before, ErrBlockRange, head.Number)
		case before <= horizon:
			return nil
		}
		w, err := e.layout.Writer(ctx, tx)
		if err != nil {
			return err
		}
		if err := w.Prune(ctx, before); err != nil {
			return err
		}
		return e.db.meta.raiseHorizon(ctx, tx, before)
	})
}
