package compact

import (
	"context"
	"fmt"
	"time"

	"github.com/varvedb/varve/store/driver"
)

// Maintain implements layout.Maintained: one slice of merging.
func (l *Layout) Maintain(ctx context.Context, tx driver.Tx, wanted func() bool) (left int, err error) {
	start := time.Now()
	return l.mergeWhile(ctx, tx, func(int) bool {
		took := time.Since(start)
		if l.opts.Slice > 0 && l.currentPlan() == nil {
			return false // the batch is done; the next is prepared first
		}
		return took < l.opts.Slice || took < longSlices*l.opts.Slice && !wanted()
	})
}

// longSlices is how many times its time a slice may take while nobody waits:
// each is a commit, which costs as much as many steps.
const longSlices = 4

// Prepare implements layout.Maintained: it makes the plan of the next batch.
func (l *Layout) Prepare(ctx context.Context, read func(context.Context, func(context.Context, driver.Querier) error) error) error {
	if l.currentPlan() != nil {
		return nil
	}
	return read(ctx, func(ctx context.Context, q driver.Querier) error {
		v, err := l.newView(ctx, q, 0)
		// Where there is a plan for the view, the transaction that finished it is
		// not committed yet.
		if err == nil && v.p.backlog > 0 && l.planned(&v.p, v.nodes) == nil {
			_, err = l.planFor(ctx, q, &v.p, v.nodes)
		}
		return err
	})
}

// Limit implements layout.Maintained.
func (l *Layout) Limit() int { return l.opts.Backlog }

// Left implements layout.Maintained.
func (l *Layout) Left() int { return int(l.left.Load()) }

// Backlog implements layout.Maintained.
func (l *Layout) Backlog(ctx context.Context, q driver.Querier) (left int, err error) {
	p, err := l.readProgress(ctx, q)
	l.left.Store(p.backlog)
	return int(p.backlog), err
}

// relieve merges inside a block's own transaction when the backlog is above half
// of its limit, without a commit and a wait of its own: some times what the block's
// changes are worth, and a part of what is above half, so that a large block's
// share is spread over those after it. Above the limit a block merges at least as
// much as it brings. To make a plan takes longer than a block should wait; without
// one only a backlog far above its limit is merged.
func (l *Layout) relieve(ctx context.Context, tx driver.Tx, left, changes int) error {
	limit := l.opts.Backlog
	above := left - limit/2
	if above <= 0 {
		return nil
	}
	pl := l.currentPlan()
	if pl == nil && l.opts.Slice > 0 && left <= 2*limit {
		return nil
	}
	least, due, patience := 0, 3*changes+above/32, l.opts.Slice
	if left > limit {
		least, due, patience = changes, 8*changes+above/32, longSlices*l.opts.Slice
	}
	start := time.Now()
	_, err := l.mergeWhile(ctx, tx, func(done int) bool {
		if pl == nil {
			pl = l.currentPlan()
		}
		if pl == nil || pl != l.currentPlan() || done >= pl.share(due) {
			return false
		}
		return done < pl.share(least) || patience == 0 || time.Since(start) < patience
	})
	return err
}

// share is how many edits are worth some changes.
func (pl *plan) share(changes int) int {
	return changes * (len(pl.sets) + len(pl.keys)/2) / int(max(pl.changes, 1))
}

// currentPlan returns the plan that is being followed, or nil.
func (l *Layout) currentPlan() *plan {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.plan == nil || l.plan.finished {
		return nil
	}
	return l.plan
}

// drain merges everything.
func (l *Layout) drain(ctx context.Context, tx driver.Tx) error {
	for {
		if left, err := l.mergeFor(ctx, tx, 100*l.opts.Slice); err != nil || left == 0 {
			return err
		}
	}
}

// mergeFor does steps of the merge until a time has passed or the log is empty.
func (l *Layout) mergeFor(ctx context.Context, tx driver.Tx, limit time.Duration) (left int, err error) {
	start := time.Now()
	return l.mergeWhile(ctx, tx, func(int) bool { return time.Since(start) < limit })
}

