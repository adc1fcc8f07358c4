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

// This file is the policy of the work that is put off: how much of it may wait,
// when it is done, by whom, and in which portions. The work itself is in merge.go,
// merge_batch.go and internal/lsm; store/maintain.go does it between blocks.
//
// Two kinds of work are put off. The backlog is the changes in the log that are
// not merged into the tables. The compaction debt is the pages of postings that
// are still to be compacted; only readers notice it, and only a little. The debt
// is both.
//
//   - Between blocks the work is done in slices, each a transaction: when no
//     writer has come for a moment, or for longer while the debt is small, because
//     the same pages then serve more changes; and at once when the backlog is
//     above its limit.
//   - From half of the limit on, a block merges a share in its own transaction.
//     This costs no further sync and takes no longer than a slice.
//   - A batch is prepared in a read view on another core. To prepare it in a write
//     transaction would take longer than a block should wait.

// All constants that were chosen are here. The others follow from them.
const (
	// DefaultBacklog is the limit of the backlog, in changes. Unmerged versions are
	// held in memory without their payloads, about 500 bytes each: 8 MB. A batch is
	// a quarter of it, so that the next blocks have room while a batch is merged.
	DefaultBacklog = 16384

	// sliceTime is how long a transaction that merges takes further steps: a block
	// may wait for it as long as for some commits. When no writer waits it takes
	// growth times as long, because a commit costs as much as many steps.
	sliceTime = 4 * time.Millisecond

	// idleBeforeMerge is how long no writer must have come before a slice: longer
	// than between two blocks of a store that is being filled.
	idleBeforeMerge = 10 * time.Millisecond

	// idleBeforeSmallMerge is the same while the debt is below a quarter of the limit.
	idleBeforeSmallMerge = 25 * idleBeforeMerge

	// pageBytes is how long a page of postings becomes: four fill one of SQLite's.
	pageBytes = 960

	// growth is the factor between levels. A run is compacted when the newer ones
	// are together growth-1 times as large, so a posting is written again each time
	// the tree has grown to four times its size: with a factor of two that were
	// twice as often, with eight a look-up would meet half as many runs again. A
	// window of ids is growth times the one before.
	growth = 4

	// keyBacklogs is how many keys may wait for their table, in Options.Backlog:
	// 4.5 MB of memory. A leaf of the table is written once for all of its keys that
	// came meanwhile: some forty in a store of 700,000 entities.
	keyBacklogs = 16

	// keyRuns is into how many runs the keys that wait are divided, about.
	keyRuns = 8

	// keyBytes is how long a key in a run is, where ids are below two million.
	keyBytes = 11

	// maxRuns is how many runs a rework may write before it compacts them. Of
	// 400,000 entities there are 7 runs.
	maxRuns = 24

	// pageCost is how many versions are read in the time of a page of postings.
	// Passing over an id takes an eighth of a version.
	pageCost = 2

	// lookupCost is how many versions are read in the time of a look-up: 6 runs, a
	// page or two of each, and a statement.
	lookupCost = 32

	// minCandidates is how many candidates are compared rather than narrowed down
	// by another look-up, because a long term has several pages.
	minCandidates = growth * lookupCost

	// slowRow is how long a row takes on average when some rows come from a disk.
	slowRow = 10 * time.Microsecond

	// maxPerStatement is how many versions or ids one statement reads at most: with
	// more, reading beyond a limit costs as much as the statements that are saved.
	maxPerStatement = 512
)

// The defaults of Options.
const (
	defaultBatch  = DefaultBacklog / 4
	defaultSteps  = DefaultBacklog / 64
	defaultWindow = 2 * bitmap.ChunkIDs
	defaultShort  = lookupCost / pageCost // as many pages as a look-up costs
)

// Options bound the work that is put off. The zero value is usable.
type Options struct {
	// Backlog is the limit of the backlog, in changes; from half of it on a block
	// merges some of it itself. Zero means DefaultBacklog.
	Backlog int

	// Batch is how many changes are merged together, by default a quarter of
	// DefaultBacklog, or Backlog when that is less. A block is never divided.
	Batch int

	// Steps is how many items one step of a merge writes, about: pages of postings,
	// keys, or changes; by default 256, or Backlog when that is less. With fewer
	// than 256 a slice is one step.
	Steps int

	// Page is how long a page of postings becomes, in bytes, by default 960.
	Page int

	// Window is how many ids a query reads first, by default 8,192, or Backlog when
	// that is less.
	Window int64

	// Short is how many pages, in addition to one of each run, are read to find out
	// whether a term is short, by default 16, or fewer with a small Backlog.
	Short int

	// Apart reads payloads by a query of their own instead of joining them to a version.
	Apart bool
}

func (o Options) withDefaults() Options {
	o.Backlog = cmp.Or(o.Backlog, DefaultBacklog)
	o.Batch = cmp.Or(o.Batch, min(defaultBatch, o.Backlog))
	o.Steps = cmp.Or(o.Steps, min(defaultSteps, o.Backlog))
	o.Window = cmp.Or(o.Window, min(defaultWindow, int64(o.Backlog)))
	o.Short = cmp.Or(o.Short, min(defaultShort, o.Backlog/defaultShort))
	o.Page = cmp.Or(o.Page, pageBytes)
	return o
}

