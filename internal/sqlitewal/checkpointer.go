package sqlitewal

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/internal/dbfile"
	"github.com/varvedb/varve/internal/filelease"
	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// The log sizes, in multiples of Options.WALFrames, at which the checkpointer
// does more than copy pages while the writer continues.
const (
	// restartAt: while a writer is busy, a PASSIVE checkpoint never reaches the
	// end of the log, so the log would grow without limit. From this size on
	// PASSIVE checkpoints run one after the other. As soon as almost all pages
	// are copied, the writer itself restarts the log between two blocks, which
	// is then a short pause.
	restartAt = 4
	// restartAnyway: the writer restarts the log however much is left to copy.
	restartAnyway = 6
	// capAt: the hard limit. Writers wait until the log could be restarted, and
	// snapshots older than Options.MaxReaderAge are ended.
	capAt = 16
)

// writerShare is the fraction of Options.WALFrames that the writer can copy without
// a noticeable pause.
const writerShare = 32

// retryBusy is the pause between attempts to restart a log at its limit.
const retryBusy = 10 * time.Millisecond

// Checkpointer checkpoints the log as the policy says. It also provides what
// both libraries report in the same way: settings, statistics, and whether the
// files still exist.
type Checkpointer struct {
	filelease.Numbers // in a file next to the database; they make it a driver.Keeper

	cfg      Config
	db       *sqlstore.DB
	path     string
	files    dbfile.Watch
	index    *sharedFile // the WAL index; nil on a read-only file system
	reserve  reserve
	onWriter bool // run PASSIVE on the writer's connection too
	wake     chan struct{}
	stop     context.CancelFunc
	done     sync.WaitGroup

	count, nanos, stall atomic.Int64
	nextRestart         int64 // log size for the next attempt; for the writer only
}

// NewCheckpointer prepares a checkpointer of the database at path. Its hooks
// must be set in the sqlstore.Config before Start is called with the database.
func NewCheckpointer(cfg Config, path string, onWriter bool) *Checkpointer {
	return &Checkpointer{cfg: cfg, path: path, onWriter: onWriter, wake: make(chan struct{}, 1), stop: func() {}}
}

// Setup is Config.Setup. It also records the open files.
func (k *Checkpointer) Setup(ctx context.Context, c *sqlstore.Conn, write bool) error {
	if err := k.cfg.Setup(ctx, c, write); err != nil {
		return err
	}
	if c.Seat() != sqlstore.Writer {
		return nil
	}
	// The log and its index exist once a connection has read in WAL mode. They
	// may be new files when the writer reconnects, because SQLite removes them
	// with the last connection.
	if _, err := c.QueryText(ctx, "SELECT count(*) FROM sqlite_master"); err != nil {
		return err
	}
	if k.cfg.Options.ReadOnly {
		return nil
	}
	return errors.Join(k.files.Add(k.path+"-wal"), k.files.Add(k.path+"-shm"))
}

// Start begins the work for the database.
func (k *Checkpointer) Start(db *sqlstore.DB) error {
	k.db = db
	if err := k.files.Add(k.path); err != nil {
		return err
	}
	k.Path, k.Mode = k.path+"-durable", dbfile.Mode(k.path)
	var err error
	k.index, err = openShared(k.path + "-shm")
	switch {
	case k.cfg.Options.ReadOnly:
		return nil // a reader only needs the index to listen, if it exists
	case err != nil:
		return fmt.Errorf("open the WAL-index: %w", err)
	}
	if err := k.measure(); err != nil {
		return err
	}
	k.reserve.path, k.reserve.frame = k.path+"-wal", int64(k.cfg.PageSize+frameHeader)
	k.reserve.limit = restartAnyway * int64(k.cfg.Options.WALFrames)
	if k.cfg.Options.Checkpoint != driver.Background {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	k.stop = stop
	k.done.Go(func() { k.run(ctx) })
	return nil
}

// measure reads the page size, from which the log sizes in pages are computed.
func (k *Checkpointer) measure() error {
	return k.db.WithWriter(context.Background(), func(c *sqlstore.Conn) error {
		text, err := c.QueryText(context.Background(), "PRAGMA page_size")
		if err == nil {
			k.cfg.PageSize, err = strconv.Atoi(text)
		}
		if err != nil {
			return fmt.Errorf("read the size of the pages: %w", err)
		}
		k.cfg.Options.WALFrames = cmp.Or(k.cfg.Options.WALFrames, max(backgroundLog/k.cfg.PageSize, 1))
		return nil
	})
}

// Stop ends the goroutine. Then the database may be closed; after that Release
// must be called.
func (k *Checkpointer) Stop() {
	k.stop()
	k.done.Wait()
}

// Release closes the WAL index and the kept numbers, after the database was
// closed; see sharedFile.
func (k *Checkpointer) Release() error {
	return errors.Join(k.Numbers.Close(), k.index.close())
}

func (k *Checkpointer) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
			logged, pending := k.index.frames()
			k.reserve.extend(ctx, logged)
			if !k.due(logged, pending) {
				continue
			}
			// Ignore the error: the checkpoint is tried again after the next
			// commit, and if the log keeps growing to its limit, the writer
			// gets the error.
			_, _ = k.passive(ctx)
		}
	}
}

