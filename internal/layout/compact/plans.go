package compact

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/store/driver"
)

// Prepare implements layout.Maintained: it makes the plan of the next batch that has
// none, and works out pieces of compactions.
func (l *Layout) Prepare(ctx context.Context, q driver.Querier) error {
	v, err := l.newView(ctx, q, 0)
	if err != nil {
		return err
	}
	return errors.Join(l.prepareMerge(ctx, v), l.prepareCompaction(ctx, v))
}

// prepareMerge makes the plan of the next batch that has none.
func (l *Layout) prepareMerge(ctx context.Context, v *view) error {
	p, nodes, q := v.p, v.nodes, v.q
	line, unfinished := l.line(&p, &nodes)
	if p.backlog == 0 || unfinished >= layout.Ahead || len(line) > 0 && p.backlog < int64(l.opts.Batch) {
		return nil
	}
	nodes, err := l.batch(&p, nodes)
	if err != nil {
		return err
	}
	pl, err := l.newPlan(ctx, q, &p, nodes, line)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.plans = slices.Concat(line, []*plan{pl})
	return nil
}

// Prepared implements layout.Maintained. A batch over another is planned only when
// it is a whole one. Compactions are worth thinking about when there is nothing else to
// do, and beside.
func (l *Layout) Prepared(batches int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ready, n, left := l.compactionReady(), 0, l.known.backlog
	for _, pl := range l.plans {
		if !pl.finished {
			n++
			left -= pl.changes
		}
	}
	switch {
	case l.known.backlog == 0 || batches > 1 && !ready:
		return ready
	case n >= batches:
		return true
	}
	return n > 0 && left < int64(l.opts.Batch)
}

// line returns the plans for a view of what is committed, one after another, and
// makes of progress and nodes what they leave of them.
func (l *Layout) line(p *progress, nodes *[]*node) (list []*plan, unfinished int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		i := slices.IndexFunc(l.plans, func(pl *plan) bool {
			return pl.isFor(p, *nodes) && (len(list) > 0 || pl.over == nil || pl.over.finished)
		})
		if i < 0 {
			return list, unfinished
		}
		pl := l.plans[i]
		if len(list) == 0 {
			pl.over = nil // what it was made over is committed
		}
		if !pl.finished {
			unfinished++
		}
		list = append(list, pl)
		*p, *nodes = pl.after(*p), after(*nodes, pl.end)
	}
}

// isFor tells whether a plan is for a state of the tables and a log.
func (pl *plan) isFor(p *progress, nodes []*node) bool {
	return pl.fits(p) && slices.ContainsFunc(nodes, func(n *node) bool { return n.tip == pl.endTip })
}

// currentPlan returns the plan that is being followed, or nil.
func (l *Layout) currentPlan() *plan {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, pl := range l.plans {
		if !pl.finished {
			return pl
		}
	}
	return nil
}

// planned returns the plan of the batch that a transaction is to merge, if there is
// one. One over another counts only when it was this process that followed the
// other: another process may have cut the log into other batches.
func (l *Layout) planned(p *progress, nodes []*node) *plan {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, pl := range l.plans {
		if pl.isFor(p, nodes) && (pl.over == nil || pl.over.finished) {
			pl.finished = false // else the transaction that did so was rolled back
			pl.start(p)
			return pl
		}
	}
	return nil
}

// planFor returns the plan of the batch that is being merged, or of the next.
func (l *Layout) planFor(ctx context.Context, tx driver.Tx, p *progress, nodes []*node) (*plan, error) {
	pl := l.planned(p, nodes)
	if pl == nil {
		nodes, err := l.batch(p, nodes)
		if err != nil {
			return nil, err
		}
		if pl, err = l.newPlan(ctx, tx, p, nodes, nil); err != nil {
			return nil, err
		}
		pl.start(p)
		l.mu.Lock()
		l.plans = []*plan{pl}
		l.mu.Unlock()
	}
	return pl, nil
}

// forgetPlans is called when one could not be followed.
func (l *Layout) forgetPlans() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.plans = nil
}

// start makes p follow the plan, from its first step on unless it follows it already.
func (pl *plan) start(p *progress) {
	if p.merging != none && pl.run != 0 && pl.run == p.batch() {
		return
	}
	p.trees.begin()
	p.merging, p.step, pl.run = pl.end, 0, p.batch()
}

// batch returns the blocks of the batch that is being merged, or of the next.
func (l *Layout) batch(p *progress, nodes []*node) ([]*node, error) {
	if len(nodes) == 0 {
		return nil, fmt.Errorf("%w: %d changes are recorded as not merged, the log has none of them", driver.ErrCorrupt, p.backlog)
	}
	n, changes := 0, 0
	for _, b := range nodes {
		changes += len(b.changes)
		if p.merging == none && n > 0 && changes > l.opts.Batch || p.merging != none && b.block > p.merging {
			break
		}
		n++
	}
	if n == 0 {
		return nil, fmt.Errorf("%w: block %d is recorded as being merged, the log begins above it", driver.ErrCorrupt, p.merging)
	}
	return nodes[:n], nil
}
