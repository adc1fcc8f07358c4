// Package layout defines the contract of a layout of the entity store: the
// tables of entity versions, and the ways to write and find them. The store
// owns blocks, digests and transactions; a layout owns data tables; an engine
// owns the database. A new layout is a package next to eav and an entry in the
// store's newLayout.
package layout

import (
	"context"
	"iter"
	"time"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// Layout stores the versions of entities in tables. It keeps no state that a
// rolled-back transaction could falsify. Optional abilities are in the
// interfaces Indexed, Analyzed and Maintained.
type Layout interface {
	// Name is recorded in the store and compared at each opening.
	Name() string

	// Temporal reports whether past blocks can be read and rewound to.
	Temporal() bool

	// Tables returns every table with all of its columns, for copying row by
	// row.
	Tables() []*driver.Table

	// Create creates the tables in an empty database, and the indexes. With
	// deferred it leaves out the indexes that an Indexed names.
	Create(ctx context.Context, tx driver.Tx, deferred bool) error

	// View returns a view of the block at in q. It is valid as long as q is,
	// and not safe for concurrent use.
	View(ctx context.Context, q driver.Querier, at uint64) (View, error)

	// Writer returns a writer for a transaction that has not yet written to the
	// layout's tables.
	Writer(ctx context.Context, tx driver.Tx) (Writer, error)

	// Check compares all redundant data of the layout, using up to three views
	// of the same block in parallel. It calls report for each contradiction
	// until that returns false. Whole means that Openings has returned every
	// version of this block without an error, so all payloads are readable.
	Check(ctx context.Context, a, b, c driver.Querier, whole bool, report func(problem string) bool) error

	// Rebuild rebuilds derived data, everything but the versions, in a
	// transaction. Q is a view of the commits before it.
	Rebuild(ctx context.Context, tx driver.Tx, q driver.Querier) error
}

// View gives access to the versions that are visible at a block, and for
// exports to all versions.
type View interface {
	// Get returns the version of a key, or entity.ErrNotFound.
	Get(ctx context.Context, key entity.Key) (*entity.Entity, error)

	// Versions streams the versions of a key that began at the view's block or
	// before, newest first, each with its end as of the store's last block. It
	// is called only on temporal layouts.
	Versions(ctx context.Context, key entity.Key) iter.Seq2[entity.Version, error]

	// Query streams the matching entities. The querier has an open result until
	// the sequence ends.
	Query(ctx context.Context, req Request) iter.Seq2[*entity.Entity, error]

	// Count returns how many entities match; a nil expression matches all.
	Count(ctx context.Context, expr query.Expr) (uint64, error)

	// Openings streams every version in order of (first block, key), and
	// Closings the versions that ended before their expiration, in order of
	// (last block, key). An export needs both (entity.History). ClosingsBetween
	// streams the closings in a range of blocks.
	Openings(ctx context.Context) iter.Seq2[*entity.Entity, error]
	Closings(ctx context.Context) iter.Seq2[entity.Closing, error]
	ClosingsBetween(ctx context.Context, from, to uint64) iter.Seq2[entity.Closing, error]

	// Rows returns the number of rows of each table.
	Rows(ctx context.Context) ([]TableRows, error)
}

// Writer changes the store in one transaction, block by block.
type Writer interface {
	// Prior returns the stored states of keys before a block. Unknown keys may
	// be missing.
	Prior(ctx context.Context, block uint64, needs map[entity.Key]entity.Need) (map[entity.Key]entity.Prior, error)

	// Write writes a block's changes. Prior has returned the old versions.
	Write(ctx context.Context, set entity.Changeset) error

	// Rewind undoes every change above block to, of a store whose head is head.
	// To is -1 when no block remains. It is called only on temporal layouts.
	Rewind(ctx context.Context, head uint64, to int64) error

	// Prune deletes the versions that end before block before becomes visible:
	// they are not visible at it or later.
	Prune(ctx context.Context, before uint64) error
}

// Prefetched is a layout that can predict the first queries of a transaction or
// view. A wrong prediction costs only a query, because an answer is used only
// for exactly the query that it belongs to.
type Prefetched interface {
	// PrefetchWrite returns the queries of a Writer, and of its Prior at a
	// block.
	PrefetchWrite(block uint64, needs map[entity.Key]entity.Need) []driver.Prefetch

	// PrefetchView returns the queries of a View at a block, and of its Get for
	// keys.
	PrefetchView(at uint64, keys []entity.Key) []driver.Prefetch
}

// Indexed is a layout with indexes that loading does not need.
type Indexed interface {
	DeferredIndexes() []string

	// CreateIndex creates one of them, unless it exists.
	CreateIndex(ctx context.Context, tx driver.Tx, name string) error
}

// Analyzed is a layout that may depend on planner statistics.
type Analyzed interface {
	Analyzed() bool

	// Analyze gathers statistics. It is called only if Analyzed returns true.
	Analyze(ctx context.Context, tx driver.Tx) error
}

// Maintained is a layout that defers work. A block is readable at once and
// cheap to commit; structures that speed up reads are built later, between
// blocks, in slices. Work is counted in changes of entities. The layout decides
// when, how much and how long; its caller provides goroutines, views and
// transactions.
type Maintained interface {
	// Owed returns the amount of deferred work.
	Owed(ctx context.Context, q driver.Querier) (int, error)

	// Due returns how long to wait before the next slice, after an idle time
	// without writers. Late reports that the backlog is so large that writers
	// should wait until the next slice is Prepared.
	Due(idle time.Duration) (rest time.Duration, late bool)

	// Prepared reports whether the next slice is prepared; with ahead, whether
	// preparing another one is not worth it yet.
	Prepared(ahead bool) bool

	// Prepare computes the writes of the next slices, in a view of committed
	// data. A result that is outdated is discarded. It may run concurrently
	// with Maintain, but not with itself.
	Prepare(ctx context.Context, q driver.Querier) error

	// Maintain does a slice of the work in a transaction of its own. The slice
	// is short enough that a block may wait for it, and shorter when wanted
	// reports that a block waits. It returns the remaining backlog. The work
	// counts when the transaction commits.
	Maintain(ctx context.Context, tx driver.Tx, wanted func() bool) (owed int, err error)
}

// Request is a query with its order and limits.
type Request struct {
	Expr  query.Expr
	Order []Order // none: by sequence, newest first, and then by key, as ties are
	Limit int     // 0: no limit
	After *Position

	// The parts of the matches that are needed besides metadata. Returning more
	// is allowed.
	Attributes, Content bool
}

// Order sorts by one attribute. Entities without it come last in either
// direction.
type Order struct {
	Name string
	Kind entity.AttributeKind
	Desc bool
}

// Position is the end of a page of results: the sort values of its last entity.
type Position struct {
	Values   []SortValue // one for each of Request.Order
	Sequence uint64
	Key      entity.Key
}

// SortValue is an entity's value of an attribute to sort by.
type SortValue struct {
	Missing bool // it has none
	Value   query.Value
}

// TableRows is the number of rows of a table.
type TableRows struct {
	Table string
	Rows  uint64
}
