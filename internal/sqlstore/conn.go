package sqlstore

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/varvedb/varve/store/driver"
)

// maxStatements is the most prepared statements of one connection. The texts in
// use come from a small set. A workload of ever new query shapes starts over.
const maxStatements = 512

// Conn is a pinned connection with its prepared statements. It is not safe for
// concurrent use.
//
// Statements run in one of three ways, because each way made reads at least a
// tenth cheaper where it is used: on the connection of a server (remote), so that
// several share a round trip; on the driver's own connection (native), without
// the locks and copies of database/sql; or through database/sql.
type Conn struct {
	conn     *sql.Conn
	seat     int // see Seat
	native   any // nil unless statements run on it
	remote   Remote
	stmts    map[string]statement
	unkept   statement // the last one that is not kept; closed when the next comes
	codec    Codec
	mapError func(error) error
	isBroken func(error) bool
	broken   bool     // its state is unknown, so it is not used again
	failed   error    // of the first statement that failed in this transaction
	late     bool     // commits are made durable after they have returned
	settings []string // of each transaction; see Share
	args     []any    // scratch: arguments after the codec
}

// The seats of connections that serve no reader.
const (
	Writer = -1
	Spare  = -2 // see WithSpare
)

// connect makes a connection and runs the engine's Setup on it.
func (db *DB) connect(ctx context.Context, seat int) (*Conn, error) {
	conn, err := db.cfg.Pool.Conn(ctx)
	if err != nil {
		return nil, db.mapError(err)
	}
	c := &Conn{
		conn: conn, seat: seat, stmts: map[string]statement{},
		codec: db.cfg.Codec, mapError: db.mapError, isBroken: db.cfg.IsBroken,
	}
	// The driver's connection may be used after Raw, because conn is pinned and
	// one goroutine uses it at a time.
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

// Seat returns the number of the reader that the connection serves, or Writer or
// Spare. A view gets the lowest free number, so those below Options.Concurrency
// are used most.
func (c *Conn) Seat() int { return c.seat }

// Raw gives access to the driver's own connection, as sql.Conn.Raw does.
func (c *Conn) Raw(f func(driverConn any) error) error { return c.conn.Raw(f) }

// Share notes that each transaction may get another session of the server, which
// other clients use afterwards. So nothing may be left behind in a session:
// statements are not kept prepared, DB opens a transaction for a statement that
// runs outside of one, and each BEGIN sends the settings along, in one message.
// The effect of the settings must end with the transaction. The connection must
// be a Remote's.
func (c *Conn) Share(settings []string) { c.settings = settings }

// Shared reports whether Share was called.
func (c *Conn) Shared() bool { return c.settings != nil }

// InSession runs f where settings hold: outside a transaction, or inside one on a
// shared connection.
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
func (c *Conn) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	stmt, err := c.prepare(ctx, text)
	if err != nil {
		return 0, err
	}
	n, err := stmt.exec(ctx, c.encode(args))
	if err != nil {
		return 0, c.fail(err)
	}
	return n, nil
}

// begin runs a statement that begins a transaction and may wait for a lock. After
// an error the connection is in no transaction, or broken.
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
	// On the driver's own connection a query needs no goroutine that watches ctx,
	// where Exec may.
	if c.native != nil && ctx.Done() != nil {
		var rows driver.Rows
		if rows, err = c.Query(ctx, text); err == nil {
			rows.Next()
			err = errors.Join(rows.Err(), rows.Close())
		}
	} else {
		_, err = c.Exec(ctx, text)
	}
	// A driver may report that ctx has ended although the transaction has begun.
	// If it has not, the error of ROLLBACK says so, which is right.
	if err != nil && !c.broken {
		_, _ = c.conn.ExecContext(context.Background(), "ROLLBACK")
	}
	return err
}

// ExecOnce runs one statement that sets something, without preparing or
// translating it. DDL may come by Exec as well; see keeps.
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

// Mapped returns an error of rows that QueryOnce gave, joined with the contract's
// sentinel.
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
	stmt, err := c.prepare(ctx, s.Text)
	if err != nil {
		return nil, err
	}
	if r, ok := stmt.(remoteStatement); ok {
		r.hints = s
		stmt = r
	}
	rows, err := stmt.query(ctx, c.encode(args))
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

// prepare returns the prepared statement of a text.
func (c *Conn) prepare(ctx context.Context, text string) (stmt statement, err error) {
	if stmt, ok := c.stmts[text]; ok {
		return stmt, nil
	}
	if len(c.stmts) >= maxStatements {
		c.forget()
	}
	switch native := c.codec.Rebind(text); {
	case c.native != nil:
		stmt, err = prepareDirect(ctx, c.native, native)
	case c.remote != nil:
		stmt = remoteStatement{conn: c.remote, text: native, keep: c.keepsRemote(native)}
	default:
		var prepared *sql.Stmt
		prepared, err = c.conn.PrepareContext(ctx, native)
		stmt = pooled{prepared}
	}
	if err != nil {
		return nil, c.fail(err)
	}
	if keeps(text) {
		c.stmts[text] = stmt
		return stmt, nil
	}
	c.forgetUnkept()
	c.unkept = stmt
	return stmt, nil
}

// forgetUnkept closes the statement that is not kept.
func (c *Conn) forgetUnkept() {
	if c.unkept != nil {
		_ = c.unkept.Close()
		c.unkept = nil
	}
}

// kept are the first words of the statements that stay prepared, because a
// store runs them again and again.
var kept = []string{
	"SELECT", "WITH", "VALUES", "INSERT", "UPDATE", "DELETE", "BEGIN", "COMMIT", "ROLLBACK",
}

// keeps reports whether a statement stays prepared. All others, DDL among them,
// are prepared for each run, because a plan for making a table may be good for
// one run only: DuckDB 1.5.5 takes the columns out of it, and runs it again as
// CREATE TABLE without columns when the transaction of the first run was rolled
// back.
func keeps(text string) bool {
	word := strings.TrimLeft(text, " \t\r\n(")
	if i := strings.IndexAny(word, " \t\r\n(;"); i >= 0 {
		word = word[:i]
	}
	return slices.ContainsFunc(kept, func(k string) bool { return strings.EqualFold(k, word) })
}

// forget closes the prepared statements.
func (c *Conn) forget() {
	c.forgetUnkept()
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

// fail maps an error, and notes the first error of the transaction and whether
// the connection is broken.
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
	c.forget()
	if err := c.conn.Close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
		return c.mapError(err)
	}
	return nil
}

// abandon closes a connection for good instead of returning it to the pool.
func (c *Conn) abandon() {
	c.forget()
	_ = c.conn.Raw(func(any) error { return sqldriver.ErrBadConn })
	_ = c.conn.Close()
}

// dropBroken returns c, or nil after abandoning it when it is broken.
func dropBroken(c *Conn) *Conn {
	if c != nil && c.broken {
		c.abandon()
		return nil
	}
	return c
}
