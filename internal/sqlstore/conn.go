package sqlstore

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/varvedb/varve/store/driver"
)

// maxStatements bounds the prepared statements of a connection; beyond that all
// are dropped. Usually the texts are a small set, and only a workload of ever
// new query shapes reaches the limit.
const maxStatements = 512

// Conn is a pinned connection with its prepared statements. It is not safe for
// concurrent use.
//
// Statements run in one of three ways, because each made reads at least a tenth
// cheaper where it is used: on a server's connection (remote), so that several
// share a round trip; on the driver's connection (native), without the locks
// and copies of database/sql; or through database/sql.
type Conn struct {
	conn     *sql.Conn
	seat     int // see Seat
	native   any // the driver's connection, nil unless statements run on it
	remote   Remote
	stmts    map[string]statement
	unkept   statement // the last statement that is not kept; closed when the next one runs
	codec    Codec
	mapError func(error) error
	isBroken func(error) bool
	broken   bool // its state is unknown, so it is not used again
	closed   atomic.Bool
	failed   error    // the first error of a statement in this transaction
	late     bool     // commits become durable after they have returned
	settings []string // of each transaction; see Share
	args     []any    // reused memory: arguments after the codec
}

// The seat numbers of connections that serve no reader.
const (
	Writer = -1
	Spare  = -2 // see WithSpare
)

// connect makes a connection and runs the engine's Setup on it.
func (db *DB) connect(ctx context.Context, seat int) (*Conn, error) {
	if db.cfg.Remote == nil { // so that Setup can find the new descriptor; nothing here waits for long
		db.connecting.Lock()
		defer db.connecting.Unlock()
	}
	conn, err := db.cfg.Pool.Conn(ctx)
	if err != nil {
		return nil, db.mapError(err)
	}
	c := &Conn{
		conn: conn, seat: seat, stmts: map[string]statement{},
		codec: db.cfg.Codec, mapError: db.mapError, isBroken: db.cfg.IsBroken,
	}
	// The driver's connection may be used after Raw returns, because conn is
	// pinned and one goroutine uses it at a time.
	err = db.mapError(conn.Raw(func(native any) error {
		if db.cfg.Direct {
			c.native = native
		}
		if db.cfg.Remote != nil {
			c.remote = db.cfg.Remote(native)
		}
		return nil
	}))
	if err == nil && db.cfg.Setup != nil {
		err = db.cfg.Setup(ctx, c, seat < 0 && !db.cfg.Options.ReadOnly)
	}
	if err != nil {
		c.abandon()
		return nil, err
	}
	return c, nil
}

func (db *DB) mapError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrConnDone) && db.isClosed():
		return fmt.Errorf("%w: %w", driver.ErrClosed, err)
	case db.cfg.MapError != nil:
		return db.cfg.MapError(err)
	}
	return err
}

// Seat returns the number of the reader that the connection serves, or Writer
// or Spare. A view gets the lowest free number, so numbers below
// Options.Concurrency are used most.
func (c *Conn) Seat() int { return c.seat }

// Raw gives access to the driver's connection, as sql.Conn.Raw does.
func (c *Conn) Raw(f func(driverConn any) error) error { return c.conn.Raw(f) }

// Share declares that each transaction may get another session of the server,
// which other clients use afterwards, as behind a pooler. So nothing may remain
// in a session: statements are not kept prepared, DB opens a transaction for a
// statement that runs outside of one, and each BEGIN sends the settings along
// in the same message. The effect of the settings must end with the
// transaction. The connection must be a Remote's.
func (c *Conn) Share(settings []string) { c.settings = settings }

// Shared reports whether Share was called.
func (c *Conn) Shared() bool { return c.settings != nil }

// InSession runs f with the connection's settings in effect: outside a
// transaction, or inside one on a shared connection.
func (c *Conn) InSession(ctx context.Context, f func(c *Conn) error) error {
	if !c.Shared() {
		return f(c)
	}
	if err := c.begin(ctx, "BEGIN"); err != nil {
		return err
	}
	if err := f(c); err != nil {
		return errors.Join(err, c.rollback())
	}
	if err := c.ExecOnce(context.WithoutCancel(ctx), "COMMIT"); err != nil {
		return errors.Join(err, c.rollback())
	}
	return nil
}

