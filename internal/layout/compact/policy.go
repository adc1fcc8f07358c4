package compact

import (
	"sync"
	"time"

	"github.com/varvedb/varve/internal/bitmap"
	"github.com/varvedb/varve/internal/lsm"
)

// This file is the policy of the work that is put off: how much may be, when it is done, by
// whom, and in which portions. What the work is is in plan.go, merge.go and internal/lsm;
// who does it between blocks is store/maintain.go.
//
// Two things are put off. The backlog is the changes in the log that are not merged into
// the tables. What is to be compacted is pages of postings; it keeps nobody waiting but
// readers, a little. Both together are what is owed.
//
//   - Between blocks it is done in slices, each a transaction: when nobody has written for a
//     moment, or for longer while there is little, since the same pages serve more changes
//     then; and at once when the backlog is above its limit.
//   - From half of the limit on, a block merges a share in its own transaction: that costs
//     no synced write and no wait of its own, and takes no longer than a slice.
//   - What a slice writes is prepared in a read view, on another core: up to two batches
//     of blocks, and pieces of compactions. To do that in a write transaction takes longer
//     than a block should wait.

// Options bound the work that is put off. The zero value is usable.
type Options struct {
	// Backlog is the limit of the backlog; from half of it on a block merges some of it
	// itself. Zero means DefaultBacklog. Unmerged versions are held in memory without
	// their payloads.
	Backlog int

	// Batch is the number of versions that are merged together; zero means
	// DefaultBatch, or Backlog when that is less. A block is never cut apart.
	Batch int

	// Steps is the number of items that one step of a merge writes, about: pages of
	// postings, keys, or changed versions. Zero means DefaultSteps, or Backlog when that
	// is less.
	Steps int

	// Slice is how long a transaction that merges takes steps; zero means
	// DefaultSlice, or with a Backlog below DefaultSteps one step.
	Slice time.Duration

	// Page is how long a page of postings becomes, in bytes; zero means DefaultPage.
	Page int

	// Window is how many ids a query looks at first; zero means DefaultWindow, or Backlog
	// when that is less.
	Window int64

	// Short is how many pages beside one of each run are read to find out whether a
	// term is short; zero means DefaultShort, or fewer with a small Backlog.
	Short int

	// Apart has payloads read by a query of their own where they could be joined to one
	// version.
	Apart bool
}

// The defaults of Options. Four pages of postings fill one of SQLite's.
const (
	DefaultBacklog = 16384
	DefaultBatch   = 4096
	DefaultSteps   = 256
	DefaultSlice   = 4 * time.Millisecond
	DefaultPage    = 960
	DefaultWindow  = 2 * bitmap.ChunkIDs
	DefaultShort   = 16
)

func (o Options) withDefaults() Options {
	if o.Backlog == 0 {
		o.Backlog = DefaultBacklog
	}
	if o.Batch == 0 {
		o.Batch = min(DefaultBatch, o.Backlog)
	}
	if o.Steps == 0 {
		o.Steps = min(DefaultSteps, o.Backlog)
	}
	if o.Window == 0 {
		o.Window = min(DefaultWindow, int64(o.Backlog))
	}
	if o.Short == 0 {
		o.Short = min(DefaultShort, o.Backlog/DefaultShort)
	}
	if o.Slice == 0 && o.Backlog >= DefaultSteps {
		o.Slice = DefaultSlice
	}
	if o.Page == 0 {
		o.Page = DefaultPage
	}
	return o
}

// tree returns how postings are compacted.
func (o Options) tree() lsm.Options {
	return lsm.Options{Page: o.Page, Fan: fan, Piece: min(piecePages, max(o.Steps/2, 1)), Waiting: waitingPages}
}

const (
	// While less is owed than this part of the backlog's limit, it can wait.
	littlePart = 4

	// How long nobody must have written before a slice is done, and while little is owed.
	quiet = 10 * time.Millisecond
	lull  = 250 * time.Millisecond

	// How many times its time a slice may take while nobody waits: each is a commit, which
	// costs as much as many steps.
	longSlices = 4

	// How many batches are prepared: the one that is being merged, and the next, meanwhile.
	ahead = 2

	// How long a writer waits for that above the limit: on a busy machine the thinker would
	// lag behind for ever, until a block had to plan itself, which takes much longer.
	holdFor = 25 * time.Millisecond

	// How long the thinker waits for a reader: the caller may hold all of them. Without
	// one the work is done all the same, with the writer waiting longer.
	patience = 100 * time.Millisecond

	// From which part of the limit on a block merges a share in its own transaction, and
	// from how many times the limit on even without a plan.
	helpPart = 2
	farAbove = 2

	// That share, in times the block's own changes: up to the limit, and above it; and the
	// part that it takes along of what is above helpPart, so that a large block's share is
	// spread over those after it.
	share, largeShare = 3, 8
	spread            = 32

	// How many expired entities one batch takes along, about.
	maxExpired = 4096

	// A step of a merge earns some times as much of compaction, which is more than it will
	// take in the end, so that compactions keep up and yet no large one keeps merges
	// waiting.
	compactionShare = 4
	maxCredit       = 4096

	// A run of postings is compacted with the newer ones when these are together fan-1 times
	// as large, so a posting is written anew about each time that the tree has grown to fan
	// times its size. Then, in pages: a piece of that, and what may wait in memory.
	fan          = 4
	piecePages   = 128
	waitingPages = 2048

	// How many runs the tree may have before compactions are also worked out in write
	// transactions, when nobody did so beforehand.
	maxRuns = 24

	// How many pages to compact are as much work as merging a change.
	pagesOfChange = 4
)

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

