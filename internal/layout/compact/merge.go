package compact

import (
	"context"
	"fmt"
	"time"

	"github.com/varvedb/varve/store/driver"
)

// Owed implements layout.Maintained.
func (l *Layout) Owed(ctx context.Context, q driver.Querier) (int, error) {
	p, err := l.readProgress(ctx, q)
	if err != nil {
		return 0, err // the known debt stays, because nothing was read
	}
	l.debt.set(&p)
	return p.debt(), nil
}

// Prepare implements layout.Maintained: it prepares the next batch unless one is
// prepared. Pieces of compactions are made when they are written, because each
// takes less time than a commit.
func (l *Layout) Prepare(ctx context.Context, q driver.Querier) error {
	v, err := l.newView(ctx, q, 0)
	if err != nil {
		return err
	}
	if v.p.backlog == 0 || l.prepared.fits(&v.p, v.nodes) {
		return nil
	}
	b, err := l.nextBatch(ctx, q, &v.p, v.nodes)
	if err == nil {
		l.prepared.set(b)
	}
	return err
}

// nextBatch prepares the batch that is being merged or, when none is, the next
// one: blocks with up to Options.Batch changes, or one block with more.
func (l *Layout) nextBatch(ctx context.Context, q driver.Querier, p *progress, nodes []*node) (*batch, error) {
	n, changes := 0, 0
	for _, node := range nodes {
		changes += len(node.changes)
		if p.merging == none && n > 0 && changes > l.opts.Batch || p.merging != none && node.block > p.merging {
			break
		}
		n++
	}
	if n == 0 {
		return nil, fmt.Errorf("%w: %d changes are recorded as not merged, block %d as being merged, and the log has none of them",
			driver.ErrCorrupt, p.backlog, p.merging)
	}
	return l.newBatch(ctx, q, p, nodes[:n])
}

// Maintain implements layout.Maintained: one slice of merging.
func (l *Layout) Maintain(ctx context.Context, tx driver.Tx, wanted func() bool) (debt int, err error) {
	v, err := l.newView(ctx, tx, 0)
	if err != nil || v.p.debt() == 0 {
		return 0, err
	}
	if err := l.maintain(ctx, tx, v, l.opts.sliceBudget(wanted)); err != nil {
		return 0, err
	}
	l.lastSeen.set(v.nodes)
	return v.p.debt(), l.writeProgress(ctx, tx, &v.p)
}

// maintain does at least one step of the work that is put off, and more as the
// budget allows. It ends with the batch, because the next one may not be prepared.
func (l *Layout) maintain(ctx context.Context, tx driver.Tx, v *view, b budget) error {
	start, items, changes := time.Now(), 0, 0
	for {
		// A piece of a compaction, if it is its turn.
		wrote := 0
		if l.credit > 0 || v.p.backlog == 0 {
			var err error
			if wrote, err = l.postings.Compact(ctx, tx, &v.p.tree); err != nil {
				return err
			}
			l.credit.spend(wrote)
		}

		// Else a step of the batch.
		if wrote == 0 && v.p.backlog > 0 {
			merging, wrote, err := l.mergeStep(ctx, tx, v)
			if err != nil {
				return err
			}
			l.credit.earn(wrote)
			if v.p.merging == none {
				return nil
			}
			items += l.opts.Steps
			changes = items * int(merging.changes) / (merging.items() + len(merging.keys) + l.opts.Steps*len(merging.stages))
		}
		if v.p.debt() == 0 || !b.allows(time.Since(start), changes) {
			return nil
		}
	}
}

// drain merges everything. Compactions are left for later.
func (l *Layout) drain(ctx context.Context, tx driver.Tx, v *view) error {
	for v.p.backlog > 0 {
		if _, _, err := l.mergeStep(ctx, tx, v); err != nil {
			return err
		}
	}
	return nil
}

// mergeStep does the next step of the batch that is being merged, or of a new
// one, and returns the batch and how many items the step wrote.
func (l *Layout) mergeStep(ctx context.Context, tx driver.Tx, v *view) (b *batch, wrote int, err error) {
	// A batch that could not be merged is prepared again.
	defer func() {
		if err != nil {
			l.prepared.set(nil)
		}
	}()
	p := &v.p
	if b = l.prepared.follow(p, v.nodes); b == nil {
		if b, err = l.nextBatch(ctx, tx, p, v.nodes); err != nil {
			return nil, 0, err
		}
		l.prepared.begin(b, p)
	}

	// First the pages of the run.
	done := int(p.step)
	if pages := b.pages[min(done, len(b.pages)):]; len(pages) > 0 {
		wrote = min(l.opts.Steps, len(pages))
		p.step += int64(wrote)
		return b, wrote, l.postings.Insert(ctx, tx, p.tree.Batch(), pages[:wrote])
	}

	// Then the run counts, the keys wait in theirs, and expired entities leave the
	// current versions. An earlier attempt at the same blocks may have added the keys.
	if done -= len(b.pages); done == 0 {
		p.step++
		added := p.tree.Published() != 0
		l.postings.Publish(&p.tree, len(b.pages))
		if !added {
			if err := v.addKeys(ctx, tx, b.keys); err != nil {
				return b, 0, err
			}
		}
		return b, 1, l.putStage(ctx, tx, p, &b.expired)
	}

	// Then as many keys that wait leave for the table.
	if p.keys.behind() {
		return b, l.opts.Steps, v.sweepKeys(ctx, tx)
	}

	// At last the versions, and the log is trimmed behind them.
	p.step++
	g := &b.stages[done-1]
	if err := l.putStage(ctx, tx, p, g); err != nil {
		return b, 0, err
	}
	if err := l.sql.Exec(ctx, tx, "trim_log", g.block); err != nil {
		return b, 0, err
	}
	p.merged = g.block
	p.backlog -= g.changes
	v.nodes = after(v.nodes, p.merged)
	if g.block == b.end {
		p.merging, p.step = none, 0
		p.tree.End()
		l.prepared.finish(b)
	}
	return b, 1, nil
}

// putStage writes the versions of some blocks.
func (l *Layout) putStage(ctx context.Context, tx driver.Tx, p *progress, g *stage) error {
	p.live += g.live
	return l.putVersions(ctx, tx, g.drop, g.current, g.closed)
}

func (l *Layout) putVersions(ctx context.Context, tx driver.Tx, drop, current, closed []any) error {
	if err := l.sql.ExecIn(ctx, tx, "delete_current", 1, drop); err != nil {
		return err
	}
	if err := tx.Insert(ctx, currentTable, current); err != nil {
		return err
	}
	return tx.Insert(ctx, closedTable, closed)
}
