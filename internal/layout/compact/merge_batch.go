package compact

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/store/driver"
)

// batch is some blocks that are merged together, and everything that this writes
// to the tables. It follows from the blocks and from the versions in the tables,
// so it can be prepared again.
//
// Steps may be committed one by one, because readers see no difference in
// between: a run of postings counts when all of it is written, at once. From then
// on the overlay answers for the entities that the blocks touch, until the
// versions of these blocks are in the tables, which comes last, block by block.
type batch struct {
	merged, end int64 // the blocks above merged and up to end
	endTip      tip
	changes     int64 // in these blocks

	// Another run of the same blocks that counted when this was prepared.
	published int64

	pages   []lsm.Page
	keys    []keyEntry
	expired stage   // written when the run begins to count
	stages  []stage // block by block

	// The state of the merge. See preparedBatch.
	run      int64 // that pages are written to, or 0 before the first step
	finished bool  // by a transaction that may be rolled back
}

// stage is the versions of some blocks. After it is written, the tables are as
// these blocks left them.
type stage struct {
	block   int64 // the last one
	changes int64
	live    int64 // by how much the rows of current_versions grow

	drop    []any // ids of current versions that change or end
	current []any // rows
	closed  []any // rows
}

// merged is what a batch does to one entity.
type merged struct {
	before, after state // closed: only the versions that the batch closes
	staged        int   // how many of these are in stages so far
	stored        bool  // in current_versions after the stages so far
}

// end closes the current version at a block.
func (m *merged) end(at int64) {
	closed := *m.after.current
	closed.to = at
	m.after.closed, m.after.current = append(m.after.closed, &closed), nil
}

// add appends the rows of an entity.
func (g *stage) add(id int64, m *merged) {
	if m.stored {
		g.drop = append(g.drop, id)
		g.live--
	}
	if m.after.current != nil {
		g.current = currentRow(g.current, m.after.current)
		g.live++
	}
	for _, v := range m.after.closed[m.staged:] {
		g.closed = closedRow(g.closed, v)
	}
	m.stored, m.staged = m.after.current != nil, len(m.after.closed)
}

