package remote

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/libsql/internal/guard"
)

const (
	// lockPause is the pause between two attempts to get a server's write lock.
	lockPause = 20 * time.Millisecond

	// keepAlive is how long a stream in a transaction rests before the server hears of
	// it. A server ends one of which it has not heard for 10 s, such as a snapshot that
	// is held while another is read.
	keepAlive = 3 * time.Second

	// maxIdle is the rest after which a stream without a transaction is not used again.
	maxIdle = 8 * time.Second

	// maxQueue bounds the writes that wait for the next request, in bytes.
	maxQueue = 1 << 20

	// closeTimeout bounds the wait for a stream's end, which the server would also
	// find by itself.
	closeTimeout = 2 * time.Second

	// patience is how much longer than its context a request is waited for that has, or
	// gets, the write lock. An answer that nobody reads leaves the lock with a stream
	// that nobody can end.
	patience = 500 * time.Millisecond
)

// connector makes connections.
type connector struct {
	client      *http.Client
	target      string // URL without a trailing slash
	server      string // scheme and host, for errors
	token       string
	namespace   string
	maxRow      int
	timeout     time.Duration
	lockTimeout time.Duration
}

// Connect implements sqldriver.Connector. The server hears of a connection with its
// first statement.
func (c *connector) Connect(context.Context) (sqldriver.Conn, error) {
	return &conn{connector: c}, nil
}

// Driver implements sqldriver.Connector.
func (c *connector) Driver() sqldriver.Driver { return nil }

// conn implements sqlstore.Remote: it is a stream of the server, and what is known of its
// transaction.
type conn struct {
	*connector

	mu     sync.Mutex // of all below, for the timer
	stream stream
	used   time.Time
	alive  *time.Timer // of a transaction

	begins   bool  // with the next call, Flush
	open     bool  // in a transaction
	readOnly bool  // which is a snapshot
	over     bool  // which the server has ended
	why      error // why the transaction cannot go on, or nil

	queue  []step // statements that wait for the next request
	queued int    // their size in bytes
}

// Prepare implements sqldriver.Conn. Nothing comes this way.
func (c *conn) Prepare(string) (sqldriver.Stmt, error) { return nil, driver.ErrUnsupported }

// Begin implements sqldriver.Conn.
func (c *conn) Begin() (sqldriver.Tx, error) { return nil, driver.ErrUnsupported }

// Close implements sqldriver.Conn.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
	c.drop()
	return nil
}

// drop ends the stream, and with it its transaction. Should the server not hear of it,
// it ends the stream by itself some seconds later.
func (c *conn) drop() {
	if c.stream.baton != "" {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		_ = c.pipeline(ctx, &c.stream, map[string]any{"type": "close"}, nil)
	}
	c.stream = stream{}
}

// forget leaves the transaction, which has ended or never came to be.
func (c *conn) forget() {
	if c.alive != nil {
		c.alive.Stop()
	}
	c.begins, c.open, c.readOnly, c.over, c.why = false, false, false, false, nil
	c.queue, c.queued = nil, 0
}

// touch notes that the server has heard of the stream.
func (c *conn) touch() {
	c.used = time.Now()
	switch {
	case !c.open:
	case c.alive == nil:
		c.alive = time.AfterFunc(keepAlive, c.ping)
	default:
		c.alive.Reset(keepAlive)
	}
}

// ping keeps the stream of a transaction alive, also while rows of it are read. Its
// error is found by the next statement.
func (c *conn) ping() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.open || c.over || c.stream.baton == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	if c.pipeline(ctx, &c.stream, nil, nil) == nil {
		c.touch()
	}
}

// newStep makes a step of a statement that can run in the state of the transaction. A value
// that is too large is refused before it is sent.
func (c *conn) newStep(ctx context.Context, text string, args []any) (s step, size int, err error) {
	switch {
	case ctx.Err() != nil:
		return s, 0, ctx.Err()
	case c.why != nil:
		return s, 0, c.why
	case c.readOnly && !guard.Reads(text):
		return s, 0, fmt.Errorf("%.60q: %w: it would write in a snapshot", text, driver.ErrReadOnly)
	}
	s.Stmt = statement{SQL: text, Args: make([]value, len(args))}
	for i, arg := range args {
		v, n, err := newValue(arg)
		switch {
		case err != nil:
			return s, 0, err
		case n > c.maxRow:
			return s, 0, tooBig(n, c.maxRow)
		}
		s.Stmt.Args[i] = v
		size += n
	}
	return s, size + len(text), nil
}

// send runs what waits and then one more step, in one request, and returns the result
// of the latter. In a transaction nothing runs after the server has ended it.
func (c *conn) send(ctx context.Context, last step) (*result, error) {
	if !c.open && time.Since(c.used) > maxIdle {
		c.stream = stream{}
	}
	waiting := len(c.queue)
	c.queue = append(c.queue, last)
	steps := c.queue
	c.queue, c.queued = nil, 0
	first, begins := inTransaction, steps[0].Stmt.SQL == beginRead
	if begins || !c.open {
		first = nil
	}
	chain(steps, first)
	known := c.stream.baton != ""
	given := ctx
	if c.open && !c.readOnly {
		late, cancel := patient(ctx)
		defer cancel()
		ctx = late
	}
	results, err := c.batch(ctx, &c.stream, steps)
	if begins && known && isGone(err) && ctx.Err() == nil {
		c.stream = stream{}
		results, err = c.batch(ctx, &c.stream, steps)
	}
	c.touch()
	if err != nil && given.Err() != nil && !errors.Is(err, given.Err()) {
		err = fmt.Errorf("%w: %w", given.Err(), err)
	}
	switch {
	case err == nil:
		return results[len(steps)-1], nil
	case !c.open, errors.Is(err, errTooLarge): // which is of the last step's rows; the others are done
		return nil, err
	case errors.Is(err, errEnded):
		c.over = true
		if c.readOnly {
			err = fmt.Errorf("%w: %w", driver.ErrReaderExpired, err)
		}
		c.why = err
	case waiting > 0: // and those after the one that failed have not run
		c.why = fmt.Errorf("the transaction cannot go on: %w", err)
	}
	return nil, err
}

