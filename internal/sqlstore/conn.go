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

// maxStatements bounds the prepared statements of one connection. The texts in
// use come from a small set; a workload of ever new query shapes starts over.
const maxStatements = 512

// Conn is a pinned connection with its prepared statements. It is not safe for
// concurrent use.
type Conn struct {
	conn     *sql.Conn
	seat     int    // see Seat
	native   any    // the driver's connection, if statements run on it; nil otherwise
	remote   Remote // the same of a server, or nil
	stmts    map[string]statement
	once     statement // the last one that is not kept; closed when the next comes
	codec    Codec
	mapError func(error) error
	isBroken func(error) bool
	broken   bool
	failed   error    // the error of the first statement that failed in this transaction
	late     bool     // commits are made durable after they have returned
	settings []string // of each transaction; see Share
	args     []any    // scratch: arguments after the codec
}

// The seats of connections that are no reader's.
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
	c := &Conn{conn: conn, seat: seat, stmts: map[string]statement{}, codec: db.cfg.Codec, mapError: db.mapError, isBroken: db.cfg.IsBroken}
	if db.cfg.Direct {
		// It is used while conn is pinned, by one goroutine at a time.
		if err := conn.Raw(func(native any) error { c.native = native; return nil }); err != nil {
			c.abandon()
			return nil, db.mapError(err)
		}
	}
	if db.cfg.Remote != nil {
		if err := conn.Raw(func(native any) error { c.remote = db.cfg.Remote(native); return nil }); err != nil {
			c.abandon()
			return nil, db.mapError(err)
		}
	}
	if db.cfg.Setup != nil {
		if err := db.cfg.Setup(ctx, c, seat < 0 && !db.cfg.Options.ReadOnly); err != nil {
			c.abandon()
			return nil, err
		}
	}
	return c, nil
}

func (db *DB) mapError(err error) error {
	switch {
	case errors.Is(err, sql.ErrConnDone) && db.isClosed():
		return fmt.Errorf("%w: %w", driver.ErrClosed, err)
	case db.cfg.MapError != nil:
		return db.cfg.MapError(err)
	}
	return err
}

// Seat returns which of the readers it is for, Writer or Spare. A view gets the lowest seat that
// is free: those from 0 on and below Options.Concurrency are used most.
func (c *Conn) Seat() int { return c.seat }

// Raw gives access to the driver's own connection, as sql.Conn.Raw does.
func (c *Conn) Raw(f func(driverConn any) error) error { return c.conn.Raw(f) }

// Share is for a connection behind which each transaction may get another session, with
// which others go on afterwards: nothing is to be left behind in it. Statements are not
// kept prepared, what DB runs outside of transactions gets one of its own, and each BEGIN
// takes the settings along, in one message: statements whose effect must end with the
// transaction. The connection must be a Remote's.
func (c *Conn) Share(settings []string) { c.settings = settings }

// Shared tells whether Share was called.
func (c *Conn) Shared() bool { return c.settings != nil }

// InSession runs f where settings hold: outside a transaction, or on a shared connection
// in one of its own.
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

// begin runs a statement that begins a transaction and may wait for a lock. A driver
// may say that ctx has ended though the statement was done: after an error the
// connection is in no transaction, or of no use. On a Remote the next statement begins it.
func (c *Conn) begin(ctx context.Context, text string) error {
	c.failed = nil
	if c.remote != nil {
		c.later(text)
		for _, text := range c.settings {
			c.later(text)
		}
		return nil
	}
	err := c.start(ctx, text)
	if err != nil && !c.broken {
		// Its error is that there is none, which is right, or the next statement's.
		_, _ = c.conn.ExecContext(context.Background(), "ROLLBACK")
	}
	return err
}

// start runs the statement. Past database/sql a query costs no goroutine to watch
// ctx, where a driver's Exec may.
func (c *Conn) start(ctx context.Context, text string) error {
	if c.native == nil || ctx.Done() == nil {
		_, err := c.Exec(ctx, text)
		return err
	}
	rows, err := c.Query(ctx, text)
	if err != nil {
		return err
	}
	rows.Next()
	return errors.Join(rows.Err(), rows.Close())
}

