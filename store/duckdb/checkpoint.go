package duckdb

import (
	"context"
	"fmt"
	"time"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// checkpointPoll is the time between two attempts at a checkpoint that open
// snapshots keep away.
const checkpointPoll = 5 * time.Millisecond

// Checkpoint implements driver.Checkpointer. A checkpoint moves the whole log
// and removes it, or does nothing: it is Busy while a snapshot is open that may
// see rows changed since. The log has no pages, so the counts of frames stay
// zero.
func (e *engine) Checkpoint(ctx context.Context, truncate bool) (driver.CheckpointResult, error) {
	start := time.Now()
	var res driver.CheckpointResult
	if e.cfg.Options.ReadOnly {
		return res, driver.ErrReadOnly
	}
	for {
		// The writer is given back between attempts: commits go on, and they
		// too checkpoint when they can.
		err := e.WithWriter(ctx, func(c *sqlstore.Conn) error {
			if err := e.file.protect(ctx, c); err != nil {
				return err
			}
			if err := c.ExecOnce(ctx, "CHECKPOINT"); err != nil {
				return err
			}
			return e.file.protect(ctx, c)
		})
		res.Busy, res.Took = isBusy(err), time.Since(start)
		switch {
		case err != nil && !res.Busy:
			return res, fmt.Errorf("checkpoint: %w", err)
		case !res.Busy || !truncate:
			return res, nil
		}
		select {
		case <-time.After(checkpointPoll):
		case <-ctx.Done():
			return res, fmt.Errorf("checkpoint: wait for readers: %w", ctx.Err())
		}
	}
}
