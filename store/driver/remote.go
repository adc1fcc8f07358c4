package driver

import "context"

// Remote is implemented by transactions and views of servers, to which a statement is a message.
type Remote interface {
	// Defer runs a statement like Exec, but perhaps not before the next call, whose error
	// may then be this statement's.
	Defer(ctx context.Context, sql string, args ...any) error

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
