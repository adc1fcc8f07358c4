package sqlitewal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"syscall"

	"github.com/varvedb/varve/internal/dbfile"
	"github.com/varvedb/varve/internal/filelease"
	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// minVersion is the first SQLite without the WAL-reset bug, which can corrupt a
// database when a checkpoint runs beside a writer (https://www.sqlite.org/wal.html).
const minVersion = 3051003

// Library is one of the libraries that carry SQLite as it is: all in which the engines
// made of them differ.
type Library struct {
	Info     driver.Info
	Number   int                               // of the version, as SQLITE_VERSION_NUMBER
	Gaps     []driver.Gap                      // what SQLite does and this library does not
	Open     func(uri string) (*sql.DB, error) // of a "file:" URI; connections have varve_glob
	MapError func(error) error
}

// Register makes the engine available under its name.
func (l *Library) Register() {
	driver.Register(driver.Driver{
		Name:         l.Info.Name,
		Open:         l.open,
		Params:       Params,
		Capabilities: l.capabilities(),
		Info:         l.Info,
	})
}

func (l *Library) capabilities() driver.Capabilities {
	return driver.Capabilities{
		TextNUL:       true,
		Analyze:       true,
		WALCheckpoint: true,
		MaxConditions: 2000, // the time to plan grows with the square: 1,000 take 0.3 s
		MultiProcess:  true,
		Durabilities:  []driver.Durability{driver.Durable, driver.Relaxed, driver.Unsafe},
		Gaps:          l.Gaps,
	}
}

// engine is an open SQLite database.
type engine struct {
	*sqlstore.DB
	*Checkpointer
	path string
	user *User
	log  *logFile
}

func (l *Library) open(ctx context.Context, u *url.URL, opts driver.Options) (_ driver.Engine, err error) {
	if l.Number < minVersion {
		return nil, fmt.Errorf("%w: SQLite %s can corrupt a database in WAL mode; link 3.51.3 or later", driver.ErrUnsupported, l.Info.Version)
	}
	path, err := driver.FilePath(u)
	if err != nil {
		return nil, err
	}
	cfg, err := NewConfig(opts)
	if err != nil {
		return nil, err
	}
	if path, err = cfg.Place(path); err != nil {
		return nil, err
	}
	user, err := Claim(l.Info.Library, path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			user.End()
		}
	}()
	pool, err := l.Open(uri(path, opts.ReadOnly))
	if err != nil {
		return nil, err
	}
	log := &logFile{path: path + "-wal", durable: cfg.Options.Durability == driver.Durable, readOnly: opts.ReadOnly}
	checkpointer := NewCheckpointer(cfg, path, false)
	db, err := sqlstore.New(ctx, sqlstore.Config{
		Info:         l.Info,
		Capabilities: l.capabilities(),
		Options:      cfg.Options,
		Pool:         pool,
		Setup:        checkpointer.Setup,
		Direct:       true,
		BeginWrite:   "BEGIN IMMEDIATE",
		BeginRead:    "BEGIN",
		Pin:          "SELECT 1 FROM sqlite_master",
		Codec:        sqlstore.OrderedBlob{},
		Bulk:         &sqlstore.MultiRow{},
		MapError:     l.MapError,
		BeforeWrite: func(ctx context.Context, c *sqlstore.Conn) error {
			if err := log.failure(); err != nil {
				return err
			}
			return checkpointer.BeforeWrite(ctx, c)
		},
		BeforeCommit: checkpointer.Present,
		AfterWrite:   checkpointer.AfterWrite,
		Late:         cfg.late,
	})
	if err != nil {
		return nil, err
	}
	e := &engine{DB: db, Checkpointer: checkpointer, path: path, user: user, log: log}
	if err := checkpointer.Start(db); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func uri(path string, readOnly bool) string {
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

// BeginVisible implements driver.Overlapper.
func (e *engine) BeginVisible(ctx context.Context) (driver.Tx, error) {
	e.log.used.Store(true)
	return e.BeginLate(ctx)
}

// Sync implements driver.Overlapper.
func (e *engine) Sync(context.Context) error { return e.log.sync() }

// Durable implements driver.Overlapper.
func (e *engine) Durable(n uint64) uint64 { return e.numbers.Raise(n) }

// Stats implements driver.Engine.
func (e *engine) Stats(ctx context.Context) (driver.Stats, error) {
	s, err := e.Checkpointer.Stats(ctx)
	if n := e.log.syncs.Load(); err == nil && e.log.durable && !e.log.readOnly {
		s.Syncs = &n
	}
	return s, err
}

// Checkpoint implements driver.Engine.
func (e *engine) Checkpoint(ctx context.Context, truncate bool) (driver.CheckpointResult, error) {
	return e.Checkpointer.Checkpoint(ctx, truncate)
}

// Probe implements driver.Engine.
func (e *engine) Probe(context.Context) error { return errors.Join(e.log.failure(), e.Present()) }

// Lease implements driver.Engine.
func (e *engine) Lease(context.Context) (driver.Lease, error) { return filelease.Take(e.path, e.log.readOnly) }

// Close implements driver.Engine.
func (e *engine) Close() error {
	e.Stop()
	err := errors.Join(e.DB.Close(), e.Release(), e.log.close())
	e.user.End()
	return err
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

// Joined joins an error with the contract's sentinel for its result code, primary or
// extended, and for the system's error behind it, which may be 0.
func Joined(err error, code int, system syscall.Errno) error {
	if sentinel := sentinel(code&0xff, system); sentinel != nil {
		return fmt.Errorf("%w: %w", sentinel, err)
	}
	return err
}

func sentinel(code int, system syscall.Errno) error {
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
