// Package libsql is the libSQL engine for database files, through
// github.com/tursodatabase/go-libsql. Import it for its side effect:
//
//	import _ "github.com/varvedb/varve/store/libsql"
//
// It cannot be linked together with store/sqlite: both carry the SQLite C code
// under the same symbols. Nor can it be linked together with
// store/libsql/remote, which opens databases on servers and is registered under the
// same URL scheme.
//
// # What the library does otherwise, and what is done about it
//
//   - It does not heed contexts. They are checked before each call and between
//     rows, and the wait for the write lock ends with its context; a statement
//     that runs is not interrupted.
//   - It cuts text at NUL and refuses other than UTF-8: refused here first, with
//     driver.ErrUnsupported.
//   - It gives text that reads as a date as a time, from which the text cannot be
//     had back: an error that says to select it as a blob.
//   - It runs the first of several statements and passes over the rest: refused.
//   - It refuses PRAGMA through Exec: run as a query.
//   - It tells no result codes, only messages: driver errors are found by these.
//   - It closes files in threads of its own: Close waits for them.
//   - It keeps an invalid address while it reads an empty blob, for which the Go
//     runtime can end the program: on Linux the linker puts a valid one in its
//     place. Programs for other systems need "//go:debug invalidptr=0" in their
//     main package.
//   - It carries SQLite 3.45.1, in which a checkpoint that meets a writer at a bad
//     moment can corrupt a database: checkpoints run on the writer's connection.
package libsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"

	"github.com/varvedb/varve/internal/filelease"
	"github.com/varvedb/varve/internal/sqlitewal"
	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/libsql/internal/address"
	"github.com/varvedb/varve/store/libsql/internal/guard"
)

var capabilities = driver.Capabilities{
	TextNUL:       false,
	Analyze:       true,
	WALCheckpoint: true,
	MaxConditions: 2000, // the time to plan grows with the square: 1,000 take 0.3 s
	SQLDepth:      30,
	MultiProcess:  true,
	Durabilities:  []driver.Durability{driver.Durable, driver.Relaxed, driver.Unsafe},
	Gaps: []driver.Gap{
		{Name: "text-nul", Reason: "the library cuts text at NUL; such text is refused"},
		{Name: "text-date", Reason: "the library turns text that reads as a date into a time; read text as CAST(… AS BLOB), anything else is an error"},
		{Name: "wal-reset", Reason: "its SQLite 3.45.1 can corrupt a database when a checkpoint meets a writer at a bad moment; " +
			"checkpoints run on the writer's connection only, and no other process should write or checkpoint at the same time"},
		{Name: "cancellation", Reason: "the library ignores contexts; they are checked around calls and while waiting for the write lock, but a running statement is not interrupted"},
		{Name: "threads", Reason: "the library's thread pool, with its epoll, event and signal descriptors, stays until the process ends; no file of a database does"},
		{Name: "deep-sql", Reason: "its parser refuses conditions nested deeper than about 30 levels, with ErrUnsupported"},
		{Name: "one-client", Reason: "cannot be linked with store/libsql/remote, so this program opens files and no servers"},
	},
}

// info is what is known without a database: the library tells its version only
// through SQL.
var info = driver.Info{Name: "libsql", Dialect: driver.SQLite, Library: "github.com/tursodatabase/go-libsql"}

func init() {
	driver.Register(driver.Driver{
		Name:         info.Name,
		Open:         open,
		Params:       sqlitewal.Params,
		Capabilities: capabilities,
		Info:         info,
	})
}

// engine is an open libSQL database file.
type engine struct {
	*sqlstore.DB
	*sqlitewal.Checkpointer
	cfg     sqlitewal.Config
	path    string
	user    *sqlitewal.User
	file    *heldFile
	version string

	once sync.Once
}