// ExecOnce runs one statement without keeping it prepared, past the contract's
// translations: settings. DDL may come by Exec as well; see keeps.
func (c *Conn) ExecOnce(ctx context.Context, text string) (err error) {
	if c.remote != nil {
		_, err = c.remote.Exec(ctx, text, false, nil)
	} else {
		_, err = c.conn.ExecContext(ctx, text)
	}
	return c.Mapped(err)
}

// Query runs one statement.
func (c *Conn) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	stmt, err := c.prepare(ctx, text)
	if err != nil {
		return nil, err
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

func (c *Conn) prepare(ctx context.Context, text string) (statement, error) {
	if stmt, ok := c.stmts[text]; ok {
		return stmt, nil
	}
	if len(c.stmts) >= maxStatements {
		c.forget()
	}
	stmt, err := c.prepareOn(ctx, c.codec.Rebind(text))
	if err != nil {
		return nil, c.fail(err)
	}
	if keeps(text) {
		c.stmts[text] = stmt
		return stmt, nil
	}
	c.forgetOnce()
	c.once = stmt
	return stmt, nil
}

// forgetOnce closes the statement that is not kept.
func (c *Conn) forgetOnce() {
	if c.once != nil {
		_ = c.once.Close()
		c.once = nil
	}
}

// kept are the first words of the statements that stay prepared: those that a
// store runs again and again.
var kept = []string{
	"SELECT", "WITH", "VALUES", "INSERT", "UPDATE", "DELETE", "BEGIN", "COMMIT", "ROLLBACK",
}

// keeps reports whether a statement stays prepared. All others, DDL among them,
// are prepared for each run, because a plan for making a table may be good for
// one run only: DuckDB 1.5.5 takes the columns out of it, and runs it again as
// CREATE TABLE without columns when the transaction of the first run was rolled
// back.
func keeps(text string) bool {
	for {
		text = strings.TrimLeft(text, " \t\r\n(")
		comment, ok := strings.CutPrefix(text, "/*")
		if !ok {
			break
		}
		_, text, _ = strings.Cut(comment, "*/")
	}
	word := text
	if i := strings.IndexAny(text, " \t\r\n(;"); i >= 0 {
		word = text[:i]
	}
	return slices.ContainsFunc(kept, func(k string) bool { return strings.EqualFold(k, word) })
}

func (c *Conn) prepareOn(ctx context.Context, text string) (statement, error) {
	if c.native != nil {
		return prepareDirect(ctx, c.native, text)
	}
	if c.remote != nil {
		return remoteStatement{c.remote, text, c.keepsRemote(text)}, nil
	}
	stmt, err := c.conn.PrepareContext(ctx, text)
	return pooled{stmt}, err
}

// forget closes the prepared statements.
func (c *Conn) forget() {
	c.forgetOnce()
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

// fail maps an error and remembers it, and that a connection is broken.
func (c *Conn) fail(err error) error {
	if errors.Is(err, sqldriver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || c.isBroken != nil && c.isBroken(err) {
		c.broken = true
	}
	err = c.mapError(err)
	if c.failed == nil {
		c.failed = err
	}
	return err
}

// Failed returns the error of the first statement that failed in this transaction, or nil.
func (c *Conn) Failed() error { return c.failed }

// rollback ends the open transaction whatever the caller's context says.
func (c *Conn) rollback() error {
	if c.broken {
		return nil
	}
	var err error
	if c.remote != nil {
		err = c.Mapped(c.remote.Rollback())
	} else if c.native != nil {
		_, err = c.Exec(context.Background(), "ROLLBACK")
	} else if _, err = c.conn.ExecContext(context.Background(), "ROLLBACK"); err != nil {
		err = c.mapError(err)
	}
	c.broken = c.broken || err != nil // its state is unknown; do not use it again
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

// QueryOnce runs one statement without keeping it prepared.
func (c *Conn) QueryOnce(ctx context.Context, text string) (rows driver.Rows, err error) {
	if c.remote != nil {
		rows, err = c.remote.Query(ctx, text, false, nil)
	} else {
		rows, err = c.conn.QueryContext(ctx, text)
	}
	return rows, c.Mapped(err)
}

// Mapped joins an error of rows that QueryOnce gave with the contract's sentinels.
func (c *Conn) Mapped(err error) error {
	if err == nil {
		return nil
	}
	return c.fail(err)
}
