package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// Verify checks the entities against themselves: the digest chain is computed
// anew from the versions and compared with what is recorded of each block, and
// what the layout keeps more than once must agree. It reads everything once or
// twice, in memory that does not grow. A damaged store gives an error that wraps
// ErrCorrupt and names what is wrong; any other error says only that something
// could not be looked at (OutcomeOf). Of a pruned store, and of one whose layout
// keeps no history, the digest cannot be computed; Verified tells whether it was.
// DB.Check checks the events and the engine's own structures as well.
func (e *Entities) Verify(ctx context.Context) (Verified, error) {
	c := checker{db: e.db, opts: CheckOptions{Findings: defaultFindings}}
	v := c.verify(ctx, e)
	if err := c.report.Err(); err != nil {
		return v, fmt.Errorf("verify: %w", err)
	}
	return v, nil
}

// Verified tells what Verify has checked.
type Verified struct {
	Head    BlockHeader
	Changes uint64 // in the history, as far as it was read
	Digest  bool   // the digest was computed anew

	// Sound is the last block up to which the versions have the recorded digests.
	Sound BlockHeader

	// Parts are the history and the entities, each with its outcome.
	Parts []PartReport
}

// verifyRows collects the contradictions within the layout, at most so many.
// Progress, if given, is called with the rows read so far.
func (e *Entities) verifyRows(ctx context.Context, limit int, progress func(rows uint64)) (problems []error, err error) {
	views, err := e.views(ctx, 3)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeViews(views)) }()
	report := func(problem string) bool {
		problems = append(problems, fmt.Errorf("%w: %s", ErrCorrupt, problem))
		return len(problems) < limit && ctx.Err() == nil
	}
	count := &rowCount{report: progress}
	err = e.layout.Check(ctx, count.of(ctx, views[0].reader), count.of(ctx, views[1].reader), count.of(ctx, views[2].reader), report)
	return problems, errors.Join(err, ctx.Err())
}

// verifyDigest computes the chain of digests anew and compares it block by block.
func (e *Entities) verifyDigest(ctx context.Context, progress func(changes uint64)) (v Verified, err error) {
	views, err := e.views(ctx, 3)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, closeViews(views)) }()
	snap := views[0]
	v.Head = snap.Head()
	v.Sound.Empty = true
	if !e.layout.Temporal() || snap.horizon > 0 {
		return v, nil
	}
	rows, err := snap.reader.Query(ctx, e.db.meta.Statements["list_blocks"])
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	c := &chainCheck{rows: rows, v: &v}
	if err := c.next(); err != nil {
		return v, err
	}
	for set, err := range e.history(ctx, v.Head, views[1:]) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = c.set(set)
		}
		if err != nil {
			return v, err
		}
		v.Changes += uint64(len(set.Changes))
		if progress != nil {
			progress(v.Changes)
		}
	}
	v.Digest = true
	return v, c.upTo(entity.MaxBlock + 1)
}

// chainCheck follows the recorded blocks beside a history.
type chainCheck struct {
	rows   driver.Rows
	v      *Verified
	digest entity.Digest // of the history so far

	more  bool // block is the next one recorded
	block BlockHeader
}

func (c *chainCheck) next() error {
	if c.more = c.rows.Next(); !c.more {
		return c.rows.Err()
	}
	var err error
	if c.block, err = scanBlock(c.rows); err != nil {
		return err
	}
	if n := c.block.Number; n > entity.MaxBlock || !c.v.Sound.Empty && n <= c.v.Sound.Number {
		return fmt.Errorf("%w: block %d is recorded after block %d", ErrCorrupt, int64(n), c.v.Sound.Number)
	}
	return nil
}

// set follows the history by one block.
func (c *chainCheck) set(set entity.Changeset) error {
	if len(set.Changes) == 0 {
		return nil
	}
	if err := c.upTo(set.Block); err != nil {
		return err
	}
	if !c.more || c.block.Number != set.Block {
		return fmt.Errorf("%w: versions begin or end at block %d, which is not recorded; it is sound up to %s", ErrCorrupt, set.Block, c.v.Sound)
	}
	c.digest = c.digest.Next(set)
	return c.compare()
}

// upTo compares the recorded blocks below a number, which changed nothing.
func (c *chainCheck) upTo(block uint64) error {
	for c.more && c.block.Number < block {
		if err := c.compare(); err != nil {
			return err
		}
	}
	return nil
}

func (c *chainCheck) compare() error {
	if c.digest != c.block.Digest {
		return fmt.Errorf("%w: the versions have digest %s, recorded at block %d is %s; it is sound up to %s",
			ErrCorrupt, c.digest, c.block.Number, c.block.Digest, c.v.Sound)
	}
	c.v.Sound = c.block
	return c.next()
}

// String names the block.
func (h BlockHeader) String() string {
	if h.Empty {
		return "no block"
	}
	return fmt.Sprintf("block %d", h.Number)
}

// rowCount counts the rows that are read through its queriers.
type rowCount struct {
	n      uint64
	report func(uint64)
}

// of returns a querier whose rows are counted, and end when ctx is done.
func (c *rowCount) of(ctx context.Context, q driver.Querier) driver.Querier {
	return countedQuerier{q, c, ctx.Err}
}

type countedQuerier struct {
	driver.Querier
	count *rowCount
	ended func() error
}

// Query implements driver.Querier.
func (q countedQuerier) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	rows, err := q.Querier.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	return &countedRows{Rows: rows, q: q}, nil
}

type countedRows struct {
	driver.Rows
	q   countedQuerier
	err error
}

// countEvery is the rows between two reports.
const countEvery = 1024

// Next implements driver.Rows.
func (r *countedRows) Next() bool {
	if !r.Rows.Next() {
		return false
	}
	c := r.q.count
	if c.n++; c.n%countEvery == 0 {
		if r.err = r.q.ended(); r.err != nil {
			return false
		}
		if c.report != nil {
			c.report(c.n)
		}
	}
	return true
}

// Err implements driver.Rows.
func (r *countedRows) Err() error { return errors.Join(r.err, r.Rows.Err()) }
