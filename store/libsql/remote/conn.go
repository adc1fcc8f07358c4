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
	// lockPause is the pause between two attempts to get the server's write lock.
	lockPause = 20 * time.Millisecond

	// lockGrace is how much longer than its context a request runs that has, or
	// may get, the write lock. If its answer were not read, the stream's baton
	// would be lost, and the lock would stay with a stream that cannot be
	// closed.
	lockGrace = 500 * time.Millisecond

	// keepAlive is the interval at which a stream in a transaction sends an
	// empty request, because a server closes a stream after 10 s without one. A
	// snapshot may be held that long while another is read.
	keepAlive = 3 * time.Second

	// maxIdle is the time after which a stream without a transaction is not
	// used again, because the server may have closed it.
	maxIdle = 8 * time.Second

	// maxQueue bounds the statements, in bytes, that wait for the next request.
	maxQueue = 1 << 20

	// closeTimeout bounds the request that closes a stream. Without it the
	// server closes an idle stream by itself.
	closeTimeout = 2 * time.Second
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

// Connect implements sqldriver.Connector. No request is sent before the first
// statement.
func (c *connector) Connect(context.Context) (sqldriver.Conn, error) {
	return &conn{connector: c}, nil
}

// Driver implements sqldriver.Connector.
func (c *connector) Driver() sqldriver.Driver { return nil }

// conn implements sqlstore.Remote by a stream of the server. It knows the state
// of the stream's transaction:
//
//	       Later(beginWrite)         Flush
//	none ────────────────────► due ─────────► open, with the write lock
//	none ────────────────────► open, readOnly
//	       Later(beginRead)
//
// Exec(commit) and Rollback lead back to none.
type conn struct {
	*connector

	mu       sync.Mutex // guards the fields below, because the timer uses them too
	stream   stream
	lastUsed time.Time   // when the server last answered
	pinger   *time.Timer // keeps the stream of a transaction alive

	due        bool  // Flush begins a write transaction
	open       bool  // in a transaction
	readOnly   bool  // the transaction is a snapshot
	rolledBack bool  // by the server
	failure    error // why the transaction cannot go on, or nil

	queue  []step // statements that wait for the next request
	queued int    // their size in bytes
}

// Prepare implements sqldriver.Conn. It is not used for statements.
func (c *conn) Prepare(string) (sqldriver.Stmt, error) { return nil, driver.ErrUnsupported }

// Begin implements sqldriver.Conn. It is not used for transactions.
func (c *conn) Begin() (sqldriver.Tx, error) { return nil, driver.ErrUnsupported }

// Later implements sqlstore.Remote.
func (c *conn) Later(ctx context.Context, text string, _ bool, args []any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch text {
	case beginWrite:
		c.due = true
		return nil
	case beginRead:
		c.open, c.readOnly = true, true
		c.queue = append(c.queue, step{Stmt: statement{SQL: text}})
		return nil
	}
	s, size, err := c.newStep(ctx, text, args)
	if err != nil {
		return err
	}
	if c.queued+size > maxQueue {
		_, err = c.send(ctx, s)
		return err
	}
	c.queue, c.queued = append(c.queue, s), c.queued+size
	return nil
}

// Prefetch implements sqlstore.Remote. It does nothing: the query is sent when
// it is run.
func (c *conn) Prefetch(context.Context, string, bool, []any) error { return nil }

// Flush implements sqlstore.Remote. It begins a pending write transaction, and
// waits for the lock.
func (c *conn) Flush(ctx context.Context) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.due {
		c.due = false
		return c.begin(ctx)
	}
	if n := len(c.queue); n > 0 {
		last := c.queue[n-1]
		c.queue = c.queue[:n-1]
		_, err = c.send(ctx, last)
	}
	return err
}

// begin begins a write transaction. A server lets clients wait some seconds for
// its write lock, and then ends the transaction that has the lock. A client
// that stops waiting must close its stream, because the stream could still be
// given the lock. Closing needs the baton, so the request is a cursor, whose
// answer begins with the baton.
func (c *conn) begin(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, min(c.lockTimeout, c.timeout))
	defer cancel()
	c.dropIdle()
	reused := c.stream.baton != ""
	for {
		err := c.tryBegin(wait)
		switch {
		case err == nil:
			c.open = true
			c.used()
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
		case reused && isGone(err):
			c.stream, reused = stream{}, false
		default:
			return err
		}
	}
}

// tryBegin waits until ctx ends, and after that at most lockGrace for the
// baton.
func (c *conn) tryBegin(ctx context.Context) error {
	grace, cancel := withGrace(ctx)
	defer cancel()
	answer, err := c.cursor(grace, &c.stream, []step{{Stmt: statement{SQL: beginWrite}}})
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

// Exec implements sqlstore.Remote.
func (c *conn) Exec(ctx context.Context, text string, _ bool, args []any) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, _, err := c.newStep(ctx, text, args)
	if err != nil {
		return 0, err
	}
	res, err := c.send(ctx, s)
	if err != nil {
		return 0, err
	}
	if text == commit {
		c.leave()
	}
	return res.Affected, nil
}

