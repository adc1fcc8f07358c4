// Package compact is Varve's own layout: the answers of the thirteen-index
// layout at a fraction of its writes.
//
// A block is written once, as one row of a log, beside its payloads. The log is
// merged into tables in batches: the last version of each entity clustered by
// id, older versions apart, and for each attribute value the set of entities
// that have it. Entities are numbered in the order of their creation, so that
// the order of ids is that of $sequence. Readers see the tables and, over them,
// what their view of the log holds beyond.
//
// What is kept in memory is a cache of what views can read: it is found by the
// tip, a hash chained over the log, which a view reads together with the
// progress of the merge. A transaction that is rolled back leaves tips that no
// view ever names.
package compact

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
)

// Options bound the work that is put off. The zero value is usable.
type Options struct {
	// Backlog is the number of unmerged versions that memory is meant for; from
	// half of it on a block merges some of them itself. Zero means
	// DefaultBacklog. Unmerged versions are held without their payloads.
	Backlog int

	// Batch is the number of versions that are merged together; zero means
	// DefaultBatch, or Backlog when that is less. A block is never cut apart.
	Batch int

	// Steps is the number of pages of postings, of keys or of changed versions, about,
	// that one step of a merge writes; zero means DefaultSteps, or Backlog when that is
	// less.
	Steps int

	// Slice is how long a transaction that merges takes steps; zero means
	// DefaultSlice, or with a Backlog below DefaultSteps one step.
	Slice time.Duration
}

// The defaults of Options.
const (
	DefaultBacklog = 16384
	DefaultBatch   = 4096
	DefaultSteps   = 256
	DefaultSlice   = 4 * time.Millisecond
)

// Layout implements layout.Layout.
//
// Three kinds of goroutines meet in it: the writer, who has the engine's one write
// transaction (Prior, Write, Maintain and what else takes a driver.Tx), the thinker, who
// prepares beside it (Prepare, never two at once), and readers. Results are handed over,
// not shared: nodes, chains, trees, pieces, and a plan but for three fields, do not
// change once a field below leads to them. Of all else,
//   - schema, dialect, opts and sql, and tree, job and bottom of a compactor, never
//     change;
//   - credit and what scratch points to are the writer's, merger and w of a compactor
//     the thinker's;
//   - texts, forests, committed, node.once and chain.overlays guard themselves;
//   - mu guards what stands below it, over, finished and run of a plan, and at, waiting
//     and ended of a compactor. These three only the thinker changes, who may
//     therefore read them without it.
type Layout struct {
	schema  schemas.Layout
	dialect driver.Dialect
	opts    Options
	sql     map[string]string
	texts   textCache
	forests forestCache

	committed *names // as seen by read views: never wrong
	credit    int    // of compactions

	mu      sync.Mutex
	scratch *scratch // of the last block written; valid for its tip
	chains  []*chain // the last ones, oldest first
	plans   []*plan  // of the batch that is being merged, and of the next

	compactors []*compactor
	known      progress // when this process last wrote or looked: a hint
}

var (
	_ layout.Layout     = (*Layout)(nil)
	_ layout.Maintained = (*Layout)(nil)
)

// New returns the layout of a schema for an engine's dialect.
func New(schema schemas.Layout, d driver.Dialect, opts Options) *Layout {
	if opts.Backlog == 0 {
		opts.Backlog = DefaultBacklog
	}
	if opts.Batch == 0 {
		opts.Batch = min(DefaultBatch, opts.Backlog)
	}
	if opts.Steps == 0 {
		opts.Steps = min(DefaultSteps, opts.Backlog)
	}
	if opts.Slice == 0 && opts.Backlog >= DefaultSteps {
		opts.Slice = DefaultSlice
	}
	return &Layout{schema: schema, dialect: d, opts: opts, sql: schema.Statements, committed: newNames()}
}

// Name implements layout.Layout.
func (l *Layout) Name() string { return l.schema.Name }

// Temporal implements layout.Layout.
func (l *Layout) Temporal() bool { return true }

// Create implements layout.Layout. No index can be deferred: the sets of ids
// are kept by the merge.
func (l *Layout) Create(ctx context.Context, tx driver.Tx, _ bool) error {
	for _, text := range l.schema.Tables {
		if _, err := tx.Exec(ctx, text); err != nil {
			return fmt.Errorf("create tables: %w", err)
		}
	}
	for _, index := range l.schema.Indexes {
		if _, err := tx.Exec(ctx, index.SQL); err != nil {
			return fmt.Errorf("create index %s: %w", index.Name, err)
		}
	}
	p := newProgress()
	return tx.Insert(ctx, progressTable, p.values())
}

// DeferredIndexes implements layout.Layout.
func (l *Layout) DeferredIndexes() []string { return nil }

// CreateIndex implements layout.Layout.
func (l *Layout) CreateIndex(_ context.Context, _ driver.Tx, name string) error {
	return fmt.Errorf("layout %s has no index %s", l.schema.Name, name)
}

// Analyzed implements layout.Layout.
func (l *Layout) Analyzed() bool { return false }

// Analyze implements layout.Layout.
func (l *Layout) Analyze(context.Context, driver.Tx) error { return nil }
