package driver

import "context"

// TimeoutLifter is implemented by transactions and views of servers that may be set to end
// what takes long.
type TimeoutLifter interface {
	// LiftTimeouts keeps the server from ending this transaction, or a statement in it,
	// because of the time that it takes.
	LiftTimeouts(ctx context.Context) error
}

// LiftTimeouts is for a transaction or view that loads, exports or checks: work that takes
// as long as there is data, and could else never be finished. What bounds it is ctx.
func LiftTimeouts(ctx context.Context, q Querier) error {
	if l, ok := q.(TimeoutLifter); ok {
		return l.LiftTimeouts(ctx)
	}
	return nil
}
