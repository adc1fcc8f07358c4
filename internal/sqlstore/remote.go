package sqlstore

import (
	"context"
	sqldriver "database/sql/driver"

	"github.com/varvedb/varve/store/driver"
)

// Remote is a driver's connection to a server, used past database/sql: how often its
// answer is waited for is what counts there. Like a Conn it is for one goroutine at a
// time. A statement that is kept is prepared once for the connection.
type Remote interface {
	// Later queues a statement, which is sent in one message with the next one
	// and in front of it. The arguments are not kept. Its error is the next
	// statement's error.
	Later(ctx context.Context, text string, keep bool, args []any) error

	// Flush sends the queued statements.
	Flush(ctx context.Context) error

	// Exec runs one statement, and without arguments and not kept also several, and
	// returns the number of rows it changed.
	Exec(ctx context.Context, text string, keep bool, args []any) (int64, error)

	// Query runs one statement.
	Query(ctx context.Context, s driver.Statement, keep bool, args []any) (driver.Rows, error)

	// Rollback ends the transaction, under open rows if need be. It does not wait for
	// the answer: whether the connection was lost over it shows at the next call.
	Rollback() error
}

// remoteStatement is a statement of a Remote.
type remoteStatement struct {
	conn  Remote
	text  string
	keep  bool
	hints driver.Statement // its text is not used
}

func (s remoteStatement) exec(ctx context.Context, args []any) (int64, error) {
	return s.conn.Exec(ctx, s.text, s.keep, args)
}

func (s remoteStatement) query(ctx context.Context, args []any) (resultSet, error) {
	native := s.hints
	native.Text = s.text
	return s.conn.Query(ctx, native, s.keep, args)
}

// later leaves a statement without arguments to a Remote's next one; see there.
func (c *Conn) later(text string) { _ = c.remote.Later(context.Background(), text, false, nil) }

// Defer leaves a statement to a Remote's next one, whose error may be this one's.
func (c *Conn) Defer(ctx context.Context, text string, args ...any) error {
	return c.Mapped(c.remote.Later(ctx, c.codec.Rebind(text), c.keepsRemote(text), c.encode(args)))
}

// keepsRemote reports whether a Remote keeps a statement prepared. A shared
// connection has another session for each transaction, so no statement is kept
// there.
func (c *Conn) keepsRemote(text string) bool { return !c.Shared() && keeps(text) }

// Flush sends a Remote's queued statements, before the driver's connection is
// used directly.
func (c *Conn) Flush(ctx context.Context) error { return c.Mapped(c.remote.Flush(ctx)) }

// Close implements statement. How many are kept is the Remote's affair.
func (s remoteStatement) Close() error { return nil }

// renew opens the view of a reader on another connection. Its own was lost before
// anything was read, so the caller sees no difference.
func (r *Reader) renew(ctx context.Context) error {
	r.conn.abandon() // first: there may be no more connections than are open
	c, err := r.db.connect(ctx, r.conn.seat)
	if err != nil {
		return err
	}
	r.conn = c
	return r.db.beginRead(ctx, c, false)
}

// asTx and asReader add the methods of driver.Remote to transactions and views of
// a server.
func asTx(tx *Tx) driver.Tx {
	if tx.remote != nil {
		return remoteTx{tx}
	}
	return tx
}

func asReader(r *Reader) driver.Reader {
	if r.conn.remote != nil {
		return remoteReader{r}
	}
	return r
}

// remoteTx is a transaction of a server.
type remoteTx struct{ *Tx }

// Defer implements driver.Remote.
func (tx remoteTx) Defer(ctx context.Context, text string, args ...any) error {
	if tx.done {
		return driver.ErrClosed
	}
	return tx.Conn.Defer(ctx, text, args...)
}

// QueryStatement implements driver.Remote.
func (tx remoteTx) QueryStatement(ctx context.Context, s driver.Statement, args ...any) (driver.Rows, error) {
	if tx.done {
		return nil, driver.ErrClosed
	}
	return tx.query(ctx, s, args)
}

// LiftTimeouts implements driver.Remote.
func (tx remoteTx) LiftTimeouts(ctx context.Context) error { return tx.db.liftTimeouts(ctx, tx) }

// remoteReader is a view of a server.
type remoteReader struct{ *Reader }

// Defer implements driver.Remote.
func (r remoteReader) Defer(ctx context.Context, text string, args ...any) error {
	rows, err := r.Query(ctx, text, args...)
	if err != nil {
		return err
	}
	return rows.Close()
}

// QueryStatement implements driver.Remote.
func (r remoteReader) QueryStatement(ctx context.Context, s driver.Statement, args ...any) (driver.Rows, error) {
	return r.query(ctx, s, args)
}

// LiftTimeouts implements driver.Remote.
func (r remoteReader) LiftTimeouts(ctx context.Context) error { return r.db.liftTimeouts(ctx, r) }

func (db *DB) liftTimeouts(ctx context.Context, of driver.Remote) error {
	if db.cfg.LiftTimeouts == "" {
		return nil
	}
	return of.Defer(ctx, db.cfg.LiftTimeouts)
}

// DriverRows converts rows of a driver to rows of the contract, for a Remote. The
// driver allocates each value.
func DriverRows(ctx context.Context, rows sqldriver.Rows) driver.Rows {
	return &directRows{ctx: ctx, rows: rows, values: make([]sqldriver.Value, len(rows.Columns()))}
}