// Exec runs one statement and returns the number of rows it changed.
func (c *Conn) Exec(ctx context.Context, text string, args ...any) (n int64, err error) {
	if c.remote != nil {
		text = c.codec.Rebind(text)
		n, err = c.remote.Exec(ctx, text, c.staysOnServer(text), c.encode(args))
		return n, c.Mapped(err)
	}
	stmt, err := c.prepare(ctx, text)
	if err != nil {
		return 0, err
	}
	n, err = stmt.exec(ctx, c.encode(args))
	return n, c.Mapped(err)
}

// begin runs a statement that begins a transaction and may wait for a lock.
// After an error the connection is either in no transaction or broken.
func (c *Conn) begin(ctx context.Context, text string) (err error) {
	c.failed = nil
	// A Remote sends it with the next statement.
	if c.remote != nil {
		c.later(text)
		for _, text := range c.settings {
			c.later(text)
		}
		return nil
	}
	// On the driver's connection a query needs no goroutine that watches ctx,
	// while Exec may.
	if c.native != nil && ctx.Done() != nil {
		var rows driver.Rows
		if rows, err = c.Query(ctx, text); err == nil {
			rows.Next()
			err = errors.Join(rows.Err(), rows.Close())
		}
	} else {
		_, err = c.Exec(ctx, text)
	}
	// A driver may report that ctx has ended although the transaction has
	// begun, so roll back. If it has not begun, ROLLBACK fails, which is
	// harmless.
	if err != nil && !c.broken {
		_, _ = c.conn.ExecContext(context.Background(), "ROLLBACK")
	}
	return err
}

// ExecOnce runs one settings statement, without preparing or translating it.
// DDL may also use Exec; see staysPrepared.
func (c *Conn) ExecOnce(ctx context.Context, text string) (err error) {
	if c.remote != nil {
		_, err = c.remote.Exec(ctx, text, false, nil)
	} else {
		_, err = c.conn.ExecContext(ctx, text)
	}
	return c.Mapped(err)
}

// QueryOnce runs one statement without preparing it.
func (c *Conn) QueryOnce(ctx context.Context, text string) (rows driver.Rows, err error) {
	if c.remote != nil {
		rows, err = c.remote.Query(ctx, driver.Statement{Text: text}, false, nil)
	} else {
		rows, err = c.conn.QueryContext(ctx, text)
	}
	return rows, c.Mapped(err)
}

// Mapped adds the driver package's error to an error of rows from QueryOnce.
func (c *Conn) Mapped(err error) error {
	if err == nil {
		return nil
	}
	return c.fail(err)
}

// Query runs one statement.
func (c *Conn) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	return c.query(ctx, driver.Statement{Text: text}, args)
}

// query runs a statement with hints, which only a Remote uses.
func (c *Conn) query(ctx context.Context, s driver.Statement, args []any) (driver.Rows, error) {
	var rows resultSet
	var err error
	if c.remote != nil {
		s.Text = c.codec.Rebind(s.Text)
		rows, err = c.remote.Query(ctx, s, c.staysOnServer(s.Text), c.encode(args))
	} else {
		stmt, failed := c.prepare(ctx, s.Text)
		if failed != nil {
			return nil, failed
		}
		rows, err = stmt.query(ctx, c.encode(args))
	}
	if err != nil {
		return nil, c.fail(err)
	}
	return &Rows{rows: rows, conn: c}, nil
}

// QueryText returns the first column of the first row as text, for settings.
func (c *Conn) QueryText(ctx context.Context, text string) (string, error) {
	list, err := c.QueryTexts(ctx, text)
	if err == nil && len(list) == 0 {
		err = sql.ErrNoRows
	}
	if err != nil {
		return "", err
	}
	return list[0], nil
}

// QueryTexts returns the first column of all rows as text, "" for NULL.
func (c *Conn) QueryTexts(ctx context.Context, text string) (list []string, err error) {
	rows, err := c.QueryOnce(ctx, text)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var value sql.NullString
		if err := rows.Scan(&value); err != nil {
			return nil, c.fail(err)
		}
		list = append(list, value.String)
	}
	return list, c.Mapped(rows.Err())
}

