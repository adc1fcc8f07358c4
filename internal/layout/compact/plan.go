package compact

import (
	"context"

	"github.com/varvedb/varve/store/driver"
)

// plan is what merging a batch of blocks does to the tables. It follows from the
// blocks and from the versions in the tables, so it can be made again.
//
// Steps may be committed one by one. Readers are not misled in between: a run of
// postings counts when it is written, all at once; and from then on entities that
// blocks touch are the overlay's until the versions of these blocks are in the tables,
// which comes last, block after block.
type plan struct {
	merged, end int64 // the batch is the blocks above merged up to end
	endTip      tip
	changes     int64 // in these blocks

	over     *plan // of the batch before, when this was made before that was merged
	finished bool  // by a transaction that may not be committed, nor ever be

	run  int64 // that current postings are written to; see progress.batch
	seen int64 // of the batch, if another had begun to count when this was made

	pages   [trees][]page
	keys    []any // rows: hash, id
	expired stage // entities that ran out; when the runs begin to count
	stages  []stage

	stories map[int64]*story
}

// newPlan makes the plan for a batch of blocks above the merged ones. It is for the
// tables as the plans in line leave them, whether they were followed or not.
func (l *Layout) newPlan(ctx context.Context, q driver.Querier, p *progress, nodes []*node, line []*plan) (*plan, error) {
	last := nodes[len(nodes)-1]
	pl := &plan{merged: p.merged, end: last.block, endTip: last.tip, seen: p.counting()}
	if len(line) > 0 {
		pl.over = line[len(line)-1]
	}
	for _, n := range nodes {
		pl.changes += int64(len(n.changes))
		for i := range n.changes {
			if c := &n.changes[i]; c.newID != 0 && !c.nextUpdates {
				pl.keys = append(pl.keys, hashKey(c.key), c.newID)
			}
		}
	}
	t := ahead{l: l, q: q, tree: &p.trees[currentTree], line: line}
	order, err := pl.follow(ctx, t, nodes, l.opts.Steps)
	if err != nil {
		return nil, err
	}
	if order, err = pl.addExpired(ctx, t, order); err != nil {
		return nil, err
	}
	edits := make([]edit, 0, 32*len(order))
	for _, id := range order {
		if edits, err = pl.stories[id].edits(edits, id); err != nil {
			return nil, err
		}
	}
	pl.pages = pagesOf(edits)
	return pl, nil
}

// steps returns how many there are before the stages. The last of them makes the runs
// count.
func (pl *plan) steps() int { return pl.written() + len(pl.keys)/2 + 1 }

// written is how many pages of postings are written.
func (pl *plan) written() (n int) {
	for _, pages := range pl.pages {
		n += len(pages)
	}
	return n
}

// staged returns how many stages are done.
func (pl *plan) staged(p *progress) int {
	if pl.run == 0 || pl.run != p.batch() {
		return 0 // it is another plan that was followed so far
	}
	return max(int(p.step)-pl.steps(), 0)
}

// fits tells whether the tables are somewhere between the plan's first step and
// its last.
func (pl *plan) fits(p *progress) bool {
	if p.merging != none && p.merging != pl.end {
		return false
	}
	if other := p.counting(); other != 0 && other != pl.run && other != pl.seen {
		return false // entities that ran out are gone already
	}
	staged := pl.staged(p)
	if staged == 0 {
		return p.merged == pl.merged
	}
	return staged < len(pl.stages) && p.merged == pl.stages[staged-1].block
}

// after returns what the plan leaves of progress.
func (pl *plan) after(p progress) progress {
	for _, s := range pl.stages[pl.staged(&p):] {
		p.backlog -= s.changes
	}
	p.merged, p.merging, p.step = pl.end, none, 0
	p.trees.end()
	return p
}

// share is how many edits are worth some changes, where a stage counts as some.
func (pl *plan) share(changes, stage int) int {
	return changes * (pl.steps() + stage*len(pl.stages)) / int(max(pl.changes, 1))
}
