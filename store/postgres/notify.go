package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// A schema's channel is named by its id: a name may be too long for one.
const channelText = "SELECT 'varve_' || oid FROM pg_namespace WHERE nspname = current_schema()"

// announcement returns the statement that notifies other engines of a commit, and
// the payload by which an engine recognises its own notifications.
func announcement() (text, self string) {
	self = rand.Text()
	return "SELECT pg_notify('varve_' || oid, '" + self + "') FROM pg_namespace WHERE nspname = current_schema()", self
}

// Announcement implements driver.Listener. It travels with the COMMIT.
func (e *engine) Announcement() string { return e.announcement }

// listening is a connection that receives notifications.
type listening struct {
	conn *pgx.Conn
	self string
}

// Listen implements driver.Listener.
func (e *engine) Listen(ctx context.Context) (driver.Listening, error) {
	var channel string
	err := e.WithSpare(ctx, func(c *sqlstore.Conn) (err error) {
		if c.Shared() {
			return fmt.Errorf("%w: a pooler has no session that hears for one client alone", driver.ErrUnsupported)
		}
		channel, err = c.QueryText(ctx, channelText)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	cfg := e.conn.Copy()
	// Waiting is not a statement that the server could cancel.
	cfg.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()}
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("listen: connect: %w", mapError(err))
	}
	l := &listening{conn: conn, self: e.self}
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", mapError(err)), l.Close())
	}
	return l, nil
}

// Wait implements driver.Listening.
func (l *listening) Wait(ctx context.Context) error {
	for {
		n, err := l.conn.WaitForNotification(ctx)
		if err != nil {
			return withContext(ctx, mapError(err))
		}
		if n.Payload != l.self {
			return nil
		}
	}
}

// Close implements driver.Listening.
func (l *listening) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return l.conn.Close(ctx)
}
