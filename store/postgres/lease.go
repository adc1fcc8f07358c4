package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// beginLease begins the transaction that holds the lease. It is a transaction's
// lock and not a session's: a pooler between may hand the session to others, but
// not while a transaction is open. One that is idle under READ COMMITTED keeps
// no snapshot, so it holds back no vacuum.
var beginLease = "BEGIN ISOLATION LEVEL READ COMMITTED; " + liftTimeouts

// takeLease is lockWriters with another key, and does not wait.
const takeLease = `SELECT pg_try_advisory_xact_lock(1986097783, oid::int4)
FROM pg_namespace
WHERE nspname = $1`

// closeTimeout bounds the farewell to the server, which ends the lease in any
// case.
const closeTimeout = 5 * time.Second

// lease is a connection with a transaction that holds the lock.
type lease struct{ conn *pgx.Conn }

// Lease implements driver.Leaser.
func (e *engine) Lease(ctx context.Context) (driver.Lease, error) {
	if e.session.opts.ReadOnly {
		return nil, fmt.Errorf("lease: %w", driver.ErrReadOnly)
	}
	var got state
	err := e.WithSpare(ctx, func(c *sqlstore.Conn) (err error) {
		got, err = readState(ctx, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, e.conn.Copy())
	if err != nil {
		return nil, fmt.Errorf("connect: %w", mapError(err))
	}
	l := &lease{conn}
	var taken bool
	if _, err = conn.Exec(ctx, beginLease); err == nil {
		err = conn.QueryRow(ctx, takeLease, got.schema).Scan(&taken)
	}
	switch {
	case err != nil:
		return nil, errors.Join(mapError(err), l.Release())
	case !taken:
		return nil, errors.Join(fmt.Errorf("%w: another connection has the lease of schema %q", driver.ErrLocked, got.schema), l.Release())
	}
	return l, nil
}

// Held implements driver.Lease.
func (l *lease) Held(ctx context.Context) error {
	if _, err := l.conn.Exec(ctx, "SELECT 1"); err != nil {
		return mapError(err)
	}
	return nil
}

// Release implements driver.Lease.
func (l *lease) Release() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if l.conn.IsClosed() {
		return nil
	}
	// The server sees a closed connection only later, so whoever asks next would
	// not get the lease. A broken connection ends the transaction by itself.
	_, _ = l.conn.Exec(ctx, "ROLLBACK")
	return l.conn.Close(ctx)
}
