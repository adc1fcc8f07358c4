package sqlstore

import (
	"context"
	"sync"

	"github.com/varvedb/varve/store/driver"
)

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

// Close ends the read transaction and gives the connection back.
func (r *Reader) Close() error { return r.end(driver.ErrClosed) }

// end ends the transaction, under open rows if need be.
func (r *Reader) end(why error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn == nil {
		return nil
	}
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