// due reports whether enough pages wait to be copied while the writer
// continues. On the writer's connection a checkpoint always blocks the writer,
// so fewer pages are copied at a time.
func (k *Checkpointer) due(logged, pending int64) bool {
	unit := int64(k.cfg.Options.WALFrames)
	return pending >= unit || !k.onWriter && logged >= restartAt*unit && pending > unit/writerShare
}

// AfterWrite wakes the checkpointer when the log has grown enough, or its file
// is almost full.
func (k *Checkpointer) AfterWrite(*sqlstore.Conn) {
	if k.cfg.Options.Checkpoint != driver.Background {
		return
	}
	logged, pending := k.index.frames()
	if !k.due(logged, pending) && !k.reserve.runsShort(logged) {
		return
	}
	select {
	case k.wake <- struct{}{}:
	default: // it has been woken already
	}
}

// BeforeWrite restarts a log that has grown too large.
func (k *Checkpointer) BeforeWrite(ctx context.Context, c *sqlstore.Conn) error {
	if k.index == nil || k.cfg.Options.Checkpoint != driver.Background { // measure is still running, or there is no checkpointer
		return nil
	}

	// Leave a log alone that is small, for which an attempt has just failed, or
	// of which the rest is too much for a short pause.
	logged, pending := k.index.frames()
	unit := int64(k.cfg.Options.WALFrames)
	switch {
	case logged < restartAt*unit:
		k.nextRestart = 0
		return nil
	case logged < k.nextRestart:
		return nil
	case !k.onWriter && pending > unit/writerShare && logged < restartAnyway*unit:
		return nil
	}

	// Restart it. If readers prevent that, try again when the log has grown by
	// a unit; at the limit, wait.
	start := time.Now()
	defer func() { k.stall.Add(int64(time.Since(start))) }()
	done, err := k.restart(ctx, c)
	if done || err != nil {
		k.nextRestart = 0
		return err
	}
	if logged < capAt*unit {
		k.nextRestart = min(logged+unit, capAt*unit)
		return nil
	}
	return k.waitForRestart(ctx, c, start)
}

// waitForRestart blocks the writer until a log at its limit can be restarted.
func (k *Checkpointer) waitForRestart(ctx context.Context, c *sqlstore.Conn, start time.Time) error {
	age := k.cfg.Options.MaxReaderAge
	for {
		k.db.ExpireReaders(time.Now().Add(-age))
		done, err := k.restart(ctx, c)
		if done || err != nil {
			return err
		}
		if time.Since(start) > max(2*age, k.cfg.Options.LockTimeout) {
			return fmt.Errorf("%w: the write-ahead log is at its cap of %d frames and a reader of another process keeps it from being restarted; close that reader",
				driver.ErrLocked, capAt*k.cfg.Options.WALFrames)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for readers of a full write-ahead log: %w", ctx.Err())
		case <-time.After(retryBusy):
		}
	}
}

// restart copies the rest of the log, so that the next commit writes at its
// beginning. It returns false when readers prevent that.
func (k *Checkpointer) restart(ctx context.Context, c *sqlstore.Conn) (bool, error) {
	res, err := k.checkpointNow(ctx, c, "RESTART")
	return !res.Busy, err
}

// checkpointNow runs a checkpoint that does not wait for readers. It is short, and
// ignores ctx, because otherwise the connection would keep the wrong timeout.
func (k *Checkpointer) checkpointNow(ctx context.Context, c *sqlstore.Conn, mode string) (driver.CheckpointResult, error) {
	ctx = context.WithoutCancel(ctx)
	if err := setPragma(ctx, c, "PRAGMA busy_timeout = 0"); err != nil {
		return driver.CheckpointResult{}, err
	}
	res, err := k.checkpoint(ctx, c, mode)
	restore := fmt.Sprintf("PRAGMA busy_timeout = %d", k.cfg.Options.LockTimeout.Milliseconds())
	return res, errors.Join(err, setPragma(ctx, c, restore))
}

func (k *Checkpointer) passive(ctx context.Context) (res driver.CheckpointResult, err error) {
	run := func(c *sqlstore.Conn) error {
		res, err = k.checkpoint(ctx, c, "PASSIVE")
		return err
	}
	if k.onWriter {
		return res, k.db.WithWriter(ctx, run)
	}
	return res, k.db.WithSpare(ctx, run)
}

