package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
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

// Commit implements driver.Tx. It does not pass ctx on, so that a commit that
// was started also completes.
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
	lease *lease // under which its slot was taken

	mu     sync.Mutex
	conn   *Conn // nil once ended
	rows   *Rows // open result, or nil
	why    error // after the end: the error that calls return
	unread bool  // the first query has not yet fixed the view
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

// Close ends the read transaction and returns the connection.
func (r *Reader) Close() error { return r.end(driver.ErrClosed) }

// end ends the transaction, even while rows are open.
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

// MultiRow is the Bulk of engines that are fastest with prepared statements of
// many rows (SQLite, libSQL): INSERT … VALUES (…),(…) and UPDATE of the keys in
// a list of VALUES. Rows are divided into a few fixed sizes so that each table
// needs only a few prepared statements.
//
// The statements say OR FAIL. With the default, ABORT, SQLite writes a
// statement journal to a file, to undo a statement of several rows alone. Here
// an error always ends the transaction, and the journal would cost a fifth of a
// commit.
type MultiRow struct {
	// Run runs a statement; nil means Conn.Exec.
	Run func(c *Conn, ctx context.Context, text string, args ...any) error

	texts Texts
}

// rowSizes are the possible numbers of rows in a statement, largest first. Five
// columns × 1024 rows stay well below SQLite's 32,766 variables.
var rowSizes = []int{1024, 256, 64, 16, 4, 1}

// indexedSizes are the numbers of rows in an update statement when an index
// finds each row. Only the extremes are used: updating 5,000 rows of the
// 13-index layout took 60 ms one by one, 50 ms with 1,024 in a statement, and
// 70 to 140 ms with 16 to 256.
var indexedSizes = []int{1024, 1}

// maxValues bounds the values of one statement.
const maxValues = 8192

// Insert implements Bulk.
func (m *MultiRow) Insert(ctx context.Context, c *Conn, t *driver.Table, rows []any) error {
	return inChunks(rowSizes, len(t.Columns), rows, func(n int, chunk []any) error {
		text := m.texts.Get(t, n, func() string { return insertText(t, n) })
		return m.run(ctx, c, text, chunk)
	})
}

// Update implements Bulk.
func (m *MultiRow) Update(ctx context.Context, c *Conn, u *driver.Update, value any, keys []any) error {
	args := make([]any, 0, min(len(keys), maxValues)+1)
	sizes := rowSizes
	if u.Indexed {
		sizes = indexedSizes
	}
	return inChunks(sizes, len(u.Key), keys, func(n int, chunk []any) error {
		text := m.texts.Get(u, n, func() string { return updateText(u, n) })
		args = append(append(args[:0], value), chunk...)
		return m.run(ctx, c, text, args)
	})
}

func (m *MultiRow) run(ctx context.Context, c *Conn, text string, args []any) error {
	if m.Run != nil {
		return m.Run(c, ctx, text, args...)
	}
	_, err := c.Exec(ctx, text, args...)
	return err
}

// inChunks divides rows of width values into chunks of the largest fitting
// sizes.
func inChunks(sizes []int, width int, rows []any, f func(n int, chunk []any) error) error {
	for _, n := range sizes {
		if n > 1 && n*width > maxValues {
			continue
		}
		for len(rows) >= n*width {
			if err := f(n, rows[:n*width]); err != nil {
				return err
			}
			rows = rows[n*width:]
		}
	}
	return nil
}

// Texts keeps the texts of statements by a table or an update, and by a number,
// such as the number of rows.
type Texts struct {
	mu    sync.Mutex
	texts map[textKey]string
}

type textKey struct {
	of any
	n  int
}

// Get returns a text; build makes it.
func (t *Texts) Get(of any, n int, build func() string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text, ok := t.texts[textKey{of, n}]
	if !ok {
		if t.texts == nil {
			t.texts = map[textKey]string{}
		}
		text = build()
		t.texts[textKey{of, n}] = text
	}
	return text
}

func insertText(t *driver.Table, n int) string {
	return "INSERT OR FAIL INTO " + t.Name + " (" + ColumnList(t.Columns) + ") VALUES " + tuples(len(t.Columns), n)
}

// updateText returns the update of n keys. SQLite uses an index for a list of
// VALUES only when the list is joined; without an index IN makes one pass where
// a join would go row by row. The + keeps SQLite from indexing the list instead
// and reading the whole table: before 3.46, and so in libSQL, it estimates a
// list of n at 2^(n/10) rows.
func updateText(u *driver.Update, n int) string {
	text := "UPDATE OR FAIL " + u.Table + " SET " + u.Set.Name + " = ?"
	columns := make([]string, len(u.Key))
	for i := range columns {
		columns[i] = "column" + strconv.Itoa(i+1)
	}
	values := "(VALUES " + tuples(len(u.Key), n) + ")"
	switch {
	case n == 1:
		return text + " WHERE " + equalities(u.Key, nil)
	case u.Indexed:
		return text + " FROM " + values + " AS k WHERE " + equalities(u.Key, columns)
	}
	return text + " WHERE (" + ColumnList(u.Key) + ") IN (SELECT " + strings.Join(columns, ", ") + " FROM " + values + ")"
}

// equalities returns comparisons of columns with placeholders or with columns
// of k.
func equalities(key []driver.Column, with []string) string {
	terms := make([]string, len(key))
	for i, c := range key {
		terms[i] = c.Name + " = ?"
		if with != nil {
			terms[i] = c.Name + " = +k." + with[i]
		}
	}
	return strings.Join(terms, " AND ")
}

// ColumnList returns the names separated by commas.
func ColumnList(columns []driver.Column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return strings.Join(names, ", ")
}

// tuples returns n times "(?, …, ?)".
func tuples(width, n int) string {
	tuple := "(" + strings.Repeat("?, ", width-1) + "?)"
	return strings.Repeat(tuple+", ", n-1) + tuple
}
