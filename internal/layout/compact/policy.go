package compact

import (
	"cmp"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/internal/bitmap"
	"github.com/varvedb/varve/internal/lsm"
)

// This file is the policy of the work that is put off: how much may be, when it is done, by
// whom, and in which portions. What the work is is in merge.go, merge_batch.go and internal/lsm;
// who does it between blocks is store/maintain.go.
//
// Two things are put off. The backlog is the changes in the log that are not merged into the tables. What is to be
// compacted is pages of postings; it keeps nobody waiting but readers, a little. Both together are what is owed.
//
//   - Between blocks it is done in slices, each a transaction: when nobody has written for a
//     moment, or for longer while there is little, since the same pages serve more changes
//     then; and at once when the backlog is above its limit.
//   - From half of the limit on, a block merges a share in its own transaction: that costs
//     no synced write and no wait of its own, and takes no longer than a slice.
//   - What a slice writes is prepared in a read view, on another core: the batch that is being
//     merged and the next, and pieces of compactions. To do that in a write transaction takes
//     longer than a block should wait.

// All figures that were chosen are here; others follow from them.
const (
	// DefaultBacklog is the limit of the backlog. Unmerged versions are held in memory without their payloads, about
	// 500 bytes each: 8 MB. A batch is a quarter of it, so that there is a next one to prepare while one is merged.
	DefaultBacklog = 16384

	// slice is how long a transaction that merges takes steps: a block may wait for it as long as for some commits.
	// When nobody waits it takes growth times as long: each is a commit, which costs as much as many steps.
	slice = 4 * time.Millisecond

	// quiet is how long nobody must have written before a slice is done: longer than between
	// two blocks of a store that is being filled. While little is owed it is 25 times as long.
	quiet = 10 * time.Millisecond

	// page is how long a page of postings becomes, in bytes: four fill one of SQLite's.
	page = 960

	// growth is by how much what grows does. A run is compacted when newer ones are together growth-1 times as large,
	// so a posting is written anew each time that the tree has grown to four times its size: with two that were twice
	// as often, with eight a look-up would meet half as many runs again. A window of ids is growth times the one
	// before, and so a query that ends in the last had windows of a third of that before.
	growth = 4

	// maxRuns is how many runs a look-up may meet before compactions are also worked out in
	// write transactions, when nobody did so beforehand: of 400,000 entities there are 7.
	maxRuns = 24

	// pageVersions is how many versions are read in the time of a page of postings. To pass over
	// an id takes an eighth of a version.
	pageVersions = 2

	// few is how many versions are read in the time of a look-up: 6 runs, a page or two of each, and
	// a statement. Four times as many are compared rather than looked up, when terms are long.
	few = 32

	// slowRow is how long rows take, one with another, when some come from a disk.
	slowRow = 10 * time.Microsecond

	// together is how many versions or ids one statement reads at the most: with more, what a
	// limit leaves over costs as much as the statements that are saved.
	together = 512
)

// What follows from these.
const (
	defaultBatch  = DefaultBacklog / 4
	defaultSteps  = DefaultBacklog / 64
	defaultWindow = 2 * bitmap.ChunkIDs
	lull          = 25 * quiet
	short         = few / pageVersions // pages that are read for a look-up's worth
	enough        = growth * few
)

// Options bound the work that is put off. The zero value is usable.
type Options struct {
	// Backlog is the limit of the backlog; from half of it on a block merges some of it
	// itself. Zero means DefaultBacklog.
	Backlog int

	// Batch is the number of versions that are merged together, by default a quarter of
	// DefaultBacklog, or Backlog when that is less. A block is never cut apart.
	Batch int

	// Steps is the number of items that one step of a merge writes, about: pages of postings, keys, or changed
	// versions; by default 256, or Backlog when that is less. With fewer than 256 a slice is one step.
	Steps int

	// Page is how long a page of postings becomes, in bytes, by default 960.
	Page int

	// Window is how many ids a query looks at first, by default 8,192, or Backlog when that is less.
	Window int64

	// Short is how many pages beside one of each run are read to find out whether a
	// term is short, by default 16, or fewer with a small Backlog.
	Short int

	// Apart has payloads read by a query of their own where they could be joined to one version.
	Apart bool
}

func (o Options) withDefaults() Options {
	o.Backlog = cmp.Or(o.Backlog, DefaultBacklog)
	o.Batch = cmp.Or(o.Batch, min(defaultBatch, o.Backlog))
	o.Steps = cmp.Or(o.Steps, min(defaultSteps, o.Backlog))
	o.Window = cmp.Or(o.Window, min(defaultWindow, int64(o.Backlog)))
	o.Short = cmp.Or(o.Short, min(short, o.Backlog/short))
	o.Page = cmp.Or(o.Page, page)
	return o
}

// tree returns how postings are compacted: in pieces of half a step, of which 16 may wait in memory.
func (o Options) tree() lsm.Options {
	piece := min(max(o.Steps, 2), defaultSteps) / 2
	return lsm.Options{Page: o.Page, Fan: growth, Piece: piece, Waiting: 16 * piece}
}

// slice returns how long a slice is: 0 means one step.
func (o Options) slice() time.Duration {
	if o.Steps < defaultSteps {
		return 0
	}
	return slice
}

// owed is how much was put off when this process last wrote or looked: a hint.
type owed struct {
	mu      sync.Mutex
	backlog int64
	tree    lsm.Tree
}

