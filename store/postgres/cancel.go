package postgres

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// cancelWait is how long the server has to obey a cancellation before the
// connection is given up.
const cancelWait = 3 * time.Second

// canceller ends a connection's statement when its context ends. Left to itself
// pgx closes the connection, and the server may go on with the statement, and
// hold its locks. Asked to cancel, the server ends the statement and the
// connection stays.
//
// The request names the connection and not the statement. So one that arrives
// late would cancel the next statement. The connection is not used again before
// the server has answered the request, which it does after it has passed it on.
// pgx's own handler waits 100 ms instead, and on a busy machine that is too
// short.
type canceller struct {
	conn *pgconn.PgConn
	err  error // of the last request; nil: it was answered
}

// HandleCancel implements ctxwatch.Handler.
func (c *canceller) HandleCancel(context.Context) {
	deadline := time.Now().Add(cancelWait)
	_ = c.conn.Conn().SetDeadline(deadline) // only a closed connection has no deadline
	ctx, stop := context.WithDeadline(context.Background(), deadline)
	defer stop()
	c.err = cmp.Or(c.conn.CancelRequest(ctx), ctx.Err())
}

// HandleUnwatchAfterCancel implements ctxwatch.Handler. It is called after
// HandleCancel has returned and the statement has ended.
func (c *canceller) HandleUnwatchAfterCancel() {
	if c.err != nil { // the request may still arrive
		_ = c.conn.Conn().Close()
		return
	}
	_ = c.conn.Conn().SetDeadline(time.Time{})
}
