// Package layout is the contract of a layout of the entity store: the tables of
// its versions, and the ways to write and find them. The store owns blocks,
// digests and transactions; a layout owns data tables; an engine owns the
// database. A new layout is a package next to eav and an entry in the store's
// newLayout.
package layout

import (
	"context"
	"iter"
	"time"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// Layout is the tables of the versions of entities. It keeps no state that a
// rolled-back transaction could falsify. Optional abilities are in the
// interfaces Indexed, Analyzed and Maintained.
type Layout interface {
	// Name is recorded in the store and compared at each opening.
	Name() string

	// Temporal reports whether past blocks can be read and rewound to.
	Temporal() bool

	// Tables returns every table with all of its columns, for a copy row by row.
	Tables() []*driver.Table

	// Create makes the tables in an empty database, and the indexes. With
	// deferred it leaves out the indexes that an Indexed names.
	Create(ctx context.Context, tx driver.Tx, deferred bool) error

	// View returns what q shows at a block. It is valid as long as q is, and not safe for
	// concurrent use.
	View(ctx context.Context, q driver.Querier, at uint64) (View, error)

	// Writer returns what changes the store in a transaction, which has not written
	// anything of the layout's yet.
	Writer(ctx context.Context, tx driver.Tx) (Writer, error)

	// Check compares everything that the layout keeps twice, reading up to
	// three views of the same block side by side. It calls report with each
	// contradiction until that returns false. With whole, Openings has given
	// every version of this block without an error, so all payloads are there.
	Check(ctx context.Context, a, b, c driver.Querier, whole bool, report func(problem string) bool) error

	// Rebuild replaces derived data in the transaction: everything but the
	// versions. Q is a view of the commits before it.
	Rebuild(ctx context.Context, tx driver.Tx, q driver.Querier) error
}

// View is the versions that are visible at a block, and all that there are.
type View interface {
	// Get returns the version of a key, or entity.ErrNotFound.
	Get(ctx context.Context, key entity.Key) (*entity.Entity, error)

	// Versions streams the versions of a key that began at the view's block or
	// before, the newest first, each with its end in the store's last block. It is
	// called only on temporal layouts.
	Versions(ctx context.Context, key entity.Key) iter.Seq2[entity.Version, error]

	// Query streams the entities that match. Rows of the querier stay open until the sequence ends.
	Query(ctx context.Context, req Request) iter.Seq2[*entity.Entity, error]

	// Count returns how many entities match; a nil expression matches all.
	Count(ctx context.Context, expr query.Expr) (uint64, error)

	// Openings streams every version in order of (first block, key), and
	// Closings the versions that ended before their expiration, in order of
	// (last block, key). An export needs both (entity.History). ClosingsBetween
	// streams the closings of a range of blocks.
	Openings(ctx context.Context) iter.Seq2[*entity.Entity, error]
	Closings(ctx context.Context) iter.Seq2[entity.Closing, error]
	ClosingsBetween(ctx context.Context, from, to uint64) iter.Seq2[entity.Closing, error]

	// Rows returns the number of rows of each table.
	Rows(ctx context.Context) ([]TableRows, error)
}

// Writer changes the store in one transaction, block by block.
type Writer interface {
	// Prior returns the stored states of keys before a block. Unknown keys may
	// be left out.
	Prior(ctx context.Context, block uint64, needs map[entity.Key]entity.Need) (map[entity.Key]entity.Prior, error)

	// Write makes a block's changes. Old versions are as Prior gave them.
	Write(ctx context.Context, set entity.Changeset) error

	// Rewind undoes every change above block to, which is the head then, or -1 when no
	// block is left, of a store whose head is head. It is called only on temporal layouts.
	Rewind(ctx context.Context, head uint64, to int64) error

	// Prune drops versions that are not visible at block before or later.
	Prune(ctx context.Context, before uint64) error
}

// Prefetched is a layout that can name the queries that a transaction or a view will
// run first, as far as it knows the store. A wrong guess costs a round trip and no
// more, because an answer is used only for the query that it is of.
type Prefetched interface {
	// PrefetchWrite returns the queries of a Writer, and of its Prior at a block.
	PrefetchWrite(block uint64, needs map[entity.Key]entity.Need) []driver.Prefetch

	// PrefetchView returns the queries of a View at a block, and of its Get of keys.
	PrefetchView(at uint64, keys []entity.Key) []driver.Prefetch
}

// Indexed is a layout with indexes that loading does not need.
type Indexed interface {
	DeferredIndexes() []string

	// CreateIndex makes one of them, unless it is there.
	CreateIndex(ctx context.Context, tx driver.Tx, name string) error
}

// Analyzed is a layout that may live on planner statistics.
type Analyzed interface {
	Analyzed() bool

	// Analyze gathers them. It is called only when Analyzed.
	Analyze(ctx context.Context, tx driver.Tx) error
}

// Maintained is a layout that puts work off. A block is readable at once and
// costs little to commit; what readers are helped by is made later, between blocks, in
// slices. Work is counted in changes of entities. The layout says when, how much and how
// long; its caller has the goroutines, views and transactions.
type Maintained interface {
	// Owed returns the amount of put-off work.
	Owed(ctx context.Context, q driver.Querier) (int, error)

	// Due returns how long to wait before the next slice, after a time without
	// writers, and whether the backlog is so large that writers should wait
	// until it is Prepared.
	Due(idle time.Duration) (rest time.Duration, late bool)

	// Prepared reports whether the next slice is prepared or, with ahead,
	// whether preparing more is not worth it yet.
	Prepared(ahead bool) bool

	// Prepare computes the writes of the next slices, in a view of committed
	// data. An outdated result is dropped. It may run concurrently with
	// Maintain, but not with itself.
	Prepare(ctx context.Context, q driver.Querier) error

	// Maintain does a slice of the work in its own transaction, short enough
	// that a block may wait for it, and shorter when wanted reports that a
	// block waits. It returns the remaining backlog. The work counts when the
	// transaction commits.
	Maintain(ctx context.Context, tx driver.Tx, wanted func() bool) (owed int, err error)
}

// Request is a compiled-to-be query with its order and limits.
type Request struct {
	Expr  query.Expr
	Order []Order // none: by sequence, newest first, and then by key, as ties are
	Limit int     // 0: no limit
	After *Position

	// The parts of the matches that are needed besides their metadata. More
	// does no harm.
	Attributes, Content bool
}

// Order sorts by one attribute, entities without it last whatever the direction.
type Order struct {
	Name string
	Kind entity.AttributeKind
	Desc bool
}

// Position is where a page of results ended: what its last entity is sorted by.
type Position struct {
	Values   []SortValue // one for each of Request.Order
	Sequence uint64
	Key      entity.Key
}

// SortValue is an entity's value of an attribute that results are sorted by.
type SortValue struct {
	Missing bool // it has none
	Value   query.Value
}

// TableRows is the size of a table.
type TableRows struct {
	Table string
	Rows  uint64
}