// Checkpoint implements driver.Checkpointer.
func (k *Checkpointer) Checkpoint(ctx context.Context, truncate bool) (res driver.CheckpointResult, err error) {
	if k.cfg.Options.ReadOnly {
		return res, driver.ErrReadOnly
	}
	if !truncate {
		return k.passive(ctx)
	}
	defer k.reserve.forget()
	return res, k.db.WithWriter(ctx, func(c *sqlstore.Conn) error {
		res, err = k.truncate(ctx, c)
		return err
	})
}

// truncate empties the log. It polls, because SQLite's own wait for readers
// would not end with ctx.
func (k *Checkpointer) truncate(ctx context.Context, c *sqlstore.Conn) (driver.CheckpointResult, error) {
	for {
		res, err := k.checkpointNow(ctx, c, "TRUNCATE")
		if err != nil || !res.Busy {
			return res, err
		}
		select {
		case <-ctx.Done():
			return res, fmt.Errorf("wait for readers: %w", ctx.Err())
		case <-time.After(retryBusy):
		}
	}
}

func (k *Checkpointer) checkpoint(ctx context.Context, c *sqlstore.Conn, mode string) (res driver.CheckpointResult, err error) {
	start := time.Now()
	rows, err := c.QueryOnce(context.WithoutCancel(ctx), "PRAGMA wal_checkpoint("+mode+")")
	if err != nil {
		return res, fmt.Errorf("checkpoint: %w", err)
	}
	var busy sql.NullInt64
	if rows.Next() {
		err = rows.Scan(&busy, &res.LogFrames, &res.DoneFrames)
	}
	if err = c.Mapped(errors.Join(err, rows.Err(), rows.Close())); err != nil {
		return res, fmt.Errorf("checkpoint: %w", err)
	}
	res.Busy = busy.Int64 != 0
	res.Took = time.Since(start)
	if res.DoneFrames > 0 {
		k.count.Add(1)
		k.nanos.Add(int64(res.Took))
	}
	return res, nil
}

// Settings implements driver.Engine: the pragmas, read back from the writer's
// connection.
func (k *Checkpointer) Settings(ctx context.Context) ([]driver.Setting, error) {
	return k.cfg.settings(ctx, k.db)
}

// Stats implements driver.Engine.
func (k *Checkpointer) Stats(context.Context) (driver.Stats, error) {
	var s driver.Stats
	if err := k.db.CheckOpen(); err != nil {
		return s, err
	}
	st, err := os.Stat(k.path)
	if err != nil {
		return s, err
	}
	size := st.Size()
	s.DatabaseBytes = &size
	if k.cfg.Options.ReadOnly {
		return s, nil
	}
	logged, pending := k.index.frames()
	if pending == 0 {
		logged = 0 // everything is copied, so the next commit overwrites the log
	}
	wal := logged * int64(k.cfg.PageSize+frameHeader)
	count, took, stall := k.count.Load(), time.Duration(k.nanos.Load()), time.Duration(k.stall.Load())
	s.WALBytes = &wal
	if k.cfg.Options.Checkpoint != driver.Inline { // SQLite does not report its own checkpoints
		s.Checkpoints, s.CheckpointTime, s.CheckpointStall = &count, &took, &stall
	}
	return s, nil
}

// frameHeader is the bytes before each page in the log.
const frameHeader = 24

// lookEvery is the interval for reading the WAL index, which takes a
// microsecond.
const lookEvery = 5 * time.Millisecond

// indexHeader is the size of the part of the WAL index that each commit
// changes.
const indexHeader = 48

// Listen implements driver.Listener. SQLite has no notifications, but each
// commit changes the header of the WAL index, which can be read without a
// statement. Commits of this process are reported too.
func (k *Checkpointer) Listen(context.Context) (driver.Listening, error) {
	if k.index == nil {
		return nil, fmt.Errorf("listen: %w: on a read-only file system there is no WAL-index", driver.ErrUnsupported)
	}
	return &listening{index: k.index, last: k.index.header()}, nil
}

// Announcement implements driver.Listener.
func (*Checkpointer) Announcement() string { return "" }

type listening struct {
	index *sharedFile
	last  [indexHeader]byte
}

// Wait implements driver.Listening.
func (l *listening) Wait(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		if now := l.index.header(); now != l.last {
			l.last = now
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close implements driver.Listening.
func (l *listening) Close() error { return nil }

func (f *sharedFile) header() (b [indexHeader]byte) {
	_, _ = f.file.ReadAt(b[:], 0) // an empty index has no commit to report
	return b
}
