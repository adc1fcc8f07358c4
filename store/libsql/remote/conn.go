package remote

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/libsql/internal/guard"
)

// lockPause is the pause between two attempts to get a server's write lock.
const lockPause = 20 * time.Millisecond

// connector makes connections of the client library with the guards of this
// package around them.
type connector struct {
	sqldriver.Connector
	server      string // scheme and host, for errors
	token       string
	timeout     time.Duration
	lockTimeout time.Duration
}

// Connect implements sqldriver.Connector.
func (c *connector) Connect(ctx context.Context) (sqldriver.Conn, error) {
	native, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{connector: c, native: native}, nil
}

// nativeConn is what this package uses of the client library's connections.
type nativeConn interface {
	sqldriver.ExecerContext
	sqldriver.QueryerContext
	io.Closer
}

// dial connects. The library does not heed the context of a WebSocket's
// handshake: when it is done first, the handshake ends behind our back.
func (c *connector) dial(ctx context.Context) (nativeConn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	type result struct {
		conn nativeConn
		err  error
	}
	results := make(chan result, 1)
	go func() {
		var r result
		r.err = c.protect("", func() error {
			native, err := c.Connector.Connect(ctx)
			if err == nil {
				r.conn = native.(nativeConn)
			}
			return err
		})
		results <- r
	}()
	select {
	case r := <-results:
		return r.conn, r.err
	case <-ctx.Done():
		go func() {
			if r := <-results; r.conn != nil {
				_ = r.conn.Close() // nobody is left to tell
			}
		}()
		return nil, c.explain(fmt.Errorf("connect: %w", ctx.Err()), "")
	}
}

// protect runs a call of the client library, which panics on answers that it
// does not expect, and explains its error.
func (c *connector) protect(text string, call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = c.explain(fmt.Errorf("its answer is not of the protocol Hrana: %v", p), text)
		}
	}()
	return c.explain(call(), text)
}

func isBadConn(err error) bool { return errors.Is(err, sqldriver.ErrBadConn) }

// conn is a connection of the client library: over HTTP a stream of the server,
// over WebSocket a connection with one stream.
type conn struct {
	*connector
	native nativeConn
}

// Prepare implements sqldriver.Conn.
func (c *conn) Prepare(text string) (sqldriver.Stmt, error) {
	placeholders, err := guard.Statement(text)
	if err != nil {
		return nil, err
	}
	return &stmt{conn: c, text: text, placeholders: placeholders}, nil
}

// Begin implements sqldriver.Conn.
func (c *conn) Begin() (sqldriver.Tx, error) {
	return nil, fmt.Errorf("%w: transactions begin by SQL here", driver.ErrUnsupported)
}

// Close implements sqldriver.Conn.
func (c *conn) Close() error { return c.protect("", c.native.Close) }

// CheckNamedValue implements sqldriver.NamedValueChecker.
func (c *conn) CheckNamedValue(v *sqldriver.NamedValue) error { return guard.Argument(v) }

// begin starts a transaction, on a new stream if the server has ended an idle
// one, and waits for the write lock as an embedded engine does.
func (c *conn) begin(ctx context.Context, text string) (res sqldriver.Result, err error) {
	deadline := time.Now().Add(c.lockTimeout)
	for renewed := false; ; {
		res, err = c.exec(ctx, text, nil)
		switch {
		case guard.IsBroken(err) && !renewed && ctx.Err() == nil:
			native, dialErr := c.dial(ctx)
			if dialErr != nil {
				return nil, dialErr
			}
			_ = c.protect("", c.native.Close) // it is lost
			c.native, renewed = native, true
		case errors.Is(err, driver.ErrLocked) && time.Now().Before(deadline):
			select {
			case <-time.After(lockPause):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		default:
			return res, err
		}
	}
}

func (c *conn) exec(ctx context.Context, text string, args []sqldriver.NamedValue) (res sqldriver.Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	err = c.protect(text, func() (err error) {
		res, err = c.native.ExecContext(ctx, text, args)
		if err == nil {
			_, err = res.RowsAffected() // may panic as well
		}
		return err
	})
	return res, withContext(ctx, err)
}

// withContext adds to an error the reason that the context gives: over
// WebSocket the client library keeps it to itself.
func withContext(ctx context.Context, err error) error {
	if done := ctx.Err(); err != nil && done != nil && !errors.Is(err, done) {
		return fmt.Errorf("%w: %w", done, err)
	}
	return err
}

// query returns all rows: the client library has read them when it returns.
func (c *conn) query(ctx context.Context, text string, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	r := &rows{conn: c, text: text}
	err := c.protect(text, func() (err error) {
		if r.native, err = c.native.QueryContext(ctx, text, args); err == nil {
			r.columns = r.native.Columns()
		}
		return err
	})
	if err != nil {
		return nil, withContext(ctx, err)
	}
	return r, nil
}

// stmt is the text of a statement. The client library keeps no statements on
// the server.
type stmt struct {
	conn         *conn
	text         string
	placeholders int
}

// Close implements sqldriver.Stmt.
func (s *stmt) Close() error { return nil }

// NumInput implements sqldriver.Stmt.
func (s *stmt) NumInput() int { return s.placeholders }

// Exec implements sqldriver.Stmt.
func (s *stmt) Exec([]sqldriver.Value) (sqldriver.Result, error) { return nil, errNoContext }

// Query implements sqldriver.Stmt.
func (s *stmt) Query([]sqldriver.Value) (sqldriver.Rows, error) { return nil, errNoContext }

var errNoContext = errors.New("call it with a context")

// ExecContext implements sqldriver.StmtExecContext.
func (s *stmt) ExecContext(ctx context.Context, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	if s.text == beginWrite || s.text == beginRead {
		return s.conn.begin(ctx, s.text)
	}
	return s.conn.exec(ctx, s.text, args)
}

// QueryContext implements sqldriver.StmtQueryContext.
func (s *stmt) QueryContext(ctx context.Context, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	return s.conn.query(ctx, s.text, args)
}

// rows is a result of the client library.
type rows struct {
	conn    *conn
	native  sqldriver.Rows
	text    string
	columns []string
}

// Columns implements sqldriver.Rows.
func (r *rows) Columns() []string { return r.columns }

// Close implements sqldriver.Rows.
func (r *rows) Close() error { return r.native.Close() }

// Next implements sqldriver.Rows.
func (r *rows) Next(dest []sqldriver.Value) error {
	end := false
	err := r.conn.protect(r.text, func() error {
		err := r.native.Next(dest)
		if end = errors.Is(err, io.EOF); end {
			return nil
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case end:
		return io.EOF
	}
	return guard.Row(r.Columns, dest)
}