func compacting(t *lsm.Tree) int64 { return (t.Owed() + pagesOfChange - 1) / pagesOfChange }

// much returns what is owed beside the limit. Compactions count up to it: they do not keep
// anybody waiting.
func (l *Layout) much() (owed, limit int64) {
	backlog, tree := l.owed.get()
	limit = int64(l.opts.Backlog)
	return max(backlog, min(backlog+compacting(&tree), limit)), limit
}

// Rest implements layout.Maintained.
func (l *Layout) Rest(idle time.Duration) time.Duration {
	owed, limit := l.much()
	switch {
	case owed > limit:
		return 0
	case owed < limit/littlePart:
		return max(lull-idle, 0)
	}
	return max(quiet-idle, 0)
}

// Hold implements layout.Maintained.
func (l *Layout) Hold() time.Duration {
	if owed, limit := l.much(); owed <= limit {
		return 0
	}
	return holdFor
}

// Patience implements layout.Maintained.
func (l *Layout) Patience() time.Duration { return patience }

// Prepared implements layout.Maintained. A batch over another is planned only when
// it is a whole one. Compactions are worth preparing when there is nothing else to
// do, and beside.
func (l *Layout) Prepared(further bool) bool {
	backlog, tree := l.owed.get()
	if owed, limit := l.much(); further && owed <= limit/littlePart {
		return true
	}
	ready, left, batches := l.compactor.Ready(&tree), backlog, 1
	if further {
		batches = ahead
	}
	if backlog == 0 || further && !ready {
		return ready
	}
	list := l.batches.unfinished()
	for _, pl := range list {
		left -= pl.changes
	}
	return len(list) >= batches || len(list) > 0 && left < int64(l.opts.Batch)
}

// worthPlanning tells whether the next batch is to be planned when so many are that are not
// merged, of so many in a line.
func (l *Layout) worthPlanning(backlog int64, unmerged, line int) bool {
	return backlog > 0 && unmerged < ahead && (line == 0 || backlog >= int64(l.opts.Batch))
}

// goesOn returns whether a slice that began now takes another step, when asked after each.
func (l *Layout) goesOn(wanted func() bool) func(done int) bool {
	start := time.Now()
	return func(int) bool {
		took := time.Since(start)
		if backlog, _ := l.owed.get(); l.opts.Slice > 0 && backlog > 0 && l.batches.current() == nil {
			return false // the batch is done; the next is prepared first
		}
		return took < l.opts.Slice || took < longSlices*l.opts.Slice && !wanted()
	}
}

// relief returns whether a block of some changes takes another step, when asked after each
// how many items it has merged, or nil when it takes none.
func (l *Layout) relief(backlog, changes int) func(done int) bool {
	limit := l.opts.Backlog
	above := backlog - limit/helpPart
	pl := l.batches.current()
	if above <= 0 || pl == nil && l.opts.Slice > 0 && backlog <= farAbove*limit {
		return nil
	}
	least, due, patience := 0, share*changes+above/spread, l.opts.Slice
	if backlog > limit {
		least, due, patience = changes, largeShare*changes+above/spread, longSlices*l.opts.Slice
	}
	start := time.Now()
	return func(done int) bool {
		patient := patience == 0 || time.Since(start) < patience
		if done == 0 { // compactions so far
			return patient
		}
		now := l.batches.current()
		if pl == nil {
			pl = now
		}
		if pl == nil || pl != now || done >= l.worth(pl, due) {
			return false
		}
		return done < l.worth(pl, least) || patient
	}
}

// worth returns how many items are worth some changes, where a stage counts as some.
func (l *Layout) worth(pl *batch, changes int) int {
	return changes * (pl.items() + l.opts.Steps*len(pl.stages)) / int(max(pl.changes, 1))
}

// credit is how many pages compactions may write before it is a merge's turn again. Of a
// transaction that is rolled back it is kept: it need not be exact.
type credit int

func (c *credit) earn(items int64) {
	*c = min(*c+compactionShare*credit(max(items, 0)), maxCredit)
}

func (c *credit) spend(pages int) { *c = max(*c-credit(pages), 0) }

// compactionTurn tells whether a compaction comes before a merge, and whether it may be
// worked out in the write transaction.
func (l *Layout) compactionTurn(p *progress) (first, inline bool) {
	return l.credit > 0 || p.backlog == 0, p.backlog == 0 || p.tree.Runs() > maxRuns
}
