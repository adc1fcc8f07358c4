package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// Verify checks the entities for consistency: it computes the digest chain from
// the versions and compares it with the recorded blocks, and it compares all
// redundant data of the layout. It reads everything once or twice, in constant
// memory. A damaged store gives an error that wraps ErrCorrupt and names the
// findings; any other error only means that the check could not finish. The
// digest of a pruned store, or of a layout without history, cannot be computed;
// CheckReport.Digest reports whether it was. DB.Check also checks the events
// and the engine's internal structures.
func (e *Entities) Verify(ctx context.Context) (CheckReport, error) {
	c := e.db.newChecker(nil)
	c.verify(ctx, e)
	if err := c.report.Err(); err != nil {
		return c.report, fmt.Errorf("verify: %w", err)
	}
	return c.report, nil
}

// digest computes the chain of digests from the history and compares it with
// the recorded blocks, in parallel.
func (c *checker) digest(ctx context.Context, e *Entities, views []*Snapshot) (err error) {
	r := &c.report
	snap := views[0]
	r.Head, r.Sound.Empty = snap.head, true
	if !e.layout.Temporal() || snap.horizon > 0 {
		return nil
	}
	recorded, err := e.db.meta.blockRows(ctx, snap.reader, "list_blocks")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, recorded.rows.Close()) }()
	chain := chainCheck{blockRows: recorded, sound: &r.Sound}
	progress := c.progress(partHistory, "changes", 0)
	for set, err := range e.history(ctx, r.Head, views[1:]) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && len(set.Changes) > 0 {
			err = chain.changed(set)
		}
		if err != nil {
			return err
		}
		r.Changes += uint64(len(set.Changes))
		progress(r.Changes)
	}
	r.Digest = true
	for chain.more {
		if err := chain.compare(); err != nil {
			return err
		}
	}
	return nil
}

// chainCheck compares recorded blocks with the digest of a history.
type chainCheck struct {
	*blockRows
	sound  *BlockHeader  // the last block up to which the digests agree
	digest entity.Digest // of the history so far
}

// changed compares the block of a changeset, and the blocks before it.
func (c *chainCheck) changed(set entity.Changeset) error {
	if err := c.unchanged(set.Block); err != nil {
		return err
	}
	if !c.more || c.block.Number != set.Block {
		return fmt.Errorf("%w: versions begin or end at block %d, which is not recorded; it is sound up to %s", ErrCorrupt, set.Block, c.sound)
	}
	c.digest = c.digest.Next(set)
	return c.compare()
}

// unchanged compares the next blocks below a number, none of which changed
// anything.
func (c *chainCheck) unchanged(below uint64) error {
	for c.more && c.block.Number < below {
		if err := c.compare(); err != nil {
			return err
		}
	}
	return nil
}

// compare compares the next block, and passes it.
func (c *chainCheck) compare() error {
	switch b := c.block; {
	case b.Number > entity.MaxBlock || !c.sound.Empty && b.Number <= c.sound.Number:
		return fmt.Errorf("%w: block %d is recorded after block %d", ErrCorrupt, int64(b.Number), c.sound.Number)
	case c.digest != b.Digest:
		return fmt.Errorf("%w: the versions have digest %s, recorded at block %d is %s; it is sound up to %s",
			ErrCorrupt, c.digest, b.Number, b.Digest, c.sound)
	}
	*c.sound = c.block
	return c.next()
}

// countEvery is the number of rows between two progress reports.
const countEvery = 1024

// everyRow returns a function to call for each row that is read. It reports the
// number of rows to progress from time to time, unless that is nil, and fails
// when ctx ends.
func everyRow(ctx context.Context, progress func(rows uint64)) func() error {
	n := uint64(0)
	return func() error {
		if n++; n%countEvery != 0 {
			return nil
		}
		if progress != nil {
			progress(n)
		}
		return ctx.Err()
	}
}

// countedQuerier calls a function for each row that is read through it.
type countedQuerier struct {
	driver.Querier
	row func() error
}

// Query implements driver.Querier.
func (q countedQuerier) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	rows, err := q.Querier.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	return &countedRows{Rows: rows, row: q.row}, nil
}

type countedRows struct {
	driver.Rows
	row func() error
	err error
}

// Next implements driver.Rows.
func (r *countedRows) Next() bool {
	if !r.Rows.Next() {
		return false
	}
	r.err = r.row()
	return r.err == nil
}

// Err implements driver.Rows.
func (r *countedRows) Err() error { return errors.Join(r.err, r.Rows.Err()) }