func (o *owed) set(p *progress) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.backlog, o.tree = p.backlog, p.tree
}

func (o *owed) get() (backlog int64, tree lsm.Tree) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.backlog, o.tree
}

// owed returns how much was put off, in changes.
func (p *progress) owed() int { return int(p.backlog + compacting(&p.tree)) }

// compacting returns how many changes are as much work to merge as what is to be compacted: one for four pages.
func compacting(t *lsm.Tree) int64 { return (t.Owed() + 3) / 4 }

// much returns what is owed beside the limit. Compactions count up to it: they do not keep anybody waiting.
func (l *Layout) much() (owed, limit int64) {
	backlog, tree := l.owed.get()
	limit = int64(l.opts.Backlog)
	return max(backlog, min(backlog+compacting(&tree), limit)), limit
}

// Due implements layout.Maintained.
func (l *Layout) Due(idle time.Duration) (rest time.Duration, late bool) {
	owed, limit := l.much()
	switch {
	case owed > limit:
		return 0, true
	case owed < limit/4:
		return max(lull-idle, 0), false
	}
	return max(quiet-idle, 0), false
}

// Prepared implements layout.Maintained. A batch over another is prepared only when it is a whole one. Compactions
// are worth preparing when there is nothing else to do, and beside.
func (l *Layout) Prepared(ahead bool) bool {
	backlog, tree := l.owed.get()
	if owed, limit := l.much(); ahead && owed <= limit/4 {
		return true
	}
	if ready := l.compactor.Ready(&tree); backlog == 0 || ahead && !ready {
		return ready
	}
	list := l.batches.unfinished()
	for _, b := range list {
		backlog -= b.changes
	}
	return len(list) > 1 || len(list) > 0 && (!ahead || backlog < int64(l.opts.Batch))
}

// pace is how long a row took to read lately: from a disk some hundred microseconds, from memory a few.
type pace struct{ row atomic.Int64 }

func (p *pace) slow() bool { return p.row.Load() > int64(slowRow) }

// took notes how long some rows took that were read together.
func (p *pace) took(since time.Time, rows int) {
	if rows >= few/4 {
		p.row.Store((3*p.row.Load() + int64(time.Since(since))/int64(rows)) / 4)
	}
}

// budget is how much a transaction does of what is put off: it takes a step, and others of the
// same batch while there is time, or until it has done its share.
type budget struct {
	time        time.Duration
	wanted      func() bool // when not, it takes growth times as long; nil: somebody waits
	least, most int         // changes that it merges in any case, and at the most
}

// slice returns the budget of a transaction between blocks.
func (l *Layout) slice(wanted func() bool) budget {
	return budget{time: l.opts.slice(), wanted: wanted, most: math.MaxInt32}
}

// share returns that of a block of some changes, or false when it does nothing: three times its
// own changes and, so that a large block's share is spread over those after it, a part of what
// is above half of the limit. Above the limit it merges at least its own changes. Without a
// batch that is prepared it does nothing, unless the backlog is twice what it may be.
func (l *Layout) share(backlog, changes int) (budget, bool) {
	limit, time := l.opts.Backlog, l.opts.slice()
	if backlog <= limit/2 || time > 0 && backlog <= 2*limit && l.batches.current() == nil {
		return budget{}, false
	}
	b := budget{time: time, most: (growth-1)*changes + (backlog-limit/2)/few}
	if backlog > limit {
		b.time, b.least, b.most = growth*time, changes, b.most+(growth+1)*changes
	}
	if time == 0 {
		b.time = math.MaxInt64
	}
	return b, true
}

// allows returns whether a budget that is spent from now on allows another step, when asked
// after each how many items of a batch it has merged; 0 as long as there were compactions only.
func (l *Layout) allows(b budget) func(done int) bool {
	start, batch := time.Now(), l.batches.current()
	return func(done int) bool {
		now := l.batches.current()
		if batch == nil {
			batch = now
		}
		if batch != now {
			return false // it is done, and the next may not be prepared
		}
		took := time.Since(start)
		inTime := took < b.time || b.wanted != nil && took < growth*b.time && !b.wanted()
		switch {
		case done == 0: // compactions so far
			return inTime
		case batch == nil: // it was prepared here and is done; the next is not prepared here too
			return false
		}
		return done < l.items(batch, b.least) || inTime && done < l.items(batch, b.most)
	}
}

// items returns how many items of a batch are worth some of its changes.
func (l *Layout) items(b *batch, changes int) int {
	return changes * (b.items() + l.opts.Steps*len(b.stages)) / int(max(b.changes, 1))
}

// credit is how many pages compactions may write before it is a merge's turn again. A step of a merge earns growth
// times as many as it has written, which is more than compactions will take in the end, so that they keep up and yet
// no large one keeps merges waiting. Of a transaction that is rolled back it is kept: it need not be exact.
type credit int

func (c *credit) earn(items int64) { *c = min(*c+growth*credit(max(items, 0)), defaultBatch) }

func (c *credit) spend(pages int) { *c = max(*c-credit(pages), 0) }

// compactionTurn tells whether a compaction comes before a merge, and whether it may be
// worked out in the write transaction.
func (l *Layout) compactionTurn(p *progress) (first, inline bool) {
	return l.credit > 0 || p.backlog == 0, p.backlog == 0 || p.tree.Runs() > maxRuns
}
