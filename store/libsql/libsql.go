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
// # Faults of the library, and how this package avoids them
//
//   - It ignores contexts. This package checks them before each call and between
//     rows, and ends the wait for the write lock with its context. It does not
//     interrupt a statement that runs.
//   - It cuts text at NUL and refuses text that is not UTF-8. This package refuses
//     both first, with driver.ErrUnsupported.
//   - It returns text that reads as a date as a time, and the text is lost. This
//     package returns an error that says to select it as a blob.
//   - It runs the first of several statements and ignores the rest. They are refused.
//   - It refuses PRAGMA through Exec. This package runs it as a query.
//   - It has no result codes, only messages. Driver errors are found by these.
//   - It closes files in its own threads. Close waits for them.
//   - It keeps an invalid address while it reads an empty blob, and the Go runtime
//     can end the program for it. On Linux the linker replaces the address. Programs
//     for other systems need "//go:debug invalidptr=0" in their main package.
//   - It contains SQLite 3.45.1, in which a checkpoint that runs concurrently with a
//     writer can corrupt a database. Checkpoints run on the writer's connection.
package libsql

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/varvedb/varve/internal/sqlitewal"
	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/libsql/internal/address"
	"github.com/varvedb/varve/store/libsql/internal/guard"
)

var library = &sqlitewal.Library{
	// The library reports its version only through SQL.
	Info:     driver.Info{Name: "libsql", Dialect: driver.SQLite, Library: "github.com/tursodatabase/go-libsql"},
	Direct:   true,
	SQLDepth: 30,
	OnWriter: true,
	Open:     openPool,
	Closed:   closed,
	MapError: mapError,
	IsBroken: guard.IsBroken,
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

func init() {
	driver.Register(driver.Driver{
		Name:         library.Info.Name,
		Open:         open,
		Params:       sqlitewal.Params,
		Capabilities: library.Capabilities(),
		Info:         library.Info,
	})
}

// engine is an open libSQL database file.
type engine struct {
	*sqlitewal.Engine
	version string
}

func open(ctx context.Context, u *url.URL, opts driver.Options) (driver.Engine, error) {
	at, err := address.Parse(u)
	switch {
	case err != nil:
		return nil, err
	case at.Server != nil:
		return nil, fmt.Errorf("%w: this program opens libSQL's files and no servers; one that imports github.com/varvedb/varve/store/libsql/remote "+
			"in its place opens servers (for a file relative to the working directory write libsql:%s)", driver.ErrUnsupported, at.Server.Hostname())
	}
	file, err := library.OpenFile(ctx, at.Path, opts)
	if err != nil {
		return nil, err
	}
	e := &engine{Engine: file}
	err = e.WithWriter(ctx, func(c *sqlstore.Conn) (err error) {
		e.version, err = c.QueryText(ctx, "SELECT sqlite_version()")
		return err
	})
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Info implements driver.Engine. The version is SQLite's; the library does not
// report libSQL's own.
func (e *engine) Info() driver.Info {
	i := e.Engine.Info()
	i.Version = e.version
	return i
}