// prepare returns the prepared statement of a text. A Remote prepares its own.
func (c *Conn) prepare(ctx context.Context, text string) (stmt statement, err error) {
	if stmt, ok := c.stmts[text]; ok {
		return stmt, nil
	}
	if len(c.stmts) >= maxStatements {
		c.closeStatements()
	}
	if native := c.codec.Rebind(text); c.native != nil {
		stmt, err = prepareDirect(ctx, c.native, native)
	} else {
		var prepared *sql.Stmt
		prepared, err = c.conn.PrepareContext(ctx, native)
		stmt = pooled{prepared}
	}
	if err != nil {
		return nil, c.fail(err)
	}
	if staysPrepared(text) {
		c.stmts[text] = stmt
		return stmt, nil
	}
	c.closeUnkept()
	c.unkept = stmt
	return stmt, nil
}

// closeUnkept closes the statement of the last run if it is not kept.
func (c *Conn) closeUnkept() {
	if c.unkept != nil {
		_ = c.unkept.Close()
		c.unkept = nil
	}
}

// preparedWords are the first words of statements that stay prepared, because a store
// runs them repeatedly.
var preparedWords = []string{
	"SELECT", "WITH", "VALUES", "INSERT", "UPDATE", "DELETE", "BEGIN", "COMMIT", "ROLLBACK",
}

// staysPrepared reports whether a statement stays prepared. All others, including DDL,
// are prepared for each run, because a plan for creating a table may work only
// once: DuckDB 1.5.5 removes the columns from the plan, and after a rollback of
// the first run it executes CREATE TABLE without columns.
func staysPrepared(text string) bool {
	word := strings.TrimLeft(text, " \t\r\n(")
	if i := strings.IndexAny(word, " \t\r\n(;"); i >= 0 {
		word = word[:i]
	}
	return slices.ContainsFunc(preparedWords, func(k string) bool { return strings.EqualFold(k, word) })
}

// closeStatements closes the prepared statements.
func (c *Conn) closeStatements() {
	c.closeUnkept()
	for _, stmt := range c.stmts {
		_ = stmt.Close()
	}
	clear(c.stmts)
}

func (c *Conn) encode(args []any) []any {
	c.args = c.args[:0]
	for _, a := range args {
		c.args = append(c.args, c.codec.Encode(a))
	}
	return c.args
}

// fail maps an error, and records the first error of the transaction and
// whether the connection is broken.
func (c *Conn) fail(err error) error {
	if errors.Is(err, sqldriver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		c.isBroken != nil && c.isBroken(err) {
		c.broken = true
	}
	err = c.mapError(err)
	if c.failed == nil {
		c.failed = err
	}
	return err
}

// Failed returns the error of the first statement that failed in this transaction.
func (c *Conn) Failed() error { return c.failed }

// rollback ends the open transaction, also when the caller's context is done.
func (c *Conn) rollback() (err error) {
	switch {
	case c.broken:
		return nil
	case c.remote != nil:
		err = c.Mapped(c.remote.Rollback())
	case c.native != nil:
		_, err = c.Exec(context.Background(), "ROLLBACK")
	default:
		_, err = c.conn.ExecContext(context.Background(), "ROLLBACK")
		err = c.mapError(err)
	}
	c.broken = c.broken || err != nil
	return err
}

func (c *Conn) close() error {
	if c == nil {
		return nil
	}
	c.closeStatements()
	defer c.closed.Store(true)
	if err := c.conn.Close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
		return c.mapError(err)
	}
	return nil
}

// abandon closes a connection permanently instead of returning it to the pool.
func (c *Conn) abandon() {
	c.closeStatements()
	_ = c.conn.Raw(func(any) error { return sqldriver.ErrBadConn })
	_ = c.conn.Close()
	c.closed.Store(true)
}

// Closed reports whether the connection has been closed.
func (c *Conn) Closed() bool { return c.closed.Load() }

// dropBroken returns c, or nil after abandoning it when it is broken.
func dropBroken(c *Conn) *Conn {
	if c != nil && c.broken {
		c.abandon()
		return nil
	}
	return c
}