func open(ctx context.Context, u *url.URL, opts driver.Options) (driver.Engine, error) {
	at, err := address.Parse(u)
	switch {
	case err != nil:
		return nil, err
	case at.Server != nil:
		return nil, fmt.Errorf("open %s://%s: %w: this program links the embedded engine; "+
			"a program that imports github.com/varvedb/varve/store/libsql/remote in its place opens servers "+
			"(for a file relative to the working directory write libsql:%s)", at.Server.Scheme, at.Server.Host, driver.ErrUnsupported, at.Server.Hostname())
	}
	cfg, err := sqlitewal.NewConfig(opts)
	if err != nil {
		return nil, err
	}
	if at.Path, err = cfg.Place(at.Path); err != nil {
		return nil, err
	}
	user, err := sqlitewal.Claim(info.Library, at.Path) // before the file is opened and closed to look at it
	if err != nil {
		return nil, err
	}
	e, err := openFile(ctx, at.Path, cfg)
	if err != nil {
		user.End()
		return nil, err
	}
	e.user = user
	return e, nil
}

func openFile(ctx context.Context, path string, cfg sqlitewal.Config) (*engine, error) {
	if err := checkWritable(path, cfg.Options.ReadOnly); err != nil {
		return nil, err
	}
	link, err := newConnector(path, cfg.Options.ReadOnly)
	if err != nil {
		return nil, mapError(err)
	}
	checkpointer := sqlitewal.NewCheckpointer(cfg, path, true)
	db, err := sqlstore.New(ctx, sqlstore.Config{
		Info:         info,
		Capabilities: capabilities,
		Options:      cfg.Options,
		Pool:         sql.OpenDB(link),
		Setup:        checkpointer.Setup,
		Direct:       true,
		BeginWrite:   beginWrite,
		BeginRead:    "BEGIN",
		Pin:          "SELECT 1 FROM sqlite_master",
		Codec:        sqlstore.OrderedBlob{},
		Bulk:         &sqlstore.MultiRow{},
		MapError:     mapError,
		IsBroken:     guard.IsBroken,
		BeforeWrite:  checkpointer.BeforeWrite,
		BeforeCommit: checkpointer.Present,
		AfterWrite:   checkpointer.AfterWrite,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %q: %w", path, err), awaitRelease(path))
	}
	e := &engine{DB: db, Checkpointer: checkpointer, cfg: cfg, path: path}
	if err := e.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %q: %w", path, err), e.Close())
	}
	return e, nil
}

func (e *engine) start(ctx context.Context) (err error) {
	if e.file, err = hold(e.path); err != nil {
		return err
	}
	if err := e.WithWriter(ctx, func(c *sqlstore.Conn) error {
		e.version, err = c.QueryText(ctx, "SELECT sqlite_version()")
		return err
	}); err != nil {
		return err
	}
	return e.Start(e.DB)
}

// Info implements driver.Engine. The version is that of the SQLite inside; the
// library does not tell libSQL's own.
func (e *engine) Info() driver.Info {
	i := e.DB.Info()
	i.Version = e.version
	return i
}

// Checkpoint implements driver.Engine.
func (e *engine) Checkpoint(ctx context.Context, truncate bool) (driver.CheckpointResult, error) {
	return e.Checkpointer.Checkpoint(ctx, truncate)
}

// Probe implements driver.Engine.
func (e *engine) Probe(context.Context) error { return e.Present() }

// Lease implements driver.Engine.
func (e *engine) Lease(context.Context) (driver.Lease, error) {
	return filelease.Take(e.path, e.cfg.Options.ReadOnly)
}

// Close implements driver.Engine.
func (e *engine) Close() (err error) {
	e.once.Do(func() {
		e.Stop()
		// The WAL-index last: closing it while the library still has the
		// database open would drop the library's locks.
		err = errors.Join(e.DB.Close(), e.file.release(), e.settle(), e.Release())
		e.user.End()
	})
	return err
}

// settle removes a log that Close has left behind. The last connection to close
// moves the log into the database and deletes it; but the library closes
// connections side by side, and then none may find itself the last.
func (e *engine) settle() error {
	_, err := os.Stat(e.path + "-wal")
	if err != nil || e.cfg.Options.ReadOnly || e.file == nil || isHeld(e.file.id) {
		return nil
	}
	// When it fails another process is at the database. The log is safe where it
	// is: the next to open the database takes it along.
	_ = visit(e.path)
	return awaitRelease(e.path)
}