// run sends what waits and one more statement, and waits no longer than c.timeout.
func (c *conn) run(ctx context.Context, s step) (*result, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.send(ctx, s)
}

// Later implements sqlstore.Remote.
func (c *conn) Later(ctx context.Context, text string, _ bool, args []any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch text {
	case beginWrite:
		c.begins = true
		return nil
	case beginRead:
		c.open, c.readOnly = true, true
		c.queue = append(c.queue, step{Stmt: statement{SQL: text}})
		return nil
	}
	s, size, err := c.newStep(ctx, text, args)
	if err == nil && c.queued+size <= maxQueue {
		c.queue, c.queued = append(c.queue, s), c.queued+size
	} else if err == nil {
		_, err = c.run(ctx, s)
	}
	return err
}

// Flush implements sqlstore.Remote.
func (c *conn) Flush(ctx context.Context) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begins {
		c.begins = false
		return c.begin(ctx)
	}
	if n := len(c.queue); n > 0 {
		last := c.queue[n-1]
		c.queue = c.queue[:n-1]
		_, err = c.run(ctx, last)
	}
	return err
}

// Exec implements sqlstore.Remote.
func (c *conn) Exec(ctx context.Context, text string, _ bool, args []any) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, _, err := c.newStep(ctx, text, args)
	if err != nil {
		return 0, err
	}
	res, err := c.run(ctx, s)
	if err != nil {
		return 0, err
	}
	if text == commit {
		c.forget()
	}
	return res.Affected, nil
}

// Query implements sqlstore.Remote. When the rows are more than the server puts into one
// answer it is asked again, for an answer in parts.
func (c *conn) Query(ctx context.Context, asked driver.Statement, _ bool, args []any) (driver.Rows, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, _, err := c.newStep(ctx, asked.Text, args)
	if err != nil {
		return nil, err
	}
	s.Stmt.WantRows = true
	res, err := c.run(ctx, s)
	var list *rows
	switch {
	case errors.Is(err, errTooLarge) && guard.Reads(asked.Text):
		if list, err = c.parts(ctx, s); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	default:
		list = &rows{columns: names(res.Cols), list: res.Rows}
	}
	return sqlstore.DriverRows(ctx, list), nil
}

// Rollback implements sqlstore.Remote.
func (c *conn) Rollback() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rollback(context.Background())
}

// rollback ends the transaction, and reports one that the server has ended before.
func (c *conn) rollback(ctx context.Context) error {
	over, snapshot, why := c.over, c.readOnly, c.why
	begun := c.open && !(snapshot && len(c.queue) > 0) // as far as the server has heard
	defer c.forget()
	if begun && !over {
		c.queue, c.queued = nil, 0
		_, why = c.run(ctx, step{Stmt: statement{SQL: rollback}})
	}
	if over || why != nil {
		c.drop()
	}
	if snapshot {
		return nil // there is nothing to undo
	}
	return why
}

// begin starts the write transaction. A server has those who want its lock wait for some
// seconds, and then ends the transaction of the one who has it. Who waits no longer has
// to end the stream, to which the lock would be given: hence by a cursor, which tells
// the baton first.
func (c *conn) begin(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, min(c.lockTimeout, c.timeout))
	defer cancel()
	if time.Since(c.used) > maxIdle {
		c.stream = stream{}
	}
	known := c.stream.baton != ""
	for {
		err := c.tryBegin(wait)
		switch {
		case err == nil:
			c.open = true
			c.touch()
			return nil
		case wait.Err() != nil:
			c.drop()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("%w: the server did not give the write lock within %v: %w", driver.ErrLocked, c.lockTimeout, err)
		case errors.Is(err, driver.ErrLocked):
			select {
			case <-time.After(lockPause):
			case <-wait.Done():
			}
		case known && isGone(err):
			c.stream, known = stream{}, false
		default:
			return err
		}
	}
}

func (c *conn) tryBegin(ctx context.Context) error {
	late, cancel := patient(ctx)
	defer cancel()
	answer, err := c.cursor(late, &c.stream, []step{{Stmt: statement{SQL: beginWrite}}})
	if err != nil {
		return err
	}
	defer answer.body.Close()
	defer context.AfterFunc(ctx, cancel)()
	for err == nil {
		_, err = answer.next()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// patient returns a context that ends a while after ctx.
func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(patience, cancel) })
	return late, func() { stop(); cancel() }
}

// isGone tells whether another stream may be of use where one gave an error: the server
// has ended it, or has been started anew.
func isGone(err error) bool { return guard.IsBroken(err) || errors.Is(err, errEnded) }
