package driver

import "context"

// Each ability that only some engines have is a separate interface.

// Overlapper is implemented by engines on which a commit can become durable
// while the next transaction runs.
type Overlapper interface {
	// BeginVisible is Begin, for a transaction whose Commit makes it visible at once,
	// and durable no later than a call of Sync that begins after it. Transactions
	// become durable in their order.
	BeginVisible(ctx context.Context) (Tx, error)

	// Sync makes durable, as the durability level promises, all that was
	// committed before the call, by other processes too. After it has failed,
	// it is unknown which commits are durable, so Begin, BeginVisible and Sync
	// fail until the database is opened again. After Close it returns nil if
	// all is durable.
	Sync(ctx context.Context) error

	// Durable raises a number to at least n and returns it. All processes that
	// have the database open share the number, and learn from it which commits
	// of the others are durable. It begins at zero when the first process opens
	// the database. Where it cannot be shared, for example because this process
	// may not write, each process has its own number.
	Durable(n uint64) uint64
}

// Listener is implemented by engines that can be notified of another process's
// commit.
type Listener interface {
	// Listen begins to hear. It fails with ErrUnsupported where nothing can be heard, such
	// as through a pooler. The caller closes it before the engine.
	Listen(ctx context.Context) (Listening, error)

	// Announcement returns the statement by which a write transaction has its commit wake
	// the listeners of this database in other processes; "" where every commit does.
	Announcement() string
}

// Listening hears the announced commits of other processes. It is not safe for concurrent
// use.
type Listening interface {
	// Wait returns after the next one, or with ctx's error, or when the connection is
	// lost: whoever listens again has to look for what came between. The caller then
	// closes it.
	Wait(ctx context.Context) error
	Close() error
}

// Keeper is implemented by engines whose databases are files. It keeps two
// numbers in a file next to the database. They record, also after a process was
// killed, how far the database had come, because a database that has lost a
// part since, such as its log, looks as if it had never had it. The numbers are
// zero when no process has the database open, unless a process was killed while
// it had, and the system has not been restarted: then they are the numbers of
// that process.
type Keeper interface {
	// Kept returns a number, the i-th of two.
	Kept(i int) uint64

	// Keep replaces the number if it is still the old one, and reports whether
	// it was.
	Keep(i int, old, n uint64) bool

	// Confirm records that the database holds the state that a number stands
	// for. Close does not reset the number of a killed process until it is
	// confirmed.
	Confirm(i int)

	// Leave has Close leave the database and its log as they are, because the
	// database was refused: the unreadable part of a log may still be repaired.
	Leave()
}

// Remote is implemented by transactions and views of servers, to which a statement is a message.
type Remote interface {
	// Defer runs a statement like Exec, but perhaps not before the next call, whose error
	// may then be this statement's.
	Defer(ctx context.Context, sql string, args ...any) error

	// QueryStatement is Query for a statement with hints.
	QueryStatement(ctx context.Context, s Statement, args ...any) (Rows, error)

	// Expect leaves queries that are expected to run to the message of the next one, as
	// Prefetcher does.
	Expect(ctx context.Context, expected []Prefetch) error

	// LiftTimeouts keeps the server from ending this transaction, or a statement in it,
	// because of the time that it takes.
	LiftTimeouts(ctx context.Context) error
}

// Prefetch is a query that a transaction or view is expected to run.
type Prefetch struct {
	Text string
	Args []any
}

// Prefetcher is implemented by engines to whose server a statement is a message.
// Expected queries travel in the message that begins the transaction or view. The
// first Query of the same text and arguments then has its answer without a round
// trip, unless the transaction has written before it. A query that is not run after
// all costs its work on the server and no more.
type Prefetcher interface {
	// BeginPrefetching is Begin. The queries see what was committed before the
	// transaction got its lock.
	BeginPrefetching(ctx context.Context, expected []Prefetch) (Tx, error)

	// ViewPrefetching is View. The queries are sent with the view's first one.
	ViewPrefetching(ctx context.Context, expected []Prefetch) (Reader, error)
}

// Begin begins a write transaction that is expected to run queries.
func Begin(ctx context.Context, e Engine, expected func() []Prefetch) (Tx, error) {
	if p, ok := e.(Prefetcher); ok {
		return p.BeginPrefetching(ctx, expected())
	}
	return e.Begin(ctx)
}

// View opens a view that is expected to run queries.
func View(ctx context.Context, e Engine, expected func() []Prefetch) (Reader, error) {
	if p, ok := e.(Prefetcher); ok {
		return p.ViewPrefetching(ctx, expected())
	}
	return e.View(ctx)
}

// Run runs a statement whose result is not used.
func Run(ctx context.Context, tx Tx, sql string, args ...any) error {
	if r, ok := tx.(Remote); ok {
		return r.Defer(ctx, sql, args...)
	}
	_, err := tx.Exec(ctx, sql, args...)
	return err
}

// LiftTimeouts is for a transaction or view that loads, exports or checks: work that takes
// as long as there is data, and could else never be finished. What bounds it is ctx.
func LiftTimeouts(ctx context.Context, q Querier) error {
	if r, ok := q.(Remote); ok {
		return r.LiftTimeouts(ctx)
	}
	return nil
}
