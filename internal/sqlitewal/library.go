package sqlitewal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/varvedb/varve/internal/dbfile"
	"github.com/varvedb/varve/internal/filelease"
	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// minVersion is the first SQLite without the WAL-reset bug, which can corrupt a
// database when a checkpoint runs while a writer works
// (https://www.sqlite.org/wal.html).
const minVersion = 3051003

// removals is how many times a close tries to remove a log that was left, and
// removalPause is how much longer than the one before a pause between them may
// be. All pauses together are below 50 ms, because another process may keep the
// log for as long as it uses the database.
const (
	removals     = 5
	removalPause = 5 * time.Millisecond
)

// Library is a library that contains SQLite; its fields are the differences
// between the engines made from them.
type Library struct {
	Info     driver.Info
	Number   int // of the version, as SQLITE_VERSION_NUMBER
	TextNUL  bool
	SQLDepth int
	Gaps     []driver.Gap // abilities of SQLite that this library lacks
	MapError func(error) error

	// Open opens a database by its path; see URI. Connections have the function
	// varve_glob if TextNUL is set.
	Open func(path string, readOnly bool) (*sql.DB, error)

	// IsBroken is as in sqlstore.Config. It may be nil.
	IsBroken func(error) bool

	// Direct is as in sqlstore.Config, with the same requirements: statements
	// run on the driver's connection, without database/sql. Leave it false for
	// a driver that reuses the memory of a row's values or keeps arguments.
	Direct bool

	// OnWriter makes every checkpoint run on the writer's connection, for
	// libraries where a checkpoint on another connection is unsafe.
	OnWriter bool

	// Closed, if given, runs after the library was told to close a database, or
	// has failed to open it, and waits until that is done.
	Closed func(u *User) error
}

// Register registers the engine under its name.
func (l *Library) Register() {
	driver.Register(driver.Driver{
		Name:         l.Info.Name,
		Open:         l.open,
		Params:       Params,
		Capabilities: l.Capabilities(),
		Info:         l.Info,
	})
}

// Capabilities returns the capabilities of each database.
func (l *Library) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		TextNUL:       l.TextNUL,
		Analyze:       true,
		WALCheckpoint: true,
		SQLDepth:      l.SQLDepth,
		MaxConditions: 2000, // the time to plan grows with the square: 1,000 take 0.3 s
		MultiProcess:  true,
		Durabilities:  []driver.Durability{driver.Durable, driver.Relaxed, driver.Unsafe},
		Gaps:          l.Gaps,
	}
}

// Engine is an open database.
type Engine struct {
	sqlstore.SQLite
	*Checkpointer
	library *Library
	path    string
	user    *User
	log     *logFile
	file    *sharedFile // nil: no pages are read ahead
	left    atomic.Bool // Leave was called
	once    sync.Once   // of Close
}

// OpenFile opens a database.
func (l *Library) OpenFile(ctx context.Context, path string, opts driver.Options) (_ *Engine, err error) {
	cfg, err := NewConfig(opts)
	if err != nil {
		return nil, err
	}
	if path, err = cfg.Place(path); err != nil {
		return nil, err
	}
	e := &Engine{library: l, path: path, Checkpointer: NewCheckpointer(cfg, path, l.OnWriter)}
	if e.user, err = Claim(l.Info.Library, path); err != nil { // before the file is opened to look at it
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.closed(true))
		}
	}()
	if l.Closed == nil { // otherwise Closed waits until the library has closed the file
		e.file, _ = openShared(path) // on an error SQLite will report it
	}
	pool, err := l.Open(path, opts.ReadOnly)
	if err != nil {
		return nil, err
	}
	e.log = &logFile{path: path + "-wal", durable: cfg.Options.Durability == driver.Durable, readOnly: opts.ReadOnly}
	e.DB, err = sqlstore.New(ctx, sqlstore.Config{
		Info:         l.Info,
		Capabilities: l.Capabilities(),
		Options:      cfg.Options,
		Pool:         pool,
		Setup: func(ctx context.Context, c *sqlstore.Conn, write bool) error {
			e.file.claim(c)
			return e.Setup(ctx, c, write)
		},
		Direct:     l.Direct,
		BeginWrite: "BEGIN IMMEDIATE",
		BeginRead:  "BEGIN",
		Pin:        "SELECT 1 FROM sqlite_master",
		Codec:      sqlstore.OrderedBlob{},
		Bulk:       &sqlstore.MultiRow{},
		MapError:   func(err error) error { return explainTemp(l.MapError(err)) },
		IsBroken:   l.IsBroken,
		BeforeWrite: func(ctx context.Context, c *sqlstore.Conn) error {
			if err := e.log.failure(); err != nil {
				return err
			}
			return e.Checkpointer.BeforeWrite(ctx, c)
		},
		BeforeCommit: func(context.Context, *sqlstore.Conn) error { return e.files.Check() },
		AfterWrite:   e.AfterWrite,
		Late:         cfg.deferSync,
		ReadAhead:    e.file.readAhead,
		RandomAccess: e.file.randomAccess,
	})
	if err != nil {
		return nil, err
	}
	if err := e.Start(e.DB); err != nil {
		return nil, errors.Join(err, e.DB.Close())
	}
	return e, nil
}

