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

// Listener is implemented by engines that can report the commits of other
// processes.
type Listener interface {
	// Listen starts to listen. It fails with ErrUnsupported where notifications
	// cannot arrive, such as through a pooler. The caller closes it before the
	// engine.
	Listen(ctx context.Context) (Listening, error)

	// Announcement returns the statement that a write transaction runs so that
	// its commit wakes the listeners of this database in other processes; ""
	// where every commit does.
	Announcement() string
}

// Listening receives the announced commits of other processes. It is not safe
// for concurrent use.
type Listening interface {
	// Wait returns after the next announced commit, with ctx's error, or when
	// the connection is lost. After a loss the caller closes it, listens again,
	// and looks for commits that came between.
	Wait(ctx context.Context) error
	Close() error
}

// Keeper is implemented by engines whose databases are files. It keeps two
// numbers in a file next to the database. They record how far the database had
// come, because a database that has lost its end, for example with its log,
// looks complete. The numbers survive the death of a process, but not a restart
// of the system. They are zero when no process has the database open, unless a
// process was killed while it had; then they are that process's numbers.
type Keeper interface {
	// Kept returns number i, 0 or 1.
	Kept(i int) uint64

	// Keep replaces number i if it still equals old, and reports whether it
	// did.
	Keep(i int, old, n uint64) bool

	// Confirm records that the database holds the state that a number stands
	// for. Close does not reset the number of a killed process until it is
	// confirmed.
	Confirm(i int)

	// Leave makes Close leave the database and its log as they are. It is
	// called when the database was refused, because the unreadable part of a
	// log may still be repaired.
	Leave()
}

// Remote is implemented by transactions and views of servers, where each
// statement is sent as a message.
type Remote interface {
	// Defer runs a statement like Exec, but may send it only with the next
	// call, which may then return this statement's error.
	Defer(ctx context.Context, sql string, args ...any) error

	// QueryStatement is Query for a statement with hints.
	QueryStatement(ctx context.Context, s Statement, args ...any) (Rows, error)

	// Expect queues queries that are expected to run, in the message of the next
	// statement, as Prefetcher does.
	Expect(ctx context.Context, expected []Prefetch) error

	// LiftTimeouts keeps the server's timeouts from ending this transaction, or
	// a statement in it.
	LiftTimeouts(ctx context.Context) error
}

// Prefetch is a query that a transaction or view is expected to run.
type Prefetch struct {
	Text string
	Args []any
}

// Prefetcher is implemented by engines with a server.
type Prefetcher interface {
	// BeginPrefetching is Begin. Expected queries are sent in the message that
	// begins the transaction, and see the data committed before the transaction
	// got its lock. The first Query of the same text and arguments is then
	// answered without a round trip, unless the transaction has written before
	// it. A prefetched query that is not run costs only its work on the server.
	BeginPrefetching(ctx context.Context, expected []Prefetch) (Tx, error)
}

// Begin begins a write transaction, with the queries that it is expected to
// run.
func Begin(ctx context.Context, e Engine, expected func() []Prefetch) (Tx, error) {
	if p, ok := e.(Prefetcher); ok {
		return p.BeginPrefetching(ctx, expected())
	}
	return e.Begin(ctx)
}

// View opens a view, with the queries that it is expected to run. A server gets
// them with the view's first query. They are only a hint: if they cannot be
// sent, the view is usable, or its first query returns the error.
func View(ctx context.Context, e Engine, expected func() []Prefetch) (Reader, error) {
	r, err := e.View(ctx)
	if remote, ok := r.(Remote); ok && err == nil {
		_ = remote.Expect(ctx, expected())
	}
	return r, err
}

// Run runs a statement whose result is not used.
func Run(ctx context.Context, tx Tx, sql string, args ...any) error {
	if r, ok := tx.(Remote); ok {
		return r.Defer(ctx, sql, args...)
	}
	_, err := tx.Exec(ctx, sql, args...)
	return err
}

// LiftTimeouts is for a transaction or view that loads, exports or checks,
// because such work grows with the data and a timeout could keep it from ever
// finishing. It is bounded by ctx.
func LiftTimeouts(ctx context.Context, q Querier) error {
	if r, ok := q.(Remote); ok {
		return r.LiftTimeouts(ctx)
	}
	return nil
}