// Remote is a driver's connection to a server, used without database/sql,
// because here the number of round trips counts. Like a Conn it is for one
// goroutine at a time. A statement that is kept is prepared once for the
// connection.
type Remote interface {
	// Later queues a statement. It is sent before the next statement, in the
	// same message. The arguments are not retained. Its error is returned by
	// the next statement.
	Later(ctx context.Context, text string, keep bool, args []any) error

	// Prefetch queues a query. It is sent after the next statement that returns
	// rows or is executed, in the same message, unless it is that statement. The
	// first Query of the same text and arguments gets its answer, unless Later or
	// Exec came between.
	Prefetch(ctx context.Context, text string, keep bool, args []any) error

	// Flush sends the queued statements.
	Flush(ctx context.Context) error

	// Exec runs one statement, or several if they have no arguments and are not
	// kept, and returns the number of changed rows.
	Exec(ctx context.Context, text string, keep bool, args []any) (int64, error)

	// Query runs one statement.
	Query(ctx context.Context, s driver.Statement, keep bool, args []any) (driver.Rows, error)

	// Rollback ends the transaction, even while rows are open. It does not wait
	// for the answer; a lost connection is noticed by the next call.
	Rollback() error
}

// later queues a statement without arguments; see Remote.Later.
func (c *Conn) later(text string) { _ = c.remote.Later(context.Background(), text, false, nil) }

// Defer queues a statement; the next statement may return its error.
func (c *Conn) Defer(ctx context.Context, text string, args ...any) error {
	return c.Mapped(c.remote.Later(ctx, c.codec.Rebind(text), c.staysOnServer(text), c.encode(args)))
}

// prefetch queues queries that are sent after the next statement.
func (c *Conn) prefetch(ctx context.Context, expected []driver.Prefetch) error {
	for _, p := range expected {
		text := c.codec.Rebind(p.Text)
		if err := c.remote.Prefetch(ctx, text, c.staysOnServer(text), c.encode(p.Args)); err != nil {
			return c.fail(err)
		}
	}
	return nil
}

// staysOnServer reports whether a Remote keeps a statement prepared. A shared
// connection has another session for each transaction, so it keeps none.
func (c *Conn) staysOnServer(text string) bool { return !c.Shared() && staysPrepared(text) }

// Flush sends the Remote's queued statements, before a call that bypasses the
// queue.
func (c *Conn) Flush(ctx context.Context) error { return c.Mapped(c.remote.Flush(ctx)) }

// renew opens a reader's view on another connection. The old one was lost
// before anything was read, so the caller notices no difference.
func (r *Reader) renew(ctx context.Context) error {
	r.conn.abandon() // before a new one is made, because the number of connections is limited
	c, err := r.db.connect(ctx, r.conn.seat)
	if err != nil {
		return err
	}
	r.conn = c
	return r.db.beginRead(ctx, c, false)
}

// asTx and asReader add the methods of driver.Remote to transactions and views
// of a server.
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

// Expect implements driver.Remote.
func (tx remoteTx) Expect(ctx context.Context, expected []driver.Prefetch) error {
	if tx.done {
		return driver.ErrClosed
	}
	return tx.prefetch(ctx, expected)
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

// Expect implements driver.Remote.
func (r remoteReader) Expect(ctx context.Context, expected []driver.Prefetch) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn == nil {
		return r.why
	}
	return r.conn.prefetch(ctx, expected)
}

// LiftTimeouts implements driver.Remote.
func (r remoteReader) LiftTimeouts(ctx context.Context) error { return r.db.liftTimeouts(ctx, r) }

func (db *DB) liftTimeouts(ctx context.Context, of driver.Remote) error {
	if db.cfg.LiftTimeouts == "" {
		return nil
	}
	return of.Defer(ctx, db.cfg.LiftTimeouts)
}

// DriverRows converts a driver's rows for a Remote. The driver must allocate
// each value.
func DriverRows(ctx context.Context, rows sqldriver.Rows) driver.Rows {
	return &directRows{ctx: ctx, rows: rows, values: make([]sqldriver.Value, len(rows.Columns()))}
}
