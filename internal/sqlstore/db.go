// Package sqlstore is the common part of the engines that use database/sql: one
// pinned connection for the writer, a bounded pool of pinned connections for
// readers, prepared statements for each connection, and the translation of
// values and errors. An engine package provides a Config with its connection
// string, settings, bulk path and error map.
package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/varvedb/varve/store/driver"
)

// Config is an engine's configuration for New.
type Config struct {
	Info         driver.Info
	Capabilities driver.Capabilities
	Options      driver.Options

	// Pool makes the connections. DB closes it.
	Pool *sql.DB

	// Setup prepares a new connection: session settings and, for readers, whatever forbids writing.
	Setup func(ctx context.Context, c *Conn, write bool) error

	// Direct runs statements on the driver's connection, without database/sql.
	// The driver must allocate each value of a row, copy arguments before it
	// returns, and obey a context without starting a goroutine for each row.
	Direct bool

	// Remote, if given, returns a Remote for the driver's connection to a
	// server. Then a transaction begins with its first statement. LiftTimeouts
	// is the statement that keeps the server from ending a transaction by a
	// timeout; it may be empty.
	Remote       func(driverConn any) Remote
	LiftTimeouts string

	// BeginWrite starts a transaction that holds the write lock. BeginRead
	// starts one whose view is fixed once the query Pin (which may be empty)
	// has run.
	BeginWrite, BeginRead, Pin string

	// AfterBegin, if given, runs first inside a write transaction, to take a
	// lock against writers of other processes.
	AfterBegin func(ctx context.Context, c *Conn) error

	// IsBroken reports whether a native error means that the connection is
	// lost. The errors of database/sql are handled already. It may be nil.
	IsBroken func(error) bool

	// Codec translates values.
	Codec Codec

	// Bulk writes rows.
	Bulk Bulk

	// MapError adds one of package driver's errors to a native error. It is
	// never called with nil and may be nil.
	MapError func(error) error

	// BeforeWrite, if given, runs before each write transaction while the
	// writer's connection is held, to delay writers when a log has grown too
	// large.
	BeforeWrite func(ctx context.Context, c *Conn) error

	// Late, if given, switches the writer's connection between commits that are
	// durable when they return and commits that become durable later; see
	// BeginLate.
	Late func(ctx context.Context, c *Conn, late bool) error

	// BeforeCommit, if given, may refuse a commit, which is then rolled back.
	BeforeCommit func(ctx context.Context, c *Conn) error

	// ReadAhead, if given, implements driver.Reader's.
	ReadAhead func(ctx context.Context, c *Conn, table string, ids []any)

	// RandomAccess, if given, implements driver.Reader's. It is only called
	// when the connection's state changes.
	RandomAccess func(c *Conn, on bool)

	// AfterWrite, if given, runs after each commit, before the writer's
	// connection is returned.
	AfterWrite func(c *Conn)
}

// Bulk writes rows through one connection, inside its transaction. Statements
// may be cached by the address of the Table or Update.
type Bulk interface {
	Insert(ctx context.Context, c *Conn, t *driver.Table, rows []any) error
	Update(ctx context.Context, c *Conn, u *driver.Update, value any, keys []any) error
}

// DB is an open database: the part of driver.Engine that engines share.
type DB struct {
	cfg    Config
	writer chan *Conn // holds the writer's connection between transactions; nil means to connect again
	slots  *slots     // of readers

	spareMu sync.Mutex
	spare   *Conn

	connecting sync.Mutex    // held while a connection is made in this process
	closing    chan struct{} // closed when Close begins

	mu     sync.Mutex
	closed bool
	open   map[*Reader]struct{}
}

// New returns a DB over cfg.Pool after it has made one connection. On an error
// the pool is closed.
func New(ctx context.Context, cfg Config) (*DB, error) {
	cfg.Pool.SetMaxOpenConns(cfg.Options.Readers + 2) // readers, writer, and one for settings and statistics
	cfg.Pool.SetMaxIdleConns(1)
	db := &DB{
		cfg:     cfg,
		writer:  make(chan *Conn, 1),
		slots:   newSlots(cfg.Options.Readers, cmp.Or(cfg.Options.Concurrency, cfg.Options.Readers)),
		closing: make(chan struct{}),
		open:    map[*Reader]struct{}{},
	}
	first, err := db.connect(ctx, Writer)
	if err != nil {
		return nil, errors.Join(err, cfg.Pool.Close())
	}
	db.writer <- first
	return db, nil
}

// Info implements driver.Engine.
func (db *DB) Info() driver.Info { return db.cfg.Info }

