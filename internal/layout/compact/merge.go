package compact

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/varvedb/varve/store/driver"
)

// Owed implements layout.Maintained.
func (l *Layout) Owed(ctx context.Context, q driver.Querier) (int, error) {
	p, err := l.readProgress(ctx, q)
	if err != nil {
		return 0, err // and the hint stays: that nothing was read says nothing of the debt
	}
	l.owed.set(&p)
	return p.owed(), nil
}

// Maintain implements layout.Maintained: one slice of merging.
func (l *Layout) Maintain(ctx context.Context, tx driver.Tx, wanted func() bool) (owed int, err error) {
	v, err := l.newView(ctx, tx, 0)
	if err != nil || v.p.owed() == 0 {
		return 0, err
	}
	if err := l.maintain(ctx, tx, v, l.slice(wanted)); err != nil {
		return 0, err
	}
	return v.p.owed(), l.writeProgress(ctx, tx, &v.p)
}

// drain merges everything. Compactions are left for later.
func (l *Layout) drain(ctx context.Context, tx driver.Tx, v *view) error {
	for v.p.backlog > 0 {
		if err := l.step(ctx, tx, v); err != nil {
			return err
		}
	}
	return nil
}

// maintain does what is put off, at least one step, as far as a budget goes.
func (l *Layout) maintain(ctx context.Context, tx driver.Tx, v *view, b budget) error {
	more := l.allows(b)
	for done, goOn := 0, true; goOn && v.p.owed() > 0; goOn = more(done) {
		did := 0
		first, inline := l.compactionTurn(&v.p)
		if first {
			var err error
			if did, err = l.compactor.Step(ctx, tx, &v.p.tree, inline); err != nil {
				return err
			}
			l.credit.spend(did)
		}
		if did == 0 {
			before := v.p.step
			if err := l.step(ctx, tx, v); err != nil {
				return err
			}
			l.credit.earn(v.p.step - before)
			done += l.opts.Steps
		}
	}
	return nil
}

// step does the next step of the batch that is being merged, or of a new one. A batch
// that could not be merged is prepared anew.
func (l *Layout) step(ctx context.Context, tx driver.Tx, v *view) error {
	err := l.mergeStep(ctx, tx, v)
	if err != nil {
		l.batches.set()
	}
	return err
}

func (l *Layout) mergeStep(ctx context.Context, tx driver.Tx, v *view) error {
	p := &v.p
	b, err := l.batchFor(ctx, tx, p, v.nodes)
	if err != nil {
		return err
	}
	pages, keys := len(b.pages), len(b.keys)/2
	switch done := int(p.step); {
	case done < pages:
		n := min(l.opts.Steps, pages-done)
		p.step += int64(n)
		return l.postings.Insert(ctx, tx, p.tree.Batch(), b.pages[done:done+n])
	case done < pages+keys:
		done -= pages
		n := min(l.opts.Steps, keys-done)
		p.step += int64(n)
		rows := b.keys[2*done : 2*(done+n)]
		if b.again {
			return l.sql.ExecIn(ctx, tx, "insert_missing_keys", 2, rows)
		}
		return tx.Insert(ctx, keysTable, rows)
	case done < b.items():
		p.step++
		l.postings.Publish(&p.tree, pages)
		return l.putStage(ctx, tx, p, &b.expired)
	}
	g := &b.stages[int(p.step)-b.items()]
	if err := l.putStage(ctx, tx, p, g); err != nil {
		return err
	}
	if err := l.sql.Exec(ctx, tx, "trim_log", g.block); err != nil {
		return err
	}
	p.step++
	p.merged = g.block
	p.backlog -= g.changes
	v.nodes = after(v.nodes, p.merged)
	if g.block == b.end {
		p.merging, p.step = none, 0
		p.tree.End()
		l.batches.finish(b)
	}
	return nil
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

// batchFor returns the batch that is being merged, or the next.
func (l *Layout) batchFor(ctx context.Context, tx driver.Tx, p *progress, nodes []*node) (*batch, error) {
	if b := l.batches.follow(p, nodes); b != nil {
		return b, nil
	}
	b, err := l.nextBatch(ctx, tx, p, nodes, nil)
	if err != nil {
		return nil, err
	}
	b.start(p)
	l.batches.set(b)
	return b, nil
}

// Prepare implements layout.Maintained: it prepares the next batch that is not prepared yet, and
// works out pieces of compactions.
func (l *Layout) Prepare(ctx context.Context, q driver.Querier) error {
	v, err := l.newView(ctx, q, 0)
	if err != nil {
		return err
	}
	return errors.Join(l.prepareMerge(ctx, v.q, v.p, v.nodes), l.compactor.Prepare(ctx, q, &v.p.tree))
}

func (l *Layout) prepareMerge(ctx context.Context, q driver.Querier, p progress, nodes []*node) error {
	line, unmerged := l.batches.line(&p, &nodes)
	if p.backlog == 0 || unmerged > 1 || len(line) > 0 && p.backlog < int64(l.opts.Batch) {
		return nil
	}
	b, err := l.nextBatch(ctx, q, &p, nodes, line)
	if err == nil {
		l.batches.set(slices.Concat(line, []*batch{b})...)
	}
	return err
}

// nextBatch prepares the batch that is being merged, or the next one.
func (l *Layout) nextBatch(ctx context.Context, q driver.Querier, p *progress, nodes []*node, line []*batch) (*batch, error) {
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
	return l.newBatch(ctx, q, p, nodes[:n], line)
}