// mergeWhile does at least one step, and asks after each, of how many edits were
// done, whether to go on.
func (l *Layout) mergeWhile(ctx context.Context, tx driver.Tx, more func(done int) bool) (left int, err error) {
	v, err := l.newView(ctx, tx, 0)
	if err != nil {
		return 0, err
	}
	p := v.p
	if p.backlog == 0 {
		return 0, nil
	}
	for done := 0; ; done += l.opts.Steps {
		if err := l.mergeStep(ctx, tx, &p, after(v.chain.nodes, p.merged)); err != nil {
			return 0, err
		}
		if p.backlog == 0 || !more(done+l.opts.Steps) {
			l.left.Store(p.backlog)
			return int(p.backlog), l.writeProgress(ctx, tx, &p)
		}
	}
}

// mergeStep does the next step of the batch that p names, or of a new one.
func (l *Layout) mergeStep(ctx context.Context, tx driver.Tx, p *progress, nodes []*node) error {
	pl, err := l.planFor(ctx, tx, p, nodes)
	if err != nil {
		return err
	}
	done := int(p.step)
	switch {
	case done < len(pl.sets):
		n := min(l.opts.Steps, len(pl.sets)-done)
		p.step += int64(n)
		return l.put(ctx, tx, pl.sets[done:done+n])
	case done < len(pl.sets)+len(pl.keys)/2:
		done -= len(pl.sets)
		n := min(l.opts.Steps, len(pl.keys)/2-done)
		p.step += int64(n)
		return l.eachExec(ctx, tx, "insert_keys", 2, pl.keys[2*done:2*(done+n)])
	}
	if err := l.finish(ctx, tx, pl); err != nil {
		return err
	}
	l.mu.Lock()
	pl.finished = true
	l.mu.Unlock()
	p.merged, p.merging, p.step = pl.end, none, 0
	p.backlog -= pl.changes
	p.live += pl.live
	return nil
}

// planned returns the plan of the batch that is being merged, or one for the
// next, if there is one.
func (l *Layout) planned(p *progress, nodes []*node) *plan {
	l.mu.Lock()
	defer l.mu.Unlock()
	pl := l.plan
	if pl == nil || pl.merged != p.merged || p.merging != none && p.merging != pl.end {
		return nil
	}
	for _, n := range nodes {
		if n.tip == pl.endTip {
			return pl
		}
	}
	return nil
}

// planFor returns the plan of the batch that is being merged, or of the next.
func (l *Layout) planFor(ctx context.Context, q driver.Querier, p *progress, nodes []*node) (*plan, error) {
	if pl := l.planned(p, nodes); pl != nil {
		if p.merging == none {
			p.merging, p.step = pl.end, 0
		}
		return pl, nil
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("%w: %d changes are recorded as not merged, the log has none of them", driver.ErrCorrupt, p.backlog)
	}
	if p.merging == none {
		p.merging = l.batch(nodes)
	}
	for len(nodes) > 0 && nodes[len(nodes)-1].block > p.merging {
		nodes = nodes[:len(nodes)-1]
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("%w: block %d is recorded as being merged, the log begins above it", driver.ErrCorrupt, p.merging)
	}
	pl, err := l.newPlan(ctx, q, p, nodes)
	if err != nil {
		return nil, err
	}
	p.step = 0 // made anew, it is done anew
	l.mu.Lock()
	l.plan = pl
	l.mu.Unlock()
	return pl, nil
}

// batch returns the last block of the next batch.
func (l *Layout) batch(nodes []*node) int64 {
	changes, end := 0, nodes[0].block
	for _, n := range nodes {
		if changes += len(n.changes); changes > l.opts.Batch {
			break
		}
		end = n.block
	}
	return end
}

// finish is the last step: versions, and the log behind them.
func (l *Layout) finish(ctx context.Context, tx driver.Tx, pl *plan) error {
	if err := l.put(ctx, tx, pl.final); err != nil {
		return err
	}
	if err := l.eachExec(ctx, tx, "delete_current", 1, pl.drop); err != nil {
		return err
	}
	if err := tx.Insert(ctx, currentTable, pl.current); err != nil {
		return err
	}
	if err := tx.Insert(ctx, closedTable, pl.closed); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, l.sql["trim_log"], pl.end)
	return err
}
