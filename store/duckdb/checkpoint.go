package duckdb

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// logCap is how many times checkpoint_threshold the log may grow. Then a commit
// checkpoints by itself, and old snapshots are ended, because an open snapshot
// keeps updated and deleted rows, which prevents every checkpoint.
const logCap = 4

// Between two attempts at a checkpoint that open snapshots keep away, the time
// doubles from the first wait to the longest: a snapshot may be open for hours.
const (
	firstCheckpointWait   = 5 * time.Millisecond
	longestCheckpointWait = 160 * time.Millisecond
)

// checkpointer checkpoints after a commit that filled the log. The commit does
// not wait for it, but the next write does, because a checkpoint of DuckDB and
// a write exclude each other: so the pause falls between two blocks.
type checkpointer struct {
	full chan struct{} // has a value when the log was full after a commit
	stop context.CancelFunc
	done sync.WaitGroup

	count, nanos atomic.Int64 // checkpoints that ended, and the time that they took
}

// startCheckpointer starts the goroutine of an engine that may write.
func (e *engine) startCheckpointer() {
	ctx, stop := context.WithCancel(context.Background())
	e.checkpoints.full, e.checkpoints.stop = make(chan struct{}, 1), stop
	e.checkpoints.done.Go(func() {
		for {
			select {
			case <-e.checkpoints.full:
				// A later commit tries again. When a checkpoint has failed, the
				// engine refuses all writes and says why.
				_, _ = e.Checkpoint(ctx, true)
			case <-ctx.Done():
				return
			}
		}
	})
}

// stopCheckpointer waits until a checkpoint that runs has ended.
func (e *engine) stopCheckpointer() {
	if e.checkpoints.stop != nil {
		e.checkpoints.stop()
		e.checkpoints.done.Wait()
	}
}

// afterWrite runs after each commit, which may have checkpointed at the cap.
// When it cannot copy, the next write says why.
func (e *engine) afterWrite(c *sqlstore.Conn) {
	e.file.closeLog()
	_ = e.file.protect(context.Background(), c)
	if e.logAbove(e.cfg.CheckpointThreshold) {
		select {
		case e.checkpoints.full <- struct{}{}:
		default: // it knows already
		}
	}
}

func (e *engine) logAbove(size int64) bool {
	st, err := os.Stat(e.file.log())
	return err == nil && st.Size() > size
}

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
	for wait := firstCheckpointWait; ; wait = min(2*wait, longestCheckpointWait) {
		// The writer is given back between attempts: commits go on.
		err := e.WithWriter(ctx, e.checkpoint)
		res.Busy, res.Took = isBusy(err), time.Since(start)
		switch {
		case err != nil && !res.Busy:
			return res, fmt.Errorf("checkpoint: %w", err)
		case !res.Busy || !truncate:
			return res, nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return res, fmt.Errorf("checkpoint: wait for readers: %w", ctx.Err())
		}
	}
}

// checkpoint runs one on the writer's connection. It does not end with a
// context, because the engine would report a checkpoint as failed that it has
// made, and one that it gives up makes the database unusable until it is opened
// again.
func (e *engine) checkpoint(c *sqlstore.Conn) error {
	ctx, start := context.Background(), time.Now()
	if err := e.file.protect(ctx, c); err != nil {
		return err
	}
	if err := c.ExecOnce(ctx, "CHECKPOINT"); err != nil {
		return err
	}
	e.checkpoints.count.Add(1)
	e.checkpoints.nanos.Add(int64(time.Since(start)))
	return e.file.protect(ctx, c)
}
