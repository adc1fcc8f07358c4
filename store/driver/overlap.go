package driver

import "context"

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
