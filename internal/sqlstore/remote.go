package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/varvedb/varve/store/driver"
)

// Remote is a driver's connection to a server, used past database/sql: how often its
// answer is waited for is what counts there. Like a Conn it is for one goroutine at a
// time. A statement that is kept is prepared once for the connection.
type Remote interface {
	// Later leaves a statement without arguments to the next one, in front of which it
	// is sent, in one message.
	Later(text string)

	// Exec runs one statement, and without arguments and not kept also several, and
	// returns the number of rows it changed.
	Exec(ctx context.Context, text string, keep bool, args []any) (int64, error)

	// Query runs one statement.
	Query(ctx context.Context, text string, keep bool, args []any) (driver.Rows, error)

	// Rollback ends the transaction, under open rows if need be. It does not wait for
	// the answer: whether the connection was lost over it shows at the next call.
	Rollback() error
}

// remoteStatement is a statement of a Remote.
type remoteStatement struct {
	conn Remote
	text string
	keep bool
}

func (s remoteStatement) exec(ctx context.Context, args []any) (int64, error) {
	return s.conn.Exec(ctx, s.text, s.keep, args)
}

func (s remoteStatement) query(ctx context.Context, args []any) (resultSet, error) {
	return s.conn.Query(ctx, s.text, s.keep, args)
}

// Close implements statement. How many are kept is the Remote's affair.
func (s remoteStatement) Close() error { return nil }

// View opens a read view that is fixed by its first query, where that saves a Remote a
// message, and like Snapshot elsewhere.
func (db *DB) View(ctx context.Context) (driver.Reader, error) { return db.reader(ctx, false) }

// renew opens the view of a reader on another connection when its own was lost before
// anything was read, by a restart of the server say: nobody can tell.
func (r *Reader) renew(ctx context.Context) error {
	r.conn.abandon() // first: there may be no more connections than are open
	c, err := r.db.connect(ctx, r.conn.seat)
	if err != nil {
		return err
	}
	r.conn = c
	return r.db.beginRead(ctx, c)
}

// queryText returns the first value of the first row of a statement.
func queryText(rows driver.Rows) (string, error) {
	var value sql.NullString
	err := sql.ErrNoRows
	if rows.Next() {
		err = rows.Scan(&value)
	} else if rows.Err() != nil {
		err = rows.Err()
	}
	return value.String, errors.Join(err, rows.Close())
}