// Capabilities implements driver.Engine.
func (db *DB) Capabilities() driver.Capabilities { return db.cfg.Capabilities }

// Begin implements driver.Engine.
func (db *DB) Begin(ctx context.Context) (driver.Tx, error) { return db.beginWrite(ctx, false, nil) }

// BeginExpecting implements driver.Prefetcher's BeginPrefetching, for engines
// with a Remote.
func (db *DB) BeginExpecting(ctx context.Context, expected []driver.Prefetch) (driver.Tx, error) {
	return db.beginWrite(ctx, false, expected)
}

// BeginLate is Begin, but the commit may become durable after it has returned.
func (db *DB) BeginLate(ctx context.Context) (driver.Tx, error) { return db.beginWrite(ctx, true, nil) }

func (db *DB) beginWrite(ctx context.Context, late bool, expected []driver.Prefetch) (driver.Tx, error) {
	if db.cfg.Options.ReadOnly {
		return nil, driver.ErrReadOnly
	}
	for {
		c, kept, err := db.takeWriter(ctx)
		if err != nil {
			return nil, err
		}
		if err = db.beginOn(ctx, c, late, expected); err == nil {
			return asTx(&Tx{db: db, Conn: c}), nil
		}
		lost := kept && c.broken // while it was idle: a new one may work
		db.giveWriter(c)
		if !lost {
			return nil, err
		}
	}
}

// beginOn begins a write transaction on the writer's connection.
func (db *DB) beginOn(ctx context.Context, c *Conn, late bool, expected []driver.Prefetch) error {
	if db.cfg.BeforeWrite != nil {
		if err := db.cfg.BeforeWrite(ctx, c); err != nil {
			return err
		}
	}
	err := db.setLate(ctx, c, late)
	if err == nil {
		err = c.begin(ctx, db.cfg.BeginWrite)
	}
	if err == nil && db.cfg.AfterBegin != nil {
		if err = c.prefetch(ctx, expected); err == nil {
			err = db.cfg.AfterBegin(ctx, c)
		}
		if err != nil {
			err = errors.Join(err, c.rollback())
		}
	}
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	return nil
}

// WithWriter runs f on the writer's connection, outside a transaction; see Conn.InSession.
func (db *DB) WithWriter(ctx context.Context, f func(c *Conn) error) error {
	c, _, err := db.takeWriter(ctx)
	if err != nil {
		return err
	}
	defer db.giveWriter(c)
	if err := db.setLate(ctx, c, false); err != nil {
		return err
	}
	return c.InSession(ctx, f)
}

// setLate switches the writer's connection if necessary.
func (db *DB) setLate(ctx context.Context, c *Conn, late bool) error {
	if db.cfg.Late == nil || c.late == late {
		return nil
	}
	if err := db.cfg.Late(ctx, c, late); err != nil {
		c.broken = true // its level is unknown
		return err
	}
	c.late = late
	return nil
}

// WithSpare runs f on a connection that is neither the writer's nor a reader's.
// The connection is kept for the next call.
func (db *DB) WithSpare(ctx context.Context, f func(c *Conn) error) error {
	db.spareMu.Lock()
	defer db.spareMu.Unlock()
	if db.isClosed() {
		return driver.ErrClosed
	}
	if db.spare != nil && db.spare.remote != nil {
		_ = db.spare.ExecOnce(ctx, "SELECT 1") // it may have been lost meanwhile, and f is not run twice
		db.spare = dropBroken(db.spare)
	}
	if db.spare == nil {
		c, err := db.connect(ctx, Spare)
		if err != nil {
			return err
		}
		db.spare = c
	}
	err := db.spare.InSession(ctx, f)
	db.spare = dropBroken(db.spare)
	return err
}