// URI returns the URI of a database, including what its connections may do.
func URI(path string, readOnly bool) string {
	mode := "rwc"
	if readOnly {
		mode = "ro"
	}
	if readOnly && dbfile.OnReadOnly(path) {
		mode += "&immutable=1"
	}
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: "mode=" + mode}
	return u.String()
}

// Probe implements driver.Prober. It fails when an open file was removed or
// replaced, or could not be synced.
func (e *Engine) Probe(context.Context) error { return errors.Join(e.log.failure(), e.files.Check()) }

// Lease implements driver.Leaser.
func (e *Engine) Lease(context.Context) (driver.Lease, error) {
	return filelease.Take(e.path, e.log.readOnly)
}

// Leave implements driver.Keeper.
func (e *Engine) Leave() { e.left.Store(true) }

// Close implements driver.Engine.
func (e *Engine) Close() (err error) {
	e.once.Do(func() {
		e.Stop()
		if e.left.Load() && e.user.Alone() { // otherwise another user keeps the log
			err = e.keepLog()
		}
		err = errors.Join(err, e.DB.Close(), e.closed(e.cfg.Options.ReadOnly))
	})
	return err
}

// keepLog makes the log stay in place. The file with the lock is closed after
// the database; see sharedFile.
func (e *Engine) keepLog() (err error) {
	if e.file == nil {
		if e.file, err = openShared(e.path); err != nil {
			return err
		}
	}
	e.user.kept = e.file.file
	return keepLog(e.file.file)
}

// closed closes everything but the library's database, which is already closed.
// The WAL index must be closed after that; see sharedFile.
func (e *Engine) closed(readOnly bool) (err error) {
	e.user.Leave()
	err = e.await()
	if err == nil && !readOnly {
		err = e.removeLog()
	}
	err = errors.Join(err, e.Release(), e.file.close())
	if e.log != nil {
		err = errors.Join(err, e.log.close())
	}
	e.user.End()
	return err
}

// await waits until the library has closed the database.
func (e *Engine) await() error {
	if e.library.Closed == nil {
		return nil
	}
	return e.library.Closed(e.user)
}

// removeLog removes a log that was left behind. Normally the last connection to
// close checkpoints the log and deletes it. But when two processes close at
// once, each sees the other's lock, and both leave it; and a library may close
// its connections concurrently. So one connection opens the database and closes
// it again. Two processes that do so at once hinder each other, so each tries
// again after a random pause that grows.
func (e *Engine) removeLog() (err error) {
	for try := range removals {
		_, missing := os.Stat(e.path + "-wal")
		if err != nil || missing != nil || e.user.kept != nil || !e.user.Alone() || e.files.Check() != nil {
			return err
		}
		time.Sleep(rand.N(time.Duration(try)*removalPause + 1)) // none before the first
		if pool, failed := e.library.Open(e.path, false); failed == nil {
			var n int
			_ = pool.QueryRow("SELECT count(*) FROM sqlite_master").Scan(&n) // the log shows whether it helped
			_ = pool.Close()
			err = e.await()
		}
	}
	// Another process is using the database. The log may stay, because the next
	// process to open the database uses it.
	return err
}

// overlapper is an engine whose commits can become durable during the next
// transaction.
type overlapper struct{ *Engine }

func (l *Library) open(ctx context.Context, u *url.URL, opts driver.Options) (driver.Engine, error) {
	if l.Number < minVersion {
		return nil, fmt.Errorf("%w: SQLite %s can corrupt a database in WAL mode; link 3.51.3 or later", driver.ErrUnsupported, l.Info.Version)
	}
	path, err := driver.FilePath(u)
	if err != nil {
		return nil, err
	}
	e, err := l.OpenFile(ctx, path, opts)
	if err != nil {
		return nil, err
	}
	return overlapper{e}, nil
}

// BeginVisible implements driver.Overlapper.
func (e overlapper) BeginVisible(ctx context.Context) (driver.Tx, error) {
	e.log.used.Store(true)
	return e.BeginLate(ctx)
}

