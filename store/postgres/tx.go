package postgres

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// Begin implements driver.Engine.
func (e *engine) Begin(ctx context.Context) (driver.Tx, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	t, err := onLiving(e, func() (driver.Tx, error) { return e.DB.Begin(ctx) })
	if err != nil {
		return nil, withContext(ctx, err)
	}
	return &tx{tx: t.(*sqlstore.Tx)}, nil
}

// Snapshot implements driver.Engine.
func (e *engine) Snapshot(ctx context.Context) (driver.Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("begin read: %w", err)
	}
	r, err := onLiving(e, func() (driver.Reader, error) { return e.DB.Snapshot(ctx) })
	if err != nil {
		return nil, withContext(ctx, err)
	}
	return &reader{r}, nil
}

// View implements driver.Engine.
func (e *engine) View(ctx context.Context) (driver.Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("begin read: %w", err)
	}
	r, err := e.DB.Unfixed(ctx)
	if err != nil {
		return nil, withContext(ctx, err)
	}
	return &reader{r}, nil
}

// Snapshots implements driver.Engine.
func (e *engine) Snapshots(ctx context.Context, n int) ([]driver.Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("begin read: %w", err)
	}
	list, err := onLiving(e, func() ([]driver.Reader, error) { return e.DB.Snapshots(ctx, n) })
	if err != nil {
		return nil, withContext(ctx, err)
	}
	for i := range list {
		list[i] = &reader{list[i]}
	}
	return list, nil
}

// onLiving runs f again when it fails because its connection was lost before,
// by a restart of the server say, until it got one that lives: at most every
// reader's and the writer's are lost. A connection that cannot be made is not
// tried again.
func onLiving[T any](e *engine, f func() (T, error)) (v T, err error) {
	for range e.session.opts.Readers + 2 {
		v, err = f()
		var connect *pgconn.ConnectError
		lost := isBroken(err) || errors.Is(err, sqldriver.ErrBadConn) || errors.Is(err, sql.ErrConnDone)
		if err == nil || !lost || errors.As(err, &connect) || errors.Is(err, driver.ErrClosed) {
			break
		}
	}
	return v, err
}

// onSpare runs f on the connection for settings and statistics.
func (e *engine) onSpare(ctx context.Context, f func(c *sqlstore.Conn) error) error {
	_, err := onLiving(e, func() (struct{}, error) { return struct{}{}, e.WithSpare(ctx, f) })
	return withContext(ctx, err)
}

// guarded runs f unless the context is done already: database/sql would take
// pgx's refusal to start for a bad connection and drop a good one.
func guarded[T any](ctx context.Context, f func() (T, error)) (T, error) {
	if err := ctx.Err(); err != nil {
		var zero T
		return zero, err
	}
	v, err := f()
	return v, withContext(ctx, err)
}

// reader adds the context's own errors to a snapshot.
type reader struct{ driver.Reader }

// Query implements driver.Querier.
func (r *reader) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	return guarded(ctx, func() (driver.Rows, error) { return r.Reader.Query(ctx, text, args...) })
}

// Defer implements driver.Remote.
func (r *reader) Defer(ctx context.Context, text string, args ...any) error {
	rows, err := r.Query(ctx, text, args...)
	if err != nil {
		return err
	}
	return rows.Close()
}

// LiftTimeouts implements driver.Remote.
func (r *reader) LiftTimeouts(ctx context.Context) error { return r.Defer(ctx, liftTimeouts) }

// tx adds the context's own errors to a transaction, and knows when there is
// nothing to commit.
type tx struct {
	tx    *sqlstore.Tx
	ended bool // and the connection another's
}

// Query implements driver.Querier.
func (t *tx) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	return guarded(ctx, func() (driver.Rows, error) { return t.tx.Query(ctx, text, args...) })
}

// Exec implements driver.Tx.
func (t *tx) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	n, err := guarded(ctx, func() (int64, error) { return t.tx.Exec(ctx, text, args...) })
	if code(err) == codeRefused && strings.HasPrefix(text, "CREATE ") {
		err = fmt.Errorf("%w: a new store needs CREATE ON SCHEMA, which only up to Postgres 14 everybody had on public; "+
			"or name a schema of this user's by the parameter %s", err, paramSchema)
	}
	return n, err
}

// Defer implements driver.Remote.
func (t *tx) Defer(ctx context.Context, text string, args ...any) error {
	if t.ended {
		return driver.ErrClosed
	}
	_, err := guarded(ctx, func() (struct{}, error) { return struct{}{}, t.tx.Defer(ctx, text, args...) })
	return err
}

// LiftTimeouts implements driver.Remote.
func (t *tx) LiftTimeouts(ctx context.Context) error { return t.Defer(ctx, liftTimeouts) }

// Insert implements driver.Tx.
func (t *tx) Insert(ctx context.Context, table *driver.Table, rows []any) error {
	_, err := guarded(ctx, func() (struct{}, error) { return struct{}{}, t.tx.Insert(ctx, table, rows) })
	return err
}

// Update implements driver.Tx.
func (t *tx) Update(ctx context.Context, u *driver.Update, value any, keys []any) error {
	_, err := guarded(ctx, func() (struct{}, error) { return struct{}{}, t.tx.Update(ctx, u, value, keys) })
	return err
}

// Commit implements driver.Tx. Postgres answers COMMIT in a transaction with a
// failed statement by rolling back, without an error.
func (t *tx) Commit(ctx context.Context) error {
	if !t.ended {
		t.ended = true
		if err := t.lost(); err != nil {
			_ = t.tx.Rollback()
			return fmt.Errorf("commit: %w", err)
		}
	}
	return t.tx.Commit(ctx)
}

// Rollback implements driver.Tx.
func (t *tx) Rollback() error {
	t.ended = true
	return t.tx.Rollback()
}

// lost tells why the transaction cannot be committed, as far as this side of
// the connection knows.
func (t *tx) lost() error {
	err := withConn(t.tx.Conn, func(conn *pgx.Conn) error {
		switch {
		case conn.IsClosed():
			return errConnectionLost
		case conn.PgConn().TxStatus() == 'E':
			return errors.New("an earlier statement failed; the transaction was rolled back")
		}
		return nil
	})
	if errors.Is(err, sql.ErrConnDone) {
		return errConnectionLost
	}
	return err
}

var errConnectionLost = errors.New("the connection was lost and with it the transaction")

// withConn runs f on pgx's own connection.
func withConn(c *sqlstore.Conn, f func(*pgx.Conn) error) error {
	return c.Raw(func(native any) error {
		conn, ok := native.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("connection of type %T", native)
		}
		return f(conn.Conn())
	})
}
