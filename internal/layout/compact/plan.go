package compact

import (
	"context"
	"math"

	"github.com/varvedb/varve/store/driver"
)

// plan is what merging a batch of blocks does to the tables. It follows from
// the blocks and from the versions in the tables, which stay as they are until
// the last step; so it can be made again, and steps can be repeated.
//
// Steps may be committed one by one. Readers are not misled in between: entities
// that blocks touch are the overlay's until the versions of these blocks are in
// the tables, which comes last, block after block; and what a query of the past is
// narrowed down by, current and past postings together, only ever grows before
// something is taken away.
type plan struct {
	merged, end int64 // the batch is the blocks above merged up to end
	endTip      tip
	changes     int64 // in these blocks

	over     *plan // of the batch before, when this was made before that was merged
	finished bool  // by a transaction that may not be committed, nor ever be

	sets   []set // as they become, past ones before current ones, sorted
	final  []set // those by which entities that ran out are found; of the last stage
	keys   []any // rows: hash, id
	stages []stage

	stories map[int64]*story
}

// newPlan makes the plan for a batch of blocks above the merged ones. It is for the
// tables as the plans in line leave them, whether they were followed or not.
func (l *Layout) newPlan(ctx context.Context, q driver.Querier, merged int64, nodes []*node, line []*plan) (*plan, error) {
	last := nodes[len(nodes)-1]
	pl := &plan{merged: merged, end: last.block, endTip: last.tip}
	if len(line) > 0 {
		pl.over = line[len(line)-1]
	}
	created := int64(math.MaxInt64) // the first one
	for _, n := range nodes {
		pl.changes += int64(len(n.changes))
		for i := range n.changes {
			if c := &n.changes[i]; c.newID != 0 && !c.nextUpdates {
				pl.keys = append(pl.keys, hashKey(c.key), c.newID)
				created = min(created, c.newID)
			}
		}
	}
	t := ahead{l: l, q: q, line: line, unused: chunkOf(created) + 1}
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
	pl.sets, pl.final, err = t.resolve(ctx, group(edits))
	return pl, err
}

// steps returns how many there are before the stages.
func (pl *plan) steps() int { return len(pl.sets) + len(pl.keys)/2 }

// fits tells whether the tables are somewhere between the plan's first step and
// its last.
func (pl *plan) fits(p *progress) bool {
	if p.merging != none && p.merging != pl.end {
		return false
	}
	staged := int(p.step) - pl.steps()
	if staged <= 0 {
		return p.merged == pl.merged
	}
	return staged < len(pl.stages) && p.merged == pl.stages[staged-1].block
}

// after returns what the plan leaves of progress.
func (pl *plan) after(p progress) progress {
	staged := max(int(p.step)-pl.steps(), 0)
	for _, s := range pl.stages[staged:] {
		p.backlog -= s.changes
		p.live += s.live
	}
	p.merged, p.merging, p.step = pl.end, none, 0
	return p
}

// share is how many edits are worth some changes, where a stage counts as some.
func (pl *plan) share(changes, stage int) int {
	return changes * (pl.steps() + stage*len(pl.stages)) / int(max(pl.changes, 1))
}
