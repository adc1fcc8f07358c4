package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/store/driver"
)

// The cost of a condition is unbounded: a condition on two frequent tags that
// share no event reads all of their postings. Under the writer's lock it would
// block every other client. So the writer reads at most EventOptions.LockedRows
// rows for a condition, and puts back a request that needs more. The append's
// goroutine then judges the condition on a view, up to the last posting in that
// view, and submits the request again. The writer then examines only the events
// written since.
//
// This ends, because a second view has to examine only the events that came
// during the first, which takes a small part of the time that it took to append
// them. After maxViewsUsed views the rest is a few rows for each term of the
// condition, and is read under the lock.
const (
	defaultLockedRows = 64 // rows for each condition
	groupRows         = 32 // times LockedRows: the rows for a group
	maxViewsUsed      = 4  // views
)

// maxCompared bounds the data, in bytes, that an append with IDs compares with
// stored events under the lock. A larger append is compared on a view first.
const maxCompared = 64 << 10

// viewWait bounds the wait for a view, because the caller may hold all views.
const viewWait = time.Second

// maxJudgeViews bounds the views in use at once, so that some are left to
// readers.
const maxJudgeViews = 2

// errPutBack is the verdict on a request whose condition must be judged on a
// view.
var errPutBack = errors.New("the condition must be judged on a view")

// judgeOnView judges a condition on a view. If no view is available, the writer
// judges it, whatever it costs.
func (e *Events) judgeOnView(ctx context.Context, r *appendRequest) error {
	r.viewsUsed++
	err := e.onView(ctx, func(q driver.Querier) error {
		indexed, err := e.log.Posted(ctx, q)
		if err != nil {
			return err
		}
		guard := []*eventlog.Guard{&r.guard}
		return e.log.Judge(ctx, q, guard, indexed, eventlog.Bound{Pause: e.pause(ctx)})
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		r.viewsUsed = maxViewsUsed
		return nil
	}
	if err := e.commit.ensure(r.guard.Found); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return r.conflict()
}

// While others append, a costly condition pauses after each rowsBetweenPauses
// rows, for pauseFactor times as long as they took and at most maxPause. Without
// the pauses it takes a processor from eight other clients, which then append
// 40 % fewer events a second.
const (
	rowsBetweenPauses = 512
	pauseFactor       = 8
	maxPause          = 20 * time.Millisecond
)

// pause returns a function that makes these pauses.
func (e *Events) pause(ctx context.Context) func(rows int) {
	read, groups, start := 0, e.commit.groups.Load(), time.Now()
	return func(rows int) {
		if read += rows; read < rowsBetweenPauses {
			return
		}
		if now := e.commit.groups.Load(); now != groups {
			groups = now
			end := time.NewTimer(min(pauseFactor*time.Since(start), maxPause))
			defer end.Stop()
			select {
			case <-end.C:
			case <-ctx.Done():
			}
		}
		read, start = 0, time.Now()
	}
}

// compareOnView compares an append's events with the stored events of the same
// IDs.
func (e *Events) compareOnView(ctx context.Context, r *appendRequest) error {
	g := group{log: e.log}
	err := e.onView(ctx, func(q driver.Querier) error {
		return g.lookUp(ctx, q, []*appendRequest{r})
	})
	r.err = nil // of one that is given up
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		r.known = g.stored
	}
	return nil
}

// onView runs f in a view, if one is available within viewWait.
func (e *Events) onView(ctx context.Context, f func(q driver.Querier) error) error {
	select {
	case e.views <- struct{}{}:
		defer func() { <-e.views }()
	case <-ctx.Done():
		return ctx.Err()
	}
	wait, cancel := context.WithTimeout(ctx, viewWait)
	defer cancel()
	return e.db.read(wait, func(_ context.Context, q driver.Querier) error { return f(q) })
}