// Query implements sqlstore.Remote. If the rows are too many for one answer,
// the statement runs again with an answer in parts.
func (c *conn) Query(ctx context.Context, asked driver.Statement, _ bool, args []any) (driver.Rows, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, _, err := c.newStep(ctx, asked.Text, args)
	if err != nil {
		return nil, err
	}
	s.Stmt.WantRows = true
	res, err := c.send(ctx, s)
	if errors.Is(err, errTooLarge) && guard.Reads(asked.Text) {
		parts, err := c.parts(ctx, s)
		if err != nil {
			return nil, err
		}
		return sqlstore.DriverRows(ctx, parts), nil
	}
	if err != nil {
		return nil, err
	}
	return sqlstore.DriverRows(ctx, &rows{columns: names(res.Cols), list: res.Rows}), nil
}

// newStep makes a step of a statement, and returns its size in bytes. It
// refuses a statement that the state of the transaction does not allow, and a
// value that is too large for the server.
func (c *conn) newStep(ctx context.Context, text string, args []any) (s step, size int, err error) {
	switch {
	case ctx.Err() != nil:
		return s, 0, ctx.Err()
	case c.failure != nil:
		return s, 0, c.failure
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

// send sends the queue and one more step in a request, and returns the result
// of the last step. It waits at most c.timeout.
func (c *conn) send(ctx context.Context, last step) (*result, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if !c.open {
		c.dropIdle()
	}

	// Take the queue.
	queued := len(c.queue)
	c.queue = append(c.queue, last)
	steps := c.queue
	c.queue, c.queued = nil, 0

	// Each step runs only if the one before it succeeded. The first one runs only
	// while the transaction is open, because the server may have ended it, and the
	// steps would then be committed one by one.
	begins := steps[0].Stmt.SQL == beginRead
	if c.open && !begins {
		chain(steps, inTransaction)
	} else {
		chain(steps, nil)
	}

	// Send the request. With the write lock, read the answer even after ctx has
	// ended; see lockGrace.
	request := ctx
	if c.open && !c.readOnly {
		grace, cancel := withGrace(ctx)
		defer cancel()
		request = grace
	}
	reused := c.stream.baton != ""
	results, err := c.batch(request, &c.stream, steps)

	// If the server has closed the stream, a snapshot can begin on another one,
	// because nothing was read yet.
	if begins && reused && isGone(err) && request.Err() == nil {
		c.stream = stream{}
		results, err = c.batch(request, &c.stream, steps)
	}
	c.used()
	if err == nil {
		return results[len(steps)-1], nil
	}
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}

	// Decide whether the transaction can continue. It can after errTooLarge,
	// which concerns only the rows of the last step; all steps have run.
	switch {
	case !c.open, errors.Is(err, errTooLarge):
	case errors.Is(err, errEnded):
		c.rolledBack = true
		if c.readOnly {
			err = fmt.Errorf("%w: %w", driver.ErrReaderExpired, err)
		}
		c.failure = err
	case queued > 0: // the steps after the one that failed have not run
		c.failure = fmt.Errorf("the transaction cannot go on: %w", err)
	}
	return nil, err
}

// Rollback implements sqlstore.Remote. It returns the error of a write transaction
// that the server has ended before.
func (c *conn) Rollback() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.leave()

	// If a snapshot's BEGIN is still in the queue, the server does not know the
	// snapshot.
	begun := c.open && !(c.readOnly && len(c.queue) > 0)
	lost := c.failure
	if begun && !c.rolledBack {
		c.queue, c.queued = nil, 0
		_, lost = c.send(context.Background(), step{Stmt: statement{SQL: rollback}})
	}
	if c.rolledBack || lost != nil {
		c.drop()
	}
	if c.readOnly {
		return nil // there is nothing to undo
	}
	return lost
}

// used records that the server has answered, and restarts the keep-alive timer
// of a transaction.
func (c *conn) used() {
	c.lastUsed = time.Now()
	switch {
	case !c.open:
	case c.pinger == nil:
		c.pinger = time.AfterFunc(keepAlive, c.ping)
	default:
		c.pinger.Reset(keepAlive)
	}
}

// ping sends an empty request, which keeps the stream of a transaction alive,
// even while rows are being read. After an error the next statement fails too.
func (c *conn) ping() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.open || c.rolledBack || c.stream.baton == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	if c.pipeline(ctx, &c.stream, nil, nil) == nil {
		c.used()
	}
}

// leave resets the transaction state, after a transaction has ended or was
// never begun.
func (c *conn) leave() {
	if c.pinger != nil {
		c.pinger.Stop()
	}
	c.due, c.open, c.readOnly, c.rolledBack, c.failure = false, false, false, false, nil
	c.queue, c.queued = nil, 0
}

// dropIdle gives up a stream that the server may have closed.
func (c *conn) dropIdle() {
	if time.Since(c.lastUsed) > maxIdle {
		c.stream = stream{}
	}
}

// drop closes the stream, and with it its transaction. If the request is lost,
// the server closes the stream some seconds later.
func (c *conn) drop() {
	if c.stream.baton != "" {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		_ = c.pipeline(ctx, &c.stream, map[string]any{"type": "close"}, nil)
	}
	c.stream = stream{}
}

// Close implements sqldriver.Conn.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave()
	c.drop()
	return nil
}

// withGrace returns a context that ends lockGrace after ctx.
func withGrace(ctx context.Context) (context.Context, context.CancelFunc) {
	grace, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lockGrace, cancel) })
	return grace, func() { stop(); cancel() }
}

// isGone reports whether a request may succeed on another stream, because the
// server has closed this one or was restarted.
func isGone(err error) bool { return guard.IsBroken(err) || errors.Is(err, errEnded) }
