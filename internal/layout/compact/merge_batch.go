package compact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/store/driver"
)

// batch is some blocks that are merged together, and what that does to the tables. It follows
// from the blocks and from the versions in the tables, so it can be prepared again.
//
// Steps may be committed one by one. Readers are not misled in between: a run of postings counts when it is written,
// all at once; and from then on entities that blocks touch are the overlay's until the versions of these blocks are
// in the tables, which comes last, block after block.
type batch struct {
	merged, end int64 // the blocks are those above merged up to end
	endTip      tip
	changes     int64 // in these blocks

	over     *batch // the one before, when this was prepared before that was merged
	finished bool   // by a transaction that may not be committed, nor ever be
	run      int64  // that postings are written to, when it was begun: lsm.Tree.Batch
	seen     int64  // if another of the same blocks had begun to count when this was prepared
	again    bool   // another of the same blocks was begun: what it wrote of keys is there

	pages   []lsm.Page
	keys    []any // rows: hash, id
	expired stage // entities that ran out; when the run begins to count
	stages  []stage

	stories map[int64]*story
}

// story is what a batch does to one entity.
type story struct {
	before, after state // of closed versions, after has those that the batch adds

	touched bool // since the last stage
	staged  int  // of closed: those of the stages so far
	stored  bool // in current_versions after the stages so far
}

func (s *story) end(at int64) {
	was := *s.after.current
	was.to = at
	s.after.closed, s.after.current = append(s.after.closed, &was), nil
}

// stage is the versions of some blocks: what a merge writes last. After it, the tables are as these blocks left them.
type stage struct {
	block   int64 // the last one
	changes int64
	live    int64 // by how much the rows of current_versions grow

	drop    []any // ids of current versions that change or end
	current []any // rows
	closed  []any // rows
}

// add appends an entity's rows.
func (g *stage) add(id int64, s *story) {
	if s.stored {
		g.drop = append(g.drop, id)
		g.live--
	}
	if s.after.current != nil {
		g.current = currentRow(g.current, s.after.current)
		g.live++
	}
	for _, v := range s.after.closed[s.staged:] {
		g.closed = closedRow(g.closed, v)
	}
	s.stored, s.staged, s.touched = s.after.current != nil, len(s.after.closed), false
}

// preparer prepares a batch. It reads the tables as the batches in line leave them, whether
// they are merged or not, wholly or in part: what a batch changes is taken from it, and the
// rest from a view in which nothing else has changed it.
type preparer struct {
	*batch
	l     *Layout
	q     driver.Querier
	tree  *lsm.Tree
	line  []*batch // one after another
	order []int64  // entities
}

// newBatch prepares a batch of blocks above the merged ones.
func (l *Layout) newBatch(ctx context.Context, q driver.Querier, p *progress, nodes []*node, line []*batch) (*batch, error) {
	last := nodes[len(nodes)-1]
	b := preparer{l: l, q: q, tree: &p.tree, line: line, batch: &batch{merged: p.merged, end: last.block, endTip: last.tip, seen: p.tree.Published()}}
	if len(line) > 0 {
		b.over = line[len(line)-1]
	}
	if err := b.begin(ctx, nodes); err != nil {
		return nil, err
	}
	b.follow(nodes, l.opts.Steps)
	if err := b.expire(ctx); err != nil {
		return nil, err
	}
	edits := make([]lsm.Edit, 0, 16*len(b.order))
	for _, id := range b.order {
		s := b.stories[id]
		var err error
		if edits, err = appendEdits(edits, id, &s.before, &s.after); err != nil {
			return nil, err
		}
	}
	b.pages = l.postings.Pages(edits)
	return b.batch, nil
}

// begin starts the stories of the entities that blocks touch.
func (b *preparer) begin(ctx context.Context, nodes []*node) error {
	b.stories = map[int64]*story{}
	var stored []int64
	for _, n := range nodes {
		b.changes += int64(len(n.changes))
		for i := range n.changes {
			c := &n.changes[i]
			if c.oldID != 0 && b.at(c.oldID) {
				stored = append(stored, c.oldID)
			}
			if c.creates() {
				b.at(c.newID)
				b.keys = append(b.keys, hashKey(c.key), c.newID)
			}
		}
	}
	err := b.versions(ctx, stored, func(v *version) {
		s := b.stories[v.id]
		s.before.current, s.after.current, s.stored = v, v, true
	})
	for _, id := range stored {
		if err == nil && !b.stories[id].stored {
			err = fmt.Errorf("%w: the log changes entity %d, which is not there", driver.ErrCorrupt, id)
		}
	}
	slices.Sort(b.order)
	return err
}

// at begins a story unless it has begun.
func (b *preparer) at(id int64) bool {
	if b.stories[id] != nil {
		return false
	}
	b.stories[id] = &story{}
	b.order = append(b.order, id)
	return true
}

// follow follows each entity through the blocks and makes the stages, each of a number of changes.
func (b *preparer) follow(nodes []*node, changes int) {
	var touched []int64
	touch := func(id int64) *story {
		s := b.stories[id]
		if !s.touched {
			s.touched = true
			touched = append(touched, id)
		}
		return s
	}
	var g stage
	for at, n := range nodes {
		for i := range n.changes {
			c := &n.changes[i]
			if c.oldID != 0 {
				touch(c.oldID).end(n.block)
			}
			if c.newID != 0 {
				touch(c.newID).after.current = &c.next
			}
		}
		if g.changes += int64(len(n.changes)); g.changes < int64(changes) && at < len(nodes)-1 {
			continue
		}
		g.block = n.block
		slices.Sort(touched)
		for _, id := range touched {
			g.add(id, b.stories[id])
		}
		b.stages = append(b.stages, g)
		g, touched = stage{}, touched[:0]
	}
}

