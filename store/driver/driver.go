// Package driver is the contract between Varve and a database engine.
//
// An engine package (store/sqlite, store/libsql, …) links one native library,
// implements Engine and registers itself under a URL scheme in its init function.
// Engines know nothing of entities or events: they run SQL text in their dialect,
// write rows in bulk, and declare their capabilities. Callers ask for a capability
// and never for an engine's name.
//
// # Values
//
// Arguments and results use four Go types, one for each column Type:
//
//	int64   Int   a signed integer, such as a block number
//	uint64  Uint  an unsigned integer whose full range keeps its order
//	string  Text  UTF-8, compared by bytes
//	[]byte  Blob
//
// SQLite and Postgres have no unsigned integers, so each engine chooses how it
// stores a Uint. It encodes arguments and decodes results so that equality, order
// and ORDER BY are as for uint64. NULL is not used.
//
// Placeholders are "?" in every dialect; an engine rewrites them if it must.
package driver

import (
	"context"
	"errors"
	"time"
)

// Engine is an open database. Its methods may be called from several goroutines.
type Engine interface {
	// Info returns the engine's name, dialect and library version.
	Info() Info

	// Capabilities returns the abilities of this open database. They do not change
	// while the database is open.
	Capabilities() Capabilities

	// Begin starts the one write transaction. It waits until no other write
	// transaction is open, in this process or another, or until ctx is done
	// or the engine's lock timeout passes (ErrLocked). It fails with
	// ErrReadOnly on a read-only database and with ErrClosed after Close.
	Begin(ctx context.Context) (Tx, error)

	// Snapshot opens a stable read view of everything committed so far. It waits for a free reader
	// until ctx is done. The view is fixed when Snapshot returns: later commits are not seen.
	Snapshot(ctx context.Context) (Reader, error)

	// View is Snapshot for a caller that reads at once. On servers that saves a
	// round trip, because the view is fixed only by the first query.
	View(ctx context.Context) (Reader, error)

	// Snapshots opens n read views. It waits until that many readers are free
	// and takes all of them or none. It fails with ErrUnsupported, and names
	// the option to raise, when there are fewer in all. The views may be of
	// different commits; the caller must compare them.
	Snapshots(ctx context.Context, n int) ([]Reader, error)

	// Settings reads back, from the running engine, every setting that
	// affects results or their durability, in a fixed order.
	Settings(ctx context.Context) ([]Setting, error)

	// Stats returns sizes and counters. A nil field is one that this engine does not
	// report.
	Stats(ctx context.Context) (Stats, error)

	// Close waits for the open transaction, closes every connection and stops
	// everything that the engine started: no goroutine, file descriptor or
	// child process remains. A second Close returns nil.
	Close() error
}

// Querier runs reading SQL on one connection. It is not safe for concurrent use.
type Querier interface {
	// Query runs one statement. Statements are prepared once for each
	// connection and kept, so the text should come from a small set. The
	// caller closes the rows before it runs the next statement.
	Query(ctx context.Context, sql string, args ...any) (Rows, error)
}

// Reader is a stable read view. The caller must Close it: an open view keeps
// old versions of pages alive and holds back checkpoints.
//
// An engine may end a view that is older than Options.MaxReaderAge when it
// holds back a checkpoint that must run; calls then fail with ErrReaderExpired.
type Reader interface {
	Querier

	// ReadAhead announces that the rows of a table with these integer keys will
	// be read next. The engine may prefetch them from the disk concurrently; it
	// changes nothing else.
	ReadAhead(ctx context.Context, table string, ids []any)

	// RandomAccess announces whether the following statements read pages in
	// random order; at first they do not. The engine may turn off the system's
	// read-ahead meanwhile; it changes nothing else.
	RandomAccess(on bool)

	Close() error
}

