package remote

import (
	"context"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// bulk writes many rows in a statement, and has these statements wait for the next
// request: a commit takes as many round trips as it has queries, and two.
type bulk struct {
	statements sqlstore.MultiRow
	maxRow     int
}

// Insert implements sqlstore.Bulk. Rows are taken until they fill a request.
func (b *bulk) Insert(ctx context.Context, c *sqlstore.Conn, t *driver.Table, rows []any) error {
	width := len(t.Columns)
	for len(rows) > 0 {
		n, size := 0, 0
		for n < len(rows) && size < maxQueue {
			row := rowSize(rows[n : n+width])
			if row > b.maxRow {
				return tooBig(row, b.maxRow)
			}
			n, size = n+width, size+row
		}
		if err := later(c, func() error { return b.statements.Insert(ctx, c, t, rows[:n]) }); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// Update implements sqlstore.Bulk.
func (b *bulk) Update(ctx context.Context, c *sqlstore.Conn, u *driver.Update, value any, keys []any) error {
	return later(c, func() error { return b.statements.Update(ctx, c, u, value, keys) })
}

// later runs f, whose statements wait for the next request as far as they fit.
func later(c *sqlstore.Conn, f func() error) error {
	set := func(on bool) error {
		return c.Raw(func(native any) error { native.(*conn).later = on; return nil })
	}
	if err := set(true); err != nil {
		return err
	}
	defer func() { _ = set(false) }() // it is gone when that fails
	return f()
}

// tx is a transaction whose statements need not be requests of their own.
type tx struct{ *sqlstore.Tx }

// Begin implements driver.Engine.
func (e *engine) Begin(ctx context.Context) (driver.Tx, error) {
	t, err := e.DB.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return tx{t.(*sqlstore.Tx)}, nil
}

// Defer implements driver.Remote.
func (t tx) Defer(ctx context.Context, text string, args ...any) error {
	return later(t.Conn, func() error { _, err := t.Exec(ctx, text, args...); return err })
}

// LiftTimeouts implements driver.Remote. The server's own cannot be.
func (tx) LiftTimeouts(context.Context) error { return nil }

// rowSize returns about how many bytes a row takes.
func rowSize(values []any) (n int) {
	for _, v := range values {
		switch v := v.(type) {
		case []byte:
			n += len(v)
		case string:
			n += len(v)
		default:
			n += 8
		}
	}
	return n
}