// expire closes entities that ran out before the batch's end and that it does not touch, in a stage of their own.
func (b *preparer) expire(ctx context.Context) error {
	var over [][]lsm.Page
	for _, other := range b.line {
		over = append(over, other.pages)
	}
	var ids, some []int64
	span := lsm.Within(attrExpiration, encodeNumber(0), encodeNumber(uint64(b.end+1)))
	err := b.l.postings.Scan(ctx, b.q, b.tree, over, span, func(p *lsm.Posting) (err error) {
		some, err = p.AppendIDs(some[:0])
		for _, id := range some {
			if b.stories[id] == nil {
				ids = append(ids, id)
			}
		}
		return errors.Join(err, stoppedIf(len(ids) >= defaultBatch))
	})
	if err != nil && !errors.Is(err, errStopped) {
		return err
	}
	from := len(b.order)
	err = b.versions(ctx, ids, func(v *version) {
		if v.expires <= b.end && b.at(v.id) {
			s := b.stories[v.id]
			s.before.current, s.after.current, s.stored = v, v, true
			s.end(v.expires)
		}
	})
	slices.Sort(b.order[from:])
	for _, id := range b.order[from:] {
		b.expired.add(id, b.stories[id])
	}
	slices.Sort(b.order)
	return err
}

// versions reads rows of current_versions.
func (b *preparer) versions(ctx context.Context, ids []int64, see func(*version)) error {
	var stored []any
next:
	for _, id := range ids {
		for _, other := range slices.Backward(b.line) {
			if s := other.stories[id]; s != nil {
				if v := s.after.current; v != nil {
					see(v)
				}
				continue next
			}
		}
		stored = append(stored, id)
	}
	return b.l.versionsIn(ctx, b.q, "current_by_id", stored, nil, func(v *version) error {
		see(v)
		return nil
	})
}

// items returns how many a merge writes before the stages: pages, keys, and the one that makes the run count.
func (b *batch) items() int { return len(b.pages) + len(b.keys)/2 + 1 }

// staged returns how many stages are done.
func (b *batch) staged(p *progress) int {
	if b.run == 0 || b.run != p.tree.Batch() {
		return 0 // it is another that was followed so far
	}
	return max(int(p.step)-b.items(), 0)
}

// fits tells whether the tables are somewhere between the batch's first step and
// its last, and the log has its blocks.
func (b *batch) fits(p *progress, nodes []*node) bool {
	if p.merging != none && p.merging != b.end {
		return false
	}
	if other := p.tree.Published(); other != 0 && other != b.run && other != b.seen {
		return false // entities that ran out are gone already
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

// leave makes of progress what the batch leaves of it.
func (b *batch) leave(p *progress) {
	for _, s := range b.stages[b.staged(p):] {
		p.backlog -= s.changes
	}
	p.merged, p.merging, p.step = b.end, none, 0
	p.tree.End()
}

// start makes p follow the batch, from its first step on unless it follows it already.
func (b *batch) start(p *progress) {
	if p.merging != none && b.run != 0 && b.run == p.tree.Batch() {
		return
	}
	p.tree.Begin()
	b.again = p.merging != none
	p.merging, p.step, b.run = b.end, 0, p.tree.Batch()
}

// batches are the one that is being merged and the next, in this order. Over,
// finished, run and again of each are theirs to guard.
type batches struct {
	mu   sync.Mutex
	list []*batch
}

func (s *batches) set(list ...*batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = list
}

// current returns the batch that is being merged, or nil.
func (s *batches) current() *batch {
	if list := s.unfinished(); len(list) > 0 {
		return list[0]
	}
	return nil
}

func (s *batches) unfinished() []*batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.list), func(b *batch) bool { return b.finished })
}

func (s *batches) finish(b *batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.finished = true
}

// follow returns the batch that a transaction is to merge, if it is prepared. A batch over another counts only when
// this process followed the other: another process may have cut the log into other batches.
func (s *batches) follow(p *progress, nodes []*node) *batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.list {
		if b.fits(p, nodes) && (b.over == nil || b.over.finished) {
			b.finished = false // else the transaction that did so was rolled back
			b.start(p)
			return b
		}
	}
	return nil
}

// line returns the batches that a view of what is committed has yet to merge, one after another, and
// makes of progress and nodes what they leave of them.
func (s *batches) line(p *progress, nodes *[]*node) (list []*batch, unfinished int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		i := slices.IndexFunc(s.list, func(b *batch) bool {
			return b.fits(p, *nodes) && (len(list) > 0 || b.over == nil || b.over.finished)
		})
		if i < 0 {
			return list, unfinished
		}
		b := s.list[i]
		if len(list) == 0 {
			b.over = nil // what it was made over is committed
		}
		if !b.finished {
			unfinished++
		}
		list = append(list, b)
		b.leave(p)
		*nodes = after(*nodes, b.end)
	}
}
