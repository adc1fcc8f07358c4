package libsql

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"

	golibsql "github.com/tursodatabase/go-libsql"

	"github.com/varvedb/varve/internal/sqlitewal"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/libsql/internal/guard"
)

// beginWrite starts a write transaction. The library's BeginTx only starts
// deferred ones.
const beginWrite = "BEGIN IMMEDIATE"

// connector makes connections of the library, wrapped with this package's
// checks.
type connector struct{ sqldriver.Connector }

// newConnector prepares to open a file. The library opens it with the first
// connection.
func newConnector(path string, readOnly bool) (*connector, error) {
	// The library exports no constructor for files, but its driver has one.
	native, err := (*golibsql.Connector)(nil).Driver().(sqldriver.DriverContext).OpenConnector(sqlitewal.URI(path, readOnly))
	if err != nil {
		return nil, err
	}
	return &connector{native}, nil
}

// openPool prepares the connection pool of an engine.
func openPool(path string, readOnly bool) (*sql.DB, error) {
	if err := checkWritable(path, readOnly); err != nil {
		return nil, err
	}
	link, err := newConnector(path, readOnly)
	if err != nil {
		return nil, mapError(err)
	}
	return sql.OpenDB(link), nil
}

// Connect implements sqldriver.Connector.
func (c *connector) Connect(ctx context.Context) (sqldriver.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	native, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{native: native.(nativeConn)}, nil
}

// Close implements io.Closer, which sql.DB looks for.
func (c *connector) Close() error { return c.Connector.(io.Closer).Close() }

// nativeConn has the methods of the library's connection that this package
// uses. Prepare is not one of them: it parses the text in Go, which takes 100
// ms for an insert of a thousand rows, and prepares nothing in SQLite.
type nativeConn interface {
	sqldriver.ExecerContext
	sqldriver.QueryerContext
	io.Closer
}

// conn is a connection of the library, with checks.
type conn struct {
	native nativeConn
	late   <-chan struct{} // closed at the end of a call that was given up
}

// Prepare implements sqldriver.Conn.
func (c *conn) Prepare(text string) (sqldriver.Stmt, error) {
	return c.PrepareContext(context.Background(), text)
}

// PrepareContext implements sqldriver.ConnPrepareContext. SQLite compiles the
// text at each execution: the library keeps no statements.
func (c *conn) PrepareContext(ctx context.Context, text string) (sqldriver.Stmt, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
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

// ExecContext implements sqldriver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, text string, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	s, err := c.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	return s.(*stmt).ExecContext(ctx, args)
}

// QueryContext implements sqldriver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, text string, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	s, err := c.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	return s.(*stmt).QueryContext(ctx, args)
}

// Close implements sqldriver.Conn. If a call was given up, the library's
// connection stays open until that call ends.
func (c *conn) Close() error {
	if c.late == nil {
		return c.native.Close()
	}
	go func() {
		<-c.late
		_ = c.native.Close()
	}()
	return nil
}

// begin runs beginWrite. The library does not end the wait for another process
// when ctx ends, so the connection is given up then; its call ends with the
// lock timeout.
func (c *conn) begin(ctx context.Context) error {
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err = c.native.ExecContext(ctx, beginWrite, nil)
	}()
	select {
	case <-done:
		return err
	case <-ctx.Done():
		c.late = done
		return fmt.Errorf("wait for the write lock: %w: %w", ctx.Err(), guard.ErrBroken)
	}
}

// stmt is the text of a statement.
type stmt struct {
	conn         *conn
	text         string
	placeholders int
}

// Close implements sqldriver.Stmt.
func (s *stmt) Close() error { return nil }

// NumInput implements sqldriver.Stmt. It is checked here, because the library
// would bind NULL to a missing argument.
func (s *stmt) NumInput() int { return s.placeholders }

// Exec implements sqldriver.Stmt.
func (s *stmt) Exec([]sqldriver.Value) (sqldriver.Result, error) { return nil, errNoContext }

// Query implements sqldriver.Stmt.
func (s *stmt) Query([]sqldriver.Value) (sqldriver.Rows, error) { return nil, errNoContext }

var errNoContext = errors.New("call it with a context")

// ExecContext implements sqldriver.StmtExecContext.
func (s *stmt) ExecContext(ctx context.Context, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	if err := check(ctx, args); err != nil {
		return nil, err
	}
	switch {
	case s.text == beginWrite && ctx.Done() != nil:
		return sqldriver.RowsAffected(0), s.conn.begin(ctx)
	case isPragma(s.text):
		return s.drain(ctx)
	}
	return s.conn.native.ExecContext(ctx, s.text, args)
}

// QueryContext implements sqldriver.StmtQueryContext.
func (s *stmt) QueryContext(ctx context.Context, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	if err := check(ctx, args); err != nil {
		return nil, err
	}
	if s.text == beginWrite && ctx.Done() != nil {
		return none{}, s.conn.begin(ctx)
	}
	native, err := s.conn.native.QueryContext(ctx, s.text, args)
	if err != nil {
		return nil, err
	}
	return &rows{native}, nil
}

// check refuses to begin a call whose ctx has ended, and arguments that the
// library would change.
func check(ctx context.Context, args []sqldriver.NamedValue) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range args {
		if err := guard.Argument(&args[i]); err != nil && !errors.Is(err, sqldriver.ErrSkip) {
			return err
		}
	}
	return nil
}

// drain runs a statement and discards its rows. Pragmas need it, because the
// library refuses them in Exec.
func (s *stmt) drain(ctx context.Context) (sqldriver.Result, error) {
	r, err := s.QueryContext(ctx, nil)
	if err != nil {
		return nil, err
	}
	values := make([]sqldriver.Value, len(r.Columns()))
	for err == nil {
		err = r.Next(values)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return sqldriver.RowsAffected(0), errors.Join(err, r.Close())
}

func isPragma(text string) bool {
	const word = "PRAGMA"
	text = strings.TrimSpace(text)
	return len(text) > len(word) && strings.EqualFold(text[:len(word)], word)
}
