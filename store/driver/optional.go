package driver

import "context"

// What only some engines do is an interface of its own.

// Overlapper is implemented by engines on which a commit can become durable beside the
// next transaction.
type Overlapper interface {
	// BeginVisible is Begin, for a transaction whose Commit makes it visible at once,
	// and durable no later than a call of Sync that begins after it. Transactions
	// become durable in their order.
	BeginVisible(ctx context.Context) (Tx, error)

	// Sync makes durable, as the durability level promises, whatever was committed
	// before it was called, by other processes too. After it has failed nobody knows
	// what is durable: Begin, BeginVisible and Sync fail until the database is opened
	// anew. After Close it returns nil, if all is durable.
	Sync(ctx context.Context) error

	// Durable raises a number that all share who have the database open, in other
	// processes too, to at least n, and returns it. By it they know of each other what is
	// durable. It begins at zero when nobody has had the database open before. Where it
	// cannot be shared, as where this process may not write, each has its own.
	Durable(n uint64) uint64
}

// Listener is implemented by engines of which another process's commit can be heard.
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

// Keeper is implemented by engines whose databases are files. It keeps numbers beside a
// database by which is known, after a process was killed, how far it had come: a database
// that has lost a part since, such as its log, looks like one that never had it. They are
// zero when nobody has the database open, unless a process was killed that had and the
// system was not started anew since: then they are what it left.
type Keeper interface {
	// Kept returns a number, the i-th of two.
	Kept(i int) uint64

	// Keep replaces it, when it is still the old one, and tells whether it was.
	Keep(i int, old, n uint64) bool

	// Confirm says that the database holds what a number names. One that a process has left
	// and nobody has confirmed is not forgotten by Close.
	Confirm(i int)

	// Leave has Close leave the database and its log as they are, because the database
	// was refused: what a log holds that cannot be read may still be mended.
	Leave()
}

// Remote is implemented by transactions and views of servers, to which a statement is a message.
type Remote interface {
	// Defer runs a statement like Exec, but perhaps not before the next call, whose error
	// may then be this statement's.
	Defer(ctx context.Context, sql string, args ...any) error

	// QueryStatement is Query for a statement with hints.
	QueryStatement(ctx context.Context, s Statement, args ...any) (Rows, error)

	// LiftTimeouts keeps the server from ending this transaction, or a statement in it,
	// because of the time that it takes.
	LiftTimeouts(ctx context.Context) error
}

// Run runs a statement of which only the success matters.
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
