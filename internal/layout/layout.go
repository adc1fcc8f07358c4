// Package layout is the contract of a layout of the entity store: how versions
// lie in tables, and how they are written and found. The store owns blocks,
// digests and transactions; a layout owns data tables; an engine owns the
// database. A new layout is a package beside eav and an entry in New.
package layout

import (
	"context"
	"iter"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// Layout reads and writes versions of entities. Methods are called with the
// one write transaction or with a read view; a Layout keeps no state of its
// own that a rolled-back transaction could falsify.
type Layout interface {
	// Name is what the store records and checks.
	Name() string

	// Temporal tells whether past blocks can be read and rewound to.
	Temporal() bool

	// Create makes the tables in an empty database, and the indexes. With
	// deferred it leaves out those that loading does not need, which
	// DeferredIndexes names and CreateIndex makes.
	Create(ctx context.Context, tx driver.Tx, deferred bool) error
	DeferredIndexes() []string
	CreateIndex(ctx context.Context, tx driver.Tx, name string) error

	// Check compares what the layout keeps more than once, reading up to three
	// views of the same block side by side. It calls report with each
	// contradiction until that returns false.
	Check(ctx context.Context, a, b, c driver.Querier, report func(problem string) bool) error

	// Prior returns what is stored of the keys before a block. Keys of which
	// nothing is known may be left out.
	Prior(ctx context.Context, q driver.Querier, block uint64, needs map[entity.Key]entity.Need) (map[entity.Key]entity.Prior, error)

	// Write makes a block's changes. Old versions are as Prior gave them.
	Write(ctx context.Context, tx driver.Tx, set entity.Changeset) error

	// Rewind undoes every change above block to, of a store whose head is
	// head. It is called only on temporal layouts.
	Rewind(ctx context.Context, tx driver.Tx, head, to uint64) error

	// Prune drops versions that are not visible at block before or later.
	Prune(ctx context.Context, tx driver.Tx, before uint64) error

	// Get returns the version visible at a block, or entity.ErrNotFound.
	Get(ctx context.Context, q driver.Querier, at uint64, key entity.Key) (*entity.Entity, error)

	// Query streams the entities that match at a block. The rows of q stay
	// open until the sequence ends.
	Query(ctx context.Context, q driver.Querier, at uint64, req Request) iter.Seq2[*entity.Entity, error]

	// Count returns how many entities match at a block.
	Count(ctx context.Context, q driver.Querier, at uint64, expr query.Expr) (uint64, error)

	// Openings streams every version in order of (first block, key), and
	// Closings those that ended before their expiration, in order of (last
	// block, key): what an export needs (entity.History).
	Openings(ctx context.Context, q driver.Querier) iter.Seq2[*entity.Entity, error]
	Closings(ctx context.Context, q driver.Querier) iter.Seq2[entity.Closing, error]

	// Rows returns the number of rows of each table.
	Rows(ctx context.Context, q driver.Querier) ([]TableRows, error)

	// Tables returns every table with all of its columns, for a copy row by row.
	Tables() []*driver.Table

	// Rebuild makes what is derived anew in the transaction: everything but the
	// versions themselves. Q is a view of what was committed before it.
	Rebuild(ctx context.Context, tx driver.Tx, q driver.Querier) error

	// Analyzed tells whether the layout lives on planner statistics.
	Analyzed() bool

	// Analyze gathers them. It is called only when Analyzed.
	Analyze(ctx context.Context, tx driver.Tx) error
}

// Ahead is how many batches of slices are thought about beforehand: the one that is
// being worked on, and the next, meanwhile.
const Ahead = 2

// Maintained is a layout that puts work off. A block is readable at once and
// costs little to commit; what readers are helped by is made later.
type Maintained interface {
	// Maintain does a slice of the work in a transaction of its own, short
	// enough that a block may wait for it, shorter when wanted tells that one
	// does, and tells how much is left, in changes of entities. What it has done
	// counts when the transaction commits.
	Maintain(ctx context.Context, tx driver.Tx, wanted func() bool) (left int, err error)

	// Prepare thinks about the next slices beforehand, so that they are shorter,
	// in a view of what is committed. What it finds out is no longer used when it
	// is outdated. It may run beside Maintain, and not beside itself.
	Prepare(ctx context.Context, q driver.Querier) error

	// Prepared tells whether so many batches of slices have been thought about, or
	// nothing more is worth it yet.
	Prepared(batches int) bool

	// Backlog tells how much is left.
	Backlog(ctx context.Context, q driver.Querier) (left int, err error)

	// Left is what was left when this process last wrote or looked: a hint.
	Left() int

	// Limit is how much may be left. Before that, blocks do a part of the work
	// themselves.
	Limit() int
}

// Request is a compiled-to-be query with its order and limits.
type Request struct {
	Expr    query.Expr
	Order   Order
	Limit   int // 0: no limit
	After   *Position
	Content bool // fetch the payloads as well
}

// Order sorts by one attribute, entities without it last; ties and the zero
// Order are by sequence, newest first, and then by key.
type Order struct {
	Name string // empty: by sequence
	Kind entity.AttributeKind
	Desc bool
}

// Position is where a page of results ended: the sort values of its last
// entity.
type Position struct {
	Missing  bool        // it has no attribute Order.Name
	Value    query.Value // of that attribute
	Sequence uint64
	Key      entity.Key
}

// TableRows is the size of a table.
type TableRows struct {
	Table string
	Rows  uint64
}
