package compact

import (
	"context"
	"time"

	"github.com/varvedb/varve/store/driver"
)

// Maintain implements layout.Maintained: one slice of merging.
func (l *Layout) Maintain(ctx context.Context, tx driver.Tx, wanted func() bool) (left int, err error) {
	start := time.Now()
	return l.mergeWhile(ctx, tx, func(int) bool {
		took := time.Since(start)
		if l.opts.Slice > 0 && l.unmerged() > 0 && l.currentPlan() == nil {
			return false // the batch is done; the next is prepared first
		}
		return took < l.opts.Slice || took < longSlices*l.opts.Slice && !wanted()
	})
}

// longSlices is how many times its time a slice may take while nobody waits:
// each is a commit, which costs as much as many steps.
const longSlices = 4

// Limit implements layout.Maintained.
func (l *Layout) Limit() int { return l.opts.Backlog }

// Left implements layout.Maintained. Compactions count up to the limit: they do not keep
// anybody waiting.
func (l *Layout) Left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	backlog := l.known.backlog
	return int(max(backlog, min(backlog+l.known.compacting(), int64(l.opts.Backlog))))
}

// unmerged is the share of blocks in Left.
func (l *Layout) unmerged() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known.backlog
}

// Backlog implements layout.Maintained.
func (l *Layout) Backlog(ctx context.Context, q driver.Querier) (left int, err error) {
	p, err := l.readProgress(ctx, q)
	l.remember(&p)
	return p.left(), err
}

// remember keeps what Left tells.
func (l *Layout) remember(p *progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = *p
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
		if done == 0 { // compactions so far
			return patience == 0 || time.Since(start) < patience
		}
		if pl == nil {
			pl = l.currentPlan()
		}
		if pl == nil || pl != l.currentPlan() || done >= pl.share(due, l.opts.Steps) {
			return false
		}
		return done < pl.share(least, l.opts.Steps) || patience == 0 || time.Since(start) < patience
	})
	return err
}

// drain merges everything. Compactions are left for later.
func (l *Layout) drain(ctx context.Context, tx driver.Tx) error {
	v, err := l.newView(ctx, tx, 0)
	if err != nil {
		return err
	}
	p := v.p
	for p.backlog > 0 {
		if err := l.mergeStep(ctx, tx, &p, after(v.chain.nodes, p.merged)); err != nil {
			l.forgetPlans()
			return err
		}
	}
	l.remember(&p)
	return l.writeProgress(ctx, tx, &p)
}

// mergeWhile does at least one step, and asks after each, of how many edits were
// done, whether to go on.
func (l *Layout) mergeWhile(ctx context.Context, tx driver.Tx, more func(done int) bool) (left int, err error) {
	v, err := l.newView(ctx, tx, 0)
	if err != nil {
		return 0, err
	}
	p := v.p
	if p.left() == 0 {
		return 0, nil
	}
	credit := l.credit // of a transaction that may be rolled back: it need not be exact
	for done := 0; ; {
		n, err := l.work(ctx, tx, &p, v.chain.nodes, &credit)
		if err != nil {
			l.forgetPlans()
			return 0, err
		}
		done += n
		if p.left() == 0 || !more(done) {
			l.credit = credit
			l.remember(&p)
			return p.left(), l.writeProgress(ctx, tx, &p)
		}
	}
}

// work does a step of compaction, if there is one and it is its turn, or of the merge.
// It returns how many edits were done, of a merge.
func (l *Layout) work(ctx context.Context, tx driver.Tx, p *progress, nodes []*node, credit *int) (done int, err error) {
	if *credit > 0 || p.backlog == 0 {
		did, err := l.compact(ctx, tx, p, p.backlog == 0 || p.crowded())
		if *credit = max(*credit-did, 0); did > 0 || err != nil {
			return 0, err
		}
	}
	before := p.step
	if err := l.mergeStep(ctx, tx, p, after(nodes, p.merged)); err != nil {
		return 0, err
	}
	*credit = min(*credit+compactionShare*max(int(p.step-before), 0), maxCredit)
	return l.opts.Steps, nil
}

// A step of a merge earns some times as much of compaction, which is more than it will
// take in the end, so that compactions keep up and yet no large one keeps merges waiting.
const (
	compactionShare = 4
	maxCredit       = 4096
)

// mergeStep does the next step of the batch that p names, or of a new one.
func (l *Layout) mergeStep(ctx context.Context, tx driver.Tx, p *progress, nodes []*node) error {
	pl, err := l.planFor(ctx, tx, p, nodes)
	if err != nil {
		return err
	}
	switch done := int(p.step); {
	case done < pl.written():
		n, err := l.putPages(ctx, tx, p, pl, done)
		p.step += int64(n)
		return err
	case done < pl.steps()-1:
		done -= pl.written()
		n := min(l.opts.Steps, len(pl.keys)/2-done)
		p.step += int64(n)
		return l.eachExec(ctx, tx, "insert_keys", 2, pl.keys[2*done:2*(done+n)])
	case done < pl.steps():
		p.step++
		for tree := range p.trees {
			p.trees[tree].publish(len(pl.pages[tree]))
		}
		p.live += pl.expired.live
		return l.putStage(ctx, tx, &pl.expired)
	}
	g := &pl.stages[int(p.step)-pl.steps()]
	if err := l.putStage(ctx, tx, g); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, l.sql["trim_log"], g.block); err != nil {
		return err
	}
	p.step++
	p.merged = g.block
	p.backlog -= g.changes
	p.live += g.live
	if g.block < pl.end {
		return nil
	}
	p.merging, p.step = none, 0
	p.trees.end()
	l.mu.Lock()
	pl.finished = true
	l.mu.Unlock()
	return nil
}

// putPages writes some pages of a plan, of one tree, and returns how many.
func (l *Layout) putPages(ctx context.Context, tx driver.Tx, p *progress, pl *plan, done int) (n int, err error) {
	tree := 0
	for done >= len(pl.pages[tree]) {
		done -= len(pl.pages[tree])
		tree++
	}
	pages := pl.pages[tree][done:]
	pages = pages[:min(l.opts.Steps, len(pages))]
	return len(pages), l.insertPages(ctx, tx, tree, p.trees[tree].writing, pages)
}

// putStage writes the versions of some blocks.
func (l *Layout) putStage(ctx context.Context, tx driver.Tx, g *stage) error {
	if err := l.eachExec(ctx, tx, "delete_current", 1, g.drop); err != nil {
		return err
	}
	if err := tx.Insert(ctx, currentTable, g.current); err != nil {
		return err
	}
	return tx.Insert(ctx, closedTable, g.closed)
}