// takeWriter waits for the writer's connection, and reports whether the
// connection existed before.
func (db *DB) takeWriter(ctx context.Context) (c *Conn, kept bool, err error) {
	// A closed database takes precedence over a free connection, and that over
	// a context that ends meanwhile.
	if err = cmp.Or(db.CheckOpen(), ctx.Err()); err == nil {
		select {
		case c = <-db.writer:
			if err = db.CheckOpen(); err != nil {
				db.writer <- c
			}
		case <-db.closing:
			err = driver.ErrClosed
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("wait for the writer: %w", err)
	case c != nil:
		return c, true, nil
	}
	if c, err = db.connect(ctx, Writer); err != nil {
		db.writer <- nil
	}
	return c, false, err
}

func (db *DB) giveWriter(c *Conn) { db.writer <- dropBroken(c) }

// Snapshot implements driver.Engine.
func (db *DB) Snapshot(ctx context.Context) (driver.Reader, error) { return db.reader(ctx, true) }

// View implements driver.Engine. On a Remote the first query fixes the view.
func (db *DB) View(ctx context.Context) (driver.Reader, error) {
	return db.reader(ctx, db.cfg.Remote == nil)
}

func (db *DB) reader(ctx context.Context, pin bool) (driver.Reader, error) {
	list, err := db.readers(ctx, 1, pin)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// Snapshots implements driver.Engine.
func (db *DB) Snapshots(ctx context.Context, n int) ([]driver.Reader, error) {
	return db.readers(ctx, n, true)
}

// readers opens n readers together, or none.
func (db *DB) readers(ctx context.Context, n int, pin bool) ([]driver.Reader, error) {
	if err := db.CheckOpen(); err != nil {
		return nil, err
	}
	l, err := db.slots.take(ctx, n)
	if err != nil {
		return nil, fmt.Errorf("wait for %d of %d readers: %w", n, db.cfg.Options.Readers, err)
	}
	list := make([]driver.Reader, 0, n)
	for range n {
		r, err := db.openReader(ctx, l, pin)
		if err != nil {
			db.slots.give(l, n-len(list))
			return nil, errors.Join(err, driver.CloseReaders(list))
		}
		list = append(list, r)
	}
	return list, nil
}

// openReader starts a read transaction for an acquired slot. Without pin the
// first query fixes the view.
func (db *DB) openReader(ctx context.Context, l *lease, pin bool) (driver.Reader, error) {
	if err := db.CheckOpen(); err != nil {
		return nil, err
	}
	// Begin on the connection that the seat's last reader has left.
	seat, c := db.slots.seat()
	var err error
	kept := c != nil
	if kept {
		err = db.beginRead(ctx, c, pin)
	}
	// If there is none, or it was lost meanwhile, for example by a restart of
	// the server, begin on a new connection.
	if !kept || err != nil && c.broken && ctx.Err() == nil {
		dropBroken(c)
		if c, err = db.connect(ctx, seat); err == nil {
			err = db.beginRead(ctx, c, pin)
		}
	}
	if err != nil {
		db.slots.free(seat, c)
		if db.isClosed() {
			err = fmt.Errorf("%w: %w", driver.ErrClosed, err)
		}
		return nil, fmt.Errorf("begin read: %w", err)
	}
	// Register the reader, because Close ends all readers in db.open.
	r := &Reader{db: db, conn: c, lease: l, unread: !pin}
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		c.broken = true
		db.slots.free(seat, c)
		return nil, driver.ErrClosed
	}
	db.open[r] = struct{}{}
	return asReader(r), nil
}

// beginRead begins a read transaction and, with pin, fixes its view. After an
// error the connection is in no transaction, so it can be used again.
func (db *DB) beginRead(ctx context.Context, c *Conn, pin bool) error {
	if c.native != nil {
		// Watching the context would take longer than beginning.
		ctx = context.WithoutCancel(ctx)
	}
	if err := c.begin(ctx, db.cfg.BeginRead); err != nil {
		return err
	}
	if !pin || db.cfg.Pin == "" {
		return nil
	}
	rows, err := c.Query(ctx, db.cfg.Pin)
	if err == nil {
		rows.Next()
		err = errors.Join(rows.Err(), rows.Close())
	}
	if err != nil {
		return errors.Join(err, c.rollback())
	}
	return nil
}

// ExpireReaders ends the snapshots opened before a time.
func (db *DB) ExpireReaders(before time.Time) {
	db.mu.Lock()
	var old []*Reader
	for r := range db.open {
		if r.lease.since.Before(before) {
			old = append(old, r)
		}
	}
	db.mu.Unlock()
	for _, r := range old {
		_ = r.end(driver.ErrReaderExpired)
	}
}

// Close ends open snapshots, waits for the write transaction and closes every
// connection.
func (db *DB) Close() error {
	db.mu.Lock()
	if db.closed {
		db.mu.Unlock()
		return nil
	}
	db.closed = true
	close(db.closing)
	readers := slices.Collect(maps.Keys(db.open))
	db.mu.Unlock()
	var errs []error
	for _, r := range readers {
		errs = append(errs, r.end(driver.ErrClosed))
	}
	// A caller that is waiting for a slot, or opening a reader, notices that
	// the database is closed and returns its slots.
	_ = db.slots.open.Acquire(context.Background(), int64(db.slots.total))
	for _, at := range db.slots.seats {
		errs = append(errs, at.conn.close())
	}
	db.spareMu.Lock()
	defer db.spareMu.Unlock()
	errs = append(errs, db.spare.close(), (<-db.writer).close(), db.cfg.Pool.Close())
	db.writer <- nil
	return errors.Join(errs...)
}

// CheckOpen returns driver.ErrClosed once Close has begun, for methods of an
// engine that need no connection.
func (db *DB) CheckOpen() error {
	if db.isClosed() {
		return driver.ErrClosed
	}
	return nil
}

func (db *DB) isClosed() bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.closed
}

