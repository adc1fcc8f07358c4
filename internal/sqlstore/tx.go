package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/varvedb/varve/store/driver"
)

// Tx is the write transaction.
type Tx struct {
	*Conn
	db   *DB
	done bool
}

// Exec implements driver.Tx.
func (tx *Tx) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	if tx.done {
		return 0, driver.ErrClosed
	}
	return tx.Conn.Exec(ctx, text, args...)
}

// Query implements driver.Querier.
func (tx *Tx) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	if tx.done {
		return nil, driver.ErrClosed
	}
	return tx.Conn.Query(ctx, text, args...)
}

// Insert implements driver.Tx.
func (tx *Tx) Insert(ctx context.Context, t *driver.Table, rows []any) error {
	if tx.done {
		return driver.ErrClosed
	}
	if len(rows)%len(t.Columns) != 0 {
		return fmt.Errorf("insert into %s: %d values do not fill rows of %d columns", t.Name, len(rows), len(t.Columns))
	}
	if len(rows) == 0 {
		return nil
	}
	if err := tx.db.cfg.Bulk.Insert(ctx, tx.Conn, t, rows); err != nil {
		return fmt.Errorf("insert into %s: %w", t.Name, err)
	}
	return nil
}

// Update implements driver.Tx.
func (tx *Tx) Update(ctx context.Context, u *driver.Update, value any, keys []any) error {
	if tx.done {
		return driver.ErrClosed
	}
	if len(keys)%len(u.Key) != 0 {
		return fmt.Errorf("update %s: %d values do not fill keys of %d columns", u.Table, len(keys), len(u.Key))
	}
	if len(keys) == 0 {
		return nil
	}
	if err := tx.db.cfg.Bulk.Update(ctx, tx.Conn, u, value, keys); err != nil {
		return fmt.Errorf("update %s: %w", u.Table, err)
	}
	return nil
}

// Commit implements driver.Tx. The context is not passed on: a commit that was
// started is finished.
func (tx *Tx) Commit(ctx context.Context) error {
	if tx.done {
		return driver.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		_ = tx.Rollback()
		return fmt.Errorf("commit: %w", err)
	}
	if tx.db.cfg.BeforeCommit != nil {
		if err := tx.db.cfg.BeforeCommit(ctx, tx.Conn); err != nil {
			return fmt.Errorf("commit: %w", errors.Join(err, tx.Rollback()))
		}
	}
	if _, err := tx.Conn.Exec(context.WithoutCancel(ctx), "COMMIT"); err != nil {
		if tx.Conn.broken {
			err = fmt.Errorf("%w: %w", driver.ErrUnknownOutcome, err)
		}
		_ = tx.Rollback()
		return fmt.Errorf("commit: %w", err)
	}
	tx.done = true
	if tx.db.cfg.AfterWrite != nil {
		tx.db.cfg.AfterWrite(tx.Conn)
	}
	tx.db.giveWriter(tx.Conn)
	return nil
}

// Rollback implements driver.Tx.
func (tx *Tx) Rollback() error {
	if tx.done {
		return nil
	}
	tx.done = true
	err := tx.Conn.rollback()
	tx.db.giveWriter(tx.Conn)
	return err
}

// Reader is a read transaction on a pooled connection. The checkpointer may end
// it from another goroutine, so every use takes its mutex.
type Reader struct {
	db    *DB
	lease *lease // with which its slot was taken

	mu     sync.Mutex
	conn   *Conn // nil once ended
	rows   *Rows // open result, or nil
	why    error // after the end: what calls return
	unread bool  // the first query has yet to fix the view
	random bool  // see RandomAccess
}

// Query implements driver.Querier.
func (r *Reader) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	return r.query(ctx, driver.Statement{Text: text}, args)
}

func (r *Reader) query(ctx context.Context, s driver.Statement, args []any) (driver.Rows, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn == nil {
		return nil, r.why
	}
	rows, err := r.conn.query(ctx, s, args)
	if err != nil && r.unread && r.conn.broken && ctx.Err() == nil && !r.db.isClosed() {
		if err = r.renew(ctx); err == nil {
			rows, err = r.conn.query(ctx, s, args)
		}
	}
	if err != nil {
		return nil, err
	}
	r.unread = false
	r.rows = rows.(*Rows)
	r.rows.guard = r
	return r.rows, nil
}

// ReadAhead implements driver.Reader.
func (r *Reader) ReadAhead(ctx context.Context, table string, ids []any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != nil && r.db.cfg.ReadAhead != nil {
		r.db.cfg.ReadAhead(ctx, r.conn, table, ids)
	}
}

// RandomAccess implements driver.Reader.
func (r *Reader) RandomAccess(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != nil {
		r.setRandom(on)
	}
}

func (r *Reader) setRandom(on bool) {
	if r.random != on && r.db.cfg.RandomAccess != nil {
		r.db.cfg.RandomAccess(r.conn, on)
		r.random = on
	}
}

// Close ends the read transaction and gives the connection back.
func (r *Reader) Close() error { return r.end(driver.ErrClosed) }

// end ends the transaction, under open rows if need be.
func (r *Reader) end(why error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn == nil {
		return nil
	}
	r.setRandom(false)
	c := r.conn
	r.conn, r.why = nil, why
	if r.rows != nil {
		r.rows.err = why
		_ = r.rows.rows.Close()
	}
	err := c.rollback()
	r.db.mu.Lock()
	delete(r.db.open, r)
	r.db.mu.Unlock()
	r.db.slots.free(c.seat, c)
	r.db.slots.give(r.lease, 1)
	return err
}
