package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/store/driver"
)

// What an append asks of the past can cost any amount: a condition on two frequent tags
// that no event has together reads all of their postings. Under the writer's lock it
// would keep everybody from appending. So the writer reads no more than
// EventOptions.LockedRows rows of postings for a condition, and puts back what would take
// more. The append's own goroutine then judges it on views, up to the last posting that
// the first of them sees, and comes again: what remains is what was written since.
//
// It comes to an end: a second pass has only the events that came during the first one to
// look through, which takes a small part of the time that it took to append them, and so
// on. After maxApart passes the rest is a few rows for each tag and type of the condition,
// however many were read before, and is read under the lock.
const (
	defaultLockedRows = 64
	groupRows         = 32 // times LockedRows: the rows that a group reads under the lock
	maxApart          = 4
)

// maxCompared bounds the data of an append with IDs that is compared with stored events
// under the lock. A larger one is compared on a view first, in case it is a repetition.
const maxCompared = 64 << 10

// viewWait bounds the wait for a view. The caller may hold all of them.
const viewWait = time.Second

// apartAtOnce bounds the views that are taken at once, so that some are left to others,
// and nobody waits for long who has a place.
const apartAtOnce = 2

// errPutBack is the verdict on a request that must be judged apart.
var errPutBack = errors.New("the condition is to be judged apart")

// partRows bounds the rows of postings that are read in one view: while a view is open the
// engine may have to keep what was written since, as SQLite does its log.
const partRows = 512

// judgeApart judges a condition on views, one after another, up to where the first of them
// has postings. When there is no view to be had, the writer judges it whatever it costs.
func (e *Events) judgeApart(ctx context.Context, r *appendRequest) error {
	for r.apart++; r.guard.Left; {
		groups := e.commit.groups.Load()
		var worked time.Duration
		err := e.apart(ctx, func(ctx context.Context, q driver.Querier) error {
			begun := time.Now()
			defer func() { worked = time.Since(begun) }()
			posted, err := e.log.Posted(ctx, q)
			if err != nil {
				return err
			}
			return e.log.Judge(ctx, q, []*eventlog.Guard{&r.guard}, posted, eventlog.Bound{Each: partRows})
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			r.apart = maxApart
			r.guard.Restart()
			return nil
		}
		if r.guard.Left && e.commit.groups.Load() != groups {
			rest(ctx, worked)
		}
	}
	if err := e.commit.ensure(r.guard.Found); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return r.conflict()
}

// A costly condition leaves the processors to the others: once anybody appends it rests
// between two views for restFor times as long as the last one took, and at most maxRest.
const (
	restFor = 8
	maxRest = 20 * time.Millisecond
)

func rest(ctx context.Context, worked time.Duration) {
	end := time.NewTimer(min(restFor*worked, maxRest))
	defer end.Stop()
	select {
	case <-end.C:
	case <-ctx.Done():
	}
}

// compareApart compares the events of an append with stored ones that have their IDs.
func (e *Events) compareApart(ctx context.Context, r *appendRequest) error {
	g := group{log: e.log}
	err := e.apart(ctx, func(ctx context.Context, q driver.Querier) error {
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

// apart reads in a view, which must be had soon.
func (e *Events) apart(ctx context.Context, f func(ctx context.Context, q driver.Querier) error) error {
	select {
	case e.views <- struct{}{}:
		defer func() { <-e.views }()
	case <-ctx.Done():
		return ctx.Err()
	}
	wait, cancel := context.WithTimeout(ctx, viewWait)
	defer cancel()
	return e.db.read(wait, f)
}