// slots bounds how many readers are open and how many of them are working.
//
// A caller acquires a slot for each reader, and one lease for all readers that
// it opens together. Both semaphores are first come, first served, because
// otherwise a busy process could starve some of its callers.
type slots struct {
	total  int                 // number of readers
	leases int                 // maximum number of leases at a time
	open   *semaphore.Weighted // a unit for each reader
	atWork *semaphore.Weighted // a unit for each lease; nil: all readers may be at work

	mu    sync.Mutex
	seats []seat
}

// seat is the place of a reader's connection. The lowest free seat is used
// first, so that few connections serve most views and their caches stay warm.
type seat struct {
	taken bool
	conn  *Conn // kept between readers; nil when there is none yet
}

// lease lets readers that were opened together work, until all of them are
// closed or until leaseTime has passed.
//
// With more working readers than processors no more work gets done, because Go
// lets a goroutine run for 10 ms before the others get their turn. A small read
// that is interrupted then waits for every other reader. If readers wait for a
// lease instead, each waits only for those before it.
type lease struct {
	readers  int // not closed yet; guarded by slots.mu
	since    time.Time
	deadline *time.Timer // nil if working readers are not limited
	release  func()      // releases the lease; only the first call counts
}

// leaseTime ends a lease whose readers are still open, because a caller may
// keep a reader for any time and open another one meanwhile. The reader
// continues without a lease. The time is longer than most reads take, but short
// enough for the waiting callers.
const leaseTime = 20 * time.Millisecond

// severalWait is how long a caller that wants several readers keeps its place
// in the queue before it goes to the end. Without this wait, callers that want
// one reader would take every slot that becomes free. Without the limit, a
// caller that holds a reader and asks for another could queue behind a caller
// that waits for the held one: a deadlock.
const severalWait = 100 * time.Millisecond

// newSlots returns slots for a number of readers, of which atWork may work at a
// time.
func newSlots(readers, atWork int) *slots {
	s := &slots{
		total: readers, leases: atWork,
		open: semaphore.NewWeighted(int64(readers)), seats: make([]seat, readers),
	}
	if atWork < readers {
		s.atWork = semaphore.NewWeighted(int64(atWork))
	}
	return s
}

// take waits for n slots, and then for a lease.
func (s *slots) take(ctx context.Context, n int) (*lease, error) {
	if n > s.total {
		return nil, fmt.Errorf("%d readers are needed at once, the database is open with %d; "+
			"open it with readers=%d or more: %w", n, s.total, n, driver.ErrUnsupported)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for n > 1 {
		// Take all n at once, because two callers that each hold a part would
		// deadlock.
		wait, cancel := context.WithTimeout(ctx, severalWait)
		err := s.open.Acquire(wait, int64(n))
		cancel()
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if n == 1 {
		if err := s.open.Acquire(ctx, 1); err != nil {
			return nil, err
		}
	}
	l := &lease{readers: n}
	if s.atWork != nil {
		if err := s.atWork.Acquire(ctx, 1); err != nil {
			s.open.Release(int64(n))
			return nil, err
		}
		l.release = sync.OnceFunc(func() { s.atWork.Release(1) })
		l.deadline = time.AfterFunc(leaseTime, l.release)
	}
	l.since = time.Now()
	return l, nil
}

// seat takes the lowest free seat for an acquired slot. Its connection is nil
// when there is none yet.
func (s *slots) seat() (n int, c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = slices.IndexFunc(s.seats, func(at seat) bool { return !at.taken })
	s.seats[n].taken = true
	return n, s.seats[n].conn
}

// free returns a seat, with its connection unless that is nil or broken.
func (s *slots) free(n int, c *Conn) {
	c = dropBroken(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seats[n] = seat{conn: c}
}

// give returns n slots of a lease, and the lease with the last of them.
func (s *slots) give(l *lease, n int) {
	s.mu.Lock()
	l.readers -= n
	last := l.readers == 0
	s.mu.Unlock()
	if last && l.deadline != nil {
		l.deadline.Stop()
		l.release()
	}
	s.open.Release(int64(n))
}
