package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// Begin implements driver.Engine.
func (e *engine) Begin(ctx context.Context) (driver.Tx, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	t, err := e.DB.Begin(ctx)
	if err != nil {
		return nil, withContext(ctx, err)
	}
	return &tx{t.(*sqlstore.Tx)}, nil
}

// Snapshot implements driver.Engine.
func (e *engine) Snapshot(ctx context.Context) (driver.Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("begin read: %w", err)
	}
	r, err := e.DB.Snapshot(ctx)
	if err != nil {
		return nil, withContext(ctx, err)
	}
	return &reader{r}, nil
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

// tx adds the context's own errors to a transaction, and knows when there is
// nothing to commit.
type tx struct{ tx *sqlstore.Tx }

// Query implements driver.Querier.
func (t *tx) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	return guarded(ctx, func() (driver.Rows, error) { return t.tx.Query(ctx, text, args...) })
}

// Exec implements driver.Tx.
func (t *tx) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	return guarded(ctx, func() (int64, error) { return t.tx.Exec(ctx, text, args...) })
}

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
	if err := t.lost(); err != nil {
		_ = t.tx.Rollback()
		return fmt.Errorf("commit: %w", err)
	}
	return t.tx.Commit(ctx)
}

// Rollback implements driver.Tx.
func (t *tx) Rollback() error { return t.tx.Rollback() }

// lost tells why the transaction cannot be committed, as far as this side of
// the connection knows.
func (t *tx) lost() error {
	err := withConn(t.tx.Conn, func(conn *pgx.Conn) error {
		switch {
		case conn.IsClosed():
			return errors.New("the connection was lost and with it the transaction")
		case conn.PgConn().TxStatus() == 'E':
			return errors.New("an earlier statement failed; the transaction was rolled back")
		}
		return nil
	})
	if errors.Is(err, sql.ErrConnDone) {
		return nil // ended before, which the transaction itself tells
	}
	return err
}

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