// Sync implements driver.Overlapper.
func (e overlapper) Sync(context.Context) error { return e.log.sync() }

// Durable implements driver.Overlapper.
func (e overlapper) Durable(n uint64) uint64 { return e.Raise(n) }

// Stats implements driver.Engine.
func (e overlapper) Stats(ctx context.Context) (driver.Stats, error) {
	s, err := e.Checkpointer.Stats(ctx)
	if n := e.log.syncs.Load(); err == nil && e.log.durable && !e.log.readOnly {
		s.Syncs = &n
	}
	return s, err
}

// Result codes of SQLite (https://www.sqlite.org/rescode.html).
const (
	codePerm       = 3
	codeBusy       = 5
	codeLocked     = 6
	codeNoMem      = 7
	codeReadOnly   = 8
	codeIOErr      = 10
	codeCorrupt    = 11
	codeFull       = 13
	codeCantOpen   = 14
	codeConstraint = 19
	codeNotADB     = 26
)

// Joined joins an error with the driver package's error for its result code,
// primary or extended, and with the underlying system error, which may be 0.
func Joined(err error, code int, system syscall.Errno) error {
	if sentinel := Sentinel(code&0xff, system); sentinel != nil {
		return fmt.Errorf("%w: %w", sentinel, err)
	}
	return err
}

// Sentinel returns the driver package's error for a primary result code, or
// nil.
func Sentinel(code int, system syscall.Errno) error {
	switch code {
	case codeBusy, codeLocked:
		return driver.ErrLocked
	case codeCorrupt, codeNotADB:
		return driver.ErrCorrupt
	case codeNoMem:
		return driver.ErrMemory
	case codeFull:
		return driver.ErrDiskFull
	case codeReadOnly, codePerm:
		return driver.ErrReadOnly
	case codeConstraint:
		return driver.ErrConflict
	case codeIOErr, codeCantOpen:
		switch system {
		case syscall.ENOSPC, syscall.EDQUOT:
			return driver.ErrDiskFull
		case syscall.EROFS, syscall.EACCES:
			return driver.ErrReadOnly
		}
	}
	return nil
}

// User is a library that has a database open in this process, or is about to
// open it. SQLite's locks belong to the process: two libraries in one process
// would not see each other's locks, and closing a file would drop the locks of
// both. So only one library at a time may have a database open.
type User struct {
	library string
	path    string
	info    os.FileInfo // nil until there is a file
	leaving bool
	kept    *os.File // the database file with the lock that keeps the log; see Kept
}

var users struct {
	sync.Mutex
	list []*User
}

// Claim records that a library is about to open a database, and fails when
// another library has it. It must come before the file is opened, because
// opening and closing the file would already drop locks, and so that only one
// of two libraries creates a new database.
func Claim(library, path string) (*User, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	directory, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	u := &User{library: library, path: filepath.Join(directory, filepath.Base(path))}
	users.Lock()
	defer users.Unlock()
	for _, other := range users.list {
		if other.library != library && other.shares(u) {
			return nil, fmt.Errorf("%w: this process has %q open by %s; open it by that, or close it first", driver.ErrLocked, path, other.library)
		}
	}
	users.list = append(users.list, u)
	return u, nil
}

func (u *User) shares(o *User) bool {
	return u.path == o.path || u.stat() && o.stat() && os.SameFile(u.info, o.info)
}

// stat reports whether the file exists, and records its identity, which
// survives renaming.
func (u *User) stat() bool {
	if u.info == nil {
		u.info, _ = os.Stat(u.path) // if it fails, opening the file returns the error
	}
	return u.info != nil
}

// Leave records that a user is closing the database. Of several users that
// close it concurrently, each may be the last one.
func (u *User) Leave() {
	users.Lock()
	defer users.Unlock()
	u.leaving = true
}

// Alone reports whether no other user in this process has the database open or
// is about to open it. Users that are closing it do not count.
func (u *User) Alone() bool {
	users.Lock()
	defer users.Unlock()
	return !slices.ContainsFunc(users.list, func(other *User) bool { return other != u && !other.leaving && other.shares(u) })
}

// Path returns the database's path.
func (u *User) Path() string { return u.path }

// Kept returns the open database file with the lock that keeps the log in place
// while the library closes the database; nil if there is none.
func (u *User) Kept() *os.File { return u.kept }

// End ends the use.
func (u *User) End() {
	users.Lock()
	defer users.Unlock()
	users.list = slices.DeleteFunc(users.list, func(other *User) bool { return other == u })
}