// CloseReaders closes several views.
func CloseReaders(list []Reader) error {
	var errs []error
	for _, r := range list {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// Tx is the write transaction. It is not safe for concurrent use. One of
// Commit and Rollback must be called; Rollback after Commit does nothing.
type Tx interface {
	Querier

	// Exec runs one statement and returns the number of rows it changed.
	Exec(ctx context.Context, sql string, args ...any) (int64, error)

	// Insert adds rows to a table by the engine's fastest way that keeps
	// constraints. Rows holds the values row after row, len(table.Columns)
	// values each; it is not retained. A violated constraint may be reported by
	// a later call, at the latest by Commit. The same holds for Update.
	Insert(ctx context.Context, table *Table, rows []any) error

	// Update sets one column to one value in the rows that the key columns
	// select. Keys holds len(u.Key) values for each row; it is not retained.
	// Keys without a row are ignored.
	Update(ctx context.Context, u *Update, value any, keys []any) error

	// Commit makes the transaction durable as the durability level promises. After an error the
	// transaction is rolled back, except when the error is ErrUnknownOutcome.
	Commit(ctx context.Context) error
	Rollback() error
}

// Rows is the result of a query, as in database/sql. Scan accepts *int64,
// *uint64, *string, *[]byte and *bool; the bytes are the caller's own.
type Rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close() error
}

// Type is the type of a column.
type Type uint8

// The column types; see the package comment.
const (
	Int Type = iota + 1
	Uint
	Text
	Blob
)

// Column is a named column with its type.
type Column struct {
	Name string
	Type Type
}

// Table names a table and the columns that bulk rows give values for, in order.
// Create a Table once and keep it, because engines cache statements by its
// address.
type Table struct {
	Name    string
	Columns []Column
}

// Update describes a bulk update: in Table, set Set where Key matches. Create
// it once and keep it, as a Table.
type Update struct {
	Table string
	Set   Column
	Key   []Column

	// Indexed: an index finds a row by Key, so looking rows up one by one is cheap.
	Indexed bool
}

// Info names an engine.
type Info struct {
	Name    string  // "sqlite"
	Dialect Dialect // the SQL that it reads
	Library string  // Go module of the driver
	Version string  // version of the native library, as it reports itself
}

// Capabilities lists the abilities of an engine beyond the contract's minimum.
type Capabilities struct {
	// TextNUL: text may contain U+0000. Without it such text is refused with
	// ErrUnsupported before anything is written.
	TextNUL bool

	// Analyze: the planner uses statistics that the SQL statement ANALYZE gathers.
	Analyze bool

	// WALCheckpoint: the engine has a log that Checkpoint moves and obeys checkpoint policies.
	WALCheckpoint bool

	// SQLDepth is the maximum nesting of parentheses that the engine's parser
	// accepts; deeper statements fail with ErrUnsupported. 0 means no practical
	// limit.
	SQLDepth int

	// MaxConditions is the maximum number of subqueries in one statement that
	// the planner handles within reasonable time and memory; layouts refuse a
	// query that needs more with ErrUnsupported. 0 means no practical limit.
	MaxConditions int

	// MultiProcess: several processes may have the database open at once.
	MultiProcess bool

	// Spreads: new tables are spread over several machines, by the statements
	// that a schema has for that (schemas.Layout.Spread). The engine ensures
	// that a view is of one commit on all machines.
	Spreads bool

	// Durabilities lists the levels that Open accepts.
	Durabilities []Durability

	// Gaps lists, in words for people, the abilities that this engine lacks and
	// others have.
	Gaps []Gap
}

// Gap is an ability that an engine lacks.
type Gap struct {
	Name   string // short, stable name, such as "text-nul"
	Reason string // why, and what happens instead
}

// Setting is one engine setting as read back from the engine.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Stats are sizes and counters of an open database. Nil means unknown.
type Stats struct {
	DatabaseBytes   *int64         `json:"database_bytes,omitempty"`   // without the log
	WALBytes        *int64         `json:"wal_bytes,omitempty"`        // of the log that recovery would read, whatever the size of its files
	Checkpoints     *int64         `json:"checkpoints,omitempty"`      // that moved at least one page since Open
	CheckpointTime  *time.Duration `json:"checkpoint_time,omitempty"`  // time spent in them, nanoseconds
	CheckpointStall *time.Duration `json:"checkpoint_stall,omitempty"` // time that commits waited for checkpoints, nanoseconds
	Syncs           *int64         `json:"syncs,omitempty"`            // of the log, outside of transactions, since Open; see Overlapper
	CacheHits       *int64         `json:"cache_hits,omitempty"`       // page reads served from the engine's cache
	CacheMisses     *int64         `json:"cache_misses,omitempty"`     // page reads that were not
	ReplicaLag      *time.Duration `json:"replica_lag,omitempty"`      // how far a replica is behind, nanoseconds; nil for a database that is no replica
	EnginePIDs      []int          `json:"engine_processes,omitempty"` // processes of the engine other than this one
}

// Statement is a query with hints for the engine, which may ignore them.
type Statement struct {
	Text string

	// PlanByValue: the best plan depends on the arguments. Engines that cache
	// plans then plan each run anew, and the following queries of the
	// transaction as well.
	PlanByValue bool

	// Final: this is the last query of its view. A remote engine then ends the
	// view in the same message.
	Final bool
}

// Query runs the statement. The caller closes the rows before it runs the next
// one.
func (s Statement) Query(ctx context.Context, q Querier, args ...any) (Rows, error) {
	if r, ok := q.(Remote); ok {
		return r.QueryStatement(ctx, s, args...)
	}
	return q.Query(ctx, s.Text, args...)
}

// Row runs the statement and scans its first row into dest. Without a row it
// fails with ErrNoRows and leaves dest unchanged.
func (s Statement) Row(ctx context.Context, q Querier, args []any, dest ...any) error {
	rows, err := s.Query(ctx, q, args...)
	if err != nil {
		return err
	}
	switch {
	case rows.Next():
		err = rows.Scan(dest...)
	case rows.Err() == nil:
		err = ErrNoRows
	}
	return errors.Join(err, rows.Err(), rows.Close())
}

// Each runs the statement and calls f with each row.
func (s Statement) Each(ctx context.Context, q Querier, args []any, f func(rows Rows) error) (err error) {
	rows, err := s.Query(ctx, q, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// ErrNoRows: QueryRow found no row.
var ErrNoRows = errors.New("no row")

// QueryRow is Statement.Row for a text without hints.
func QueryRow(ctx context.Context, q Querier, text string, args []any, dest ...any) error {
	return Statement{Text: text}.Row(ctx, q, args, dest...)
}

// QueryRows is Statement.Each for a text without hints.
func QueryRows(ctx context.Context, q Querier, text string, args []any, f func(rows Rows) error) error {
	return Statement{Text: text}.Each(ctx, q, args, f)
}

// QueryInt returns the single integer that a query returns.
func QueryInt(ctx context.Context, q Querier, text string, args ...any) (n int64, err error) {
	err = QueryRow(ctx, q, text, args, &n)
	return n, err
}