// tree returns how postings are compacted: in pieces of half a step.
func (o Options) tree() lsm.Options {
	return lsm.Options{Page: o.Page, Fan: growth, Piece: min(max(o.Steps, 2), defaultSteps) / 2}
}

// recentKeys returns how many keys wait before they are in the table.
func (o Options) recentKeys() int { return keyBacklogs * o.Backlog }

// debt is the work that was put off when this process last read or wrote the
// progress. Another process may have changed it since.
type debt struct {
	mu      sync.Mutex
	backlog int64
	tree    lsm.Tree
}

func (d *debt) set(p *progress) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.backlog, d.tree = p.backlog, p.tree
}

func (d *debt) get() (backlog int64, tree lsm.Tree) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.backlog, d.tree
}

// debt returns the backlog and the compaction debt, in changes.
func (p *progress) debt() int { return int(p.backlog + compactionDebt(&p.tree)) }

// compactionDebt returns how many changes are as much work to merge as the
// compactions that are due: one for four pages.
func compactionDebt(t *lsm.Tree) int64 { return (t.Owed() + 3) / 4 }

// urgency is when the next slice is due.
type urgency int

const (
	whenIdleLong urgency = iota // the debt is small
	whenIdle
	atOnce // writers wait for what is not prepared
)

// urgency returns when work is done. Compactions alone are never done at once,
// because writers do not depend on them.
func (o Options) urgency(backlog, compactions int64) urgency {
	limit := int64(o.Backlog)
	switch {
	case backlog > limit:
		return atOnce
	case backlog+compactions < limit/4:
		return whenIdleLong
	}
	return whenIdle
}

func (l *Layout) urgency() urgency {
	backlog, tree := l.debt.get()
	return l.opts.urgency(backlog, compactionDebt(&tree))
}

// Due implements layout.Maintained.
func (l *Layout) Due(idle time.Duration) (rest time.Duration, late bool) {
	switch l.urgency() {
	case atOnce:
		return 0, true
	case whenIdle:
		return max(idleBeforeMerge-idle, 0), false
	}
	return max(idleBeforeSmallMerge-idle, 0), false
}

// Prepared implements layout.Maintained. While the debt is small, no batch is
// prepared ahead, because a later one has more changes.
func (l *Layout) Prepared(ahead bool) bool {
	if ahead && l.urgency() == whenIdleLong {
		return true
	}
	backlog, _ := l.debt.get()
	return backlog == 0 || l.prepared.unfinished()
}

// rowTime is how long a row took to read lately: some hundred microseconds from a
// disk, a few from memory.
type rowTime struct{ average atomic.Int64 }

func (t *rowTime) slow() bool { return t.average.Load() > int64(slowRow) }

// record records how long some rows took that one statement read.
func (t *rowTime) record(since time.Time, rows int) {
	if rows >= lookupCost/4 {
		t.average.Store((3*t.average.Load() + int64(time.Since(since))/int64(rows)) / 4)
	}
}

// budget bounds the work of one transaction. It does a step, and further ones
// while there is time or until it has done its share.
type budget struct {
	time        time.Duration
	wanted      func() bool // reports whether a writer waits; nil: one does
	least, most int         // changes that it merges in any case, and at most
}

// sliceBudget returns the budget of a transaction between blocks.
func (o Options) sliceBudget(wanted func() bool) budget {
	b := budget{time: sliceTime, wanted: wanted, most: math.MaxInt32}
	if o.Steps < defaultSteps {
		b.time = 0 // one step
	}
	return b
}

// shareBudget returns the budget of a block with some changes, or false when the
// block merges nothing: three times its own changes and, so that the share of a
// large block is spread over the blocks after it, a part of the backlog above half
// of the limit. Above the limit it merges at least its own changes. When no batch
// is prepared it merges nothing, unless the backlog is twice its limit.
func (o Options) shareBudget(backlog, changes int, prepared bool) (budget, bool) {
	limit, wholeSteps := o.Backlog, o.Steps >= defaultSteps
	if backlog <= limit/2 || wholeSteps && !prepared && backlog <= 2*limit {
		return budget{}, false
	}
	b := budget{time: sliceTime, most: (growth-1)*changes + (backlog-limit/2)/lookupCost}
	if backlog > limit {
		b.time, b.least, b.most = growth*sliceTime, changes, b.most+(growth+1)*changes
	}
	if !wholeSteps {
		b.time = math.MaxInt64
	}
	return b, true
}

// allows reports whether a transaction may do another step, after it took so long
// and merged so many changes. With none merged, it has only compacted so far.
func (b budget) allows(took time.Duration, merged int) bool {
	inTime := took < b.time || b.wanted != nil && took < growth*b.time && !b.wanted()
	if merged == 0 {
		return inTime
	}
	return merged < b.least || inTime && merged < b.most
}

// credit is how many pages compactions may write before it is a merge's turn
// again. A merge earns growth times as many pages as it writes, which is more than
// compactions need in the end, so compactions keep up, and a large one does not
// hold up merges. It survives a rollback, because it need not be exact.
type credit int

func (c *credit) earn(items int) { *c = min(*c+growth*credit(items), defaultBatch) }

func (c *credit) spend(pages int) { *c = max(*c-credit(pages), 0) }