// newBatch prepares the merge of blocks, the first of which are above the merged
// ones.
func (l *Layout) newBatch(ctx context.Context, q driver.Querier, p *progress, nodes []*node) (*batch, error) {
	last := nodes[len(nodes)-1]
	b := &batch{merged: p.merged, end: last.block, endTip: last.tip, published: p.tree.Published()}

	// Find the entities that the blocks touch, and which of them are stored.
	entities := map[int64]*merged{}
	var stored []any
	for _, n := range nodes {
		b.changes += int64(len(n.changes))
		for i := range n.changes {
			c := &n.changes[i]
			if c.oldID != 0 && entities[c.oldID] == nil {
				entities[c.oldID] = &merged{}
				stored = append(stored, c.oldID)
			}
			if c.creates() {
				entities[c.newID] = &merged{}
				b.keys = append(b.keys, keyEntry{hashKey(c.key), c.newID})
			}
		}
	}
	err := l.versionsIn(ctx, q, "current_by_id", stored, nil, func(v *version) error {
		*entities[v.id] = merged{before: state{current: v}, after: state{current: v}, stored: true}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, id := range stored {
		if !entities[id.(int64)].stored {
			return nil, fmt.Errorf("%w: the log changes entity %d, which is not there", driver.ErrCorrupt, id)
		}
	}

	// Follow each entity through the blocks. A stage has some 256 changes.
	var g stage
	var touched []int64
	for i, n := range nodes {
		for j := range n.changes {
			c := &n.changes[j]
			if c.oldID != 0 {
				touched = append(touched, c.oldID)
				entities[c.oldID].end(n.block)
			}
			if c.newID != 0 {
				touched = append(touched, c.newID)
				entities[c.newID].after.current = &c.next
			}
		}
		if g.changes += int64(len(n.changes)); g.changes < int64(l.opts.Steps) && i < len(nodes)-1 {
			continue
		}
		g.block = n.block
		slices.Sort(touched)
		for _, id := range slices.Compact(touched) {
			g.add(id, entities[id])
		}
		b.stages = append(b.stages, g)
		g, touched = stage{}, nil
	}

	// Close entities that expired before the end of the batch and that the
	// blocks do not touch, some at a time: the next batch closes the rest.
	expired, err := l.expired(ctx, q, p, b.end, entities)
	if err != nil {
		return nil, err
	}
	for _, v := range expired {
		m := &merged{before: state{current: v}, after: state{current: v}, stored: true}
		m.end(v.expires)
		b.expired.add(v.id, m)
		entities[v.id] = m
	}

	// Work out the run of postings.
	edits := make([]lsm.Edit, 0, 16*len(entities))
	for _, id := range slices.Sorted(maps.Keys(entities)) { // the edits are nearly sorted then
		m := entities[id]
		if edits, err = appendEdits(edits, id, &m.before, &m.after); err != nil {
			return nil, err
		}
	}
	b.pages = l.postings.Pages(edits)
	return b, nil
}

// expired returns stored versions that expire at a block or before, but those of
// some entities.
func (l *Layout) expired(ctx context.Context, q driver.Querier, p *progress, at int64, except map[int64]*merged) ([]*version, error) {
	var found []int64
	var ids []any
	span := lsm.Within(attrExpiration, encodeNumber(0), encodeNumber(uint64(at+1)))
	for posting, err := range l.postings.Walk(ctx, q, &p.tree, span, false) {
		if err == nil {
			found, err = posting.AppendIDs(found[:0])
		}
		if err != nil {
			return nil, err
		}
		for _, id := range found {
			if except[id] == nil {
				ids = append(ids, id)
			}
		}
		if len(ids) >= defaultBatch {
			break
		}
	}
	seen, list := map[int64]bool{}, []*version(nil)
	err := l.versionsIn(ctx, q, "current_by_id", ids, nil, func(v *version) error {
		if v.expires <= at && !seen[v.id] {
			seen[v.id] = true
			list = append(list, v)
		}
		return nil
	})
	slices.SortFunc(list, func(a, b *version) int { return int(a.id - b.id) })
	return list, err
}

// items returns how many items are written before the stages: pages, and the one
// that makes the run count.
func (b *batch) items() int { return len(b.pages) + 1 }

// staged returns how many stages are written. Another batch may have been
// followed so far.
func (b *batch) staged(p *progress) int {
	if b.run == 0 || b.run != p.tree.Batch() {
		return 0
	}
	return max(int(p.step)-b.items(), 0)
}

// fits reports whether the tables are somewhere between the batch's first step
// and its last, and the log has its blocks.
func (b *batch) fits(p *progress, nodes []*node) bool {
	if p.merging != none && p.merging != b.end {
		return false
	}
	if other := p.tree.Published(); other != 0 && other != b.run && other != b.published {
		return false // another batch has closed the expired entities
	}
	merged, staged := b.merged, b.staged(p)
	if staged >= len(b.stages) {
		return false
	}
	if staged > 0 {
		merged = b.stages[staged-1].block
	}
	return p.merged == merged && slices.ContainsFunc(nodes, func(n *node) bool { return n.tip == b.endTip })
}

// begin makes p merge the batch from its first step on, unless p does already.
func (b *batch) begin(p *progress) {
	b.finished = false // a transaction that finished it was rolled back
	if p.merging != none && b.run != 0 && b.run == p.tree.Batch() {
		return
	}
	p.tree.Begin()
	p.merging, p.step, b.run = b.end, 0, p.tree.Batch()
}

// preparedBatch is the batch that was prepared last, or none. It guards the
// state of the merge in the batch, because Prepare reads it while the writer merges.
type preparedBatch struct {
	mu    sync.Mutex
	batch *batch
}

func (s *preparedBatch) set(b *batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batch = b
}

// unfinished reports whether there is a batch to merge.
func (s *preparedBatch) unfinished() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.batch != nil && !s.batch.finished
}

// fits reports whether the batch is one for a view.
func (s *preparedBatch) fits(p *progress, nodes []*node) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.batch != nil && s.batch.fits(p, nodes)
}

// follow returns the batch if a transaction can merge it, and begins it in p.
func (s *preparedBatch) follow(p *progress, nodes []*node) *batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.batch == nil || !s.batch.fits(p, nodes) {
		return nil
	}
	s.batch.begin(p)
	return s.batch
}

// begin makes a batch the prepared one and begins it in p.
func (s *preparedBatch) begin(b *batch, p *progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batch = b
	b.begin(p)
}

func (s *preparedBatch) finish(b *batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.finished = true
}
