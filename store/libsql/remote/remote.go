// Package remote is the libSQL engine for databases on a server (sqld), by the
// protocol Hrana over HTTP. Import it for its side effect:
//
//	import _ "github.com/varvedb/varve/store/libsql/remote"
//
// It opens libsql:https://host:port and libsql:http://host:port, and
// libsql://host, which is https. WebSockets are refused: the same server answers
// HTTP at the same address. store/libsql registers the same scheme for files, so a
// program imports one of the two; with store/sqlite this one can be linked.
//
// The token is the URL parameter authToken or, without that, the environment
// variable LIBSQL_AUTH_TOKEN. It is in no error and in no setting. Over http it
// travels in clear.
//
// # How a server differs from a file
//
//   - The server configures memory, checkpoints and durability. A server with
//     synchronous NORMAL, which is sqld's default, opens with durability=relaxed.
//   - When a client waits to write and another client has had the lock for 5 s, the
//     server ends that client's transaction. All of it is rolled back, its next
//     statement fails, and no statement runs outside of it.
//   - The server ends a stream without a request for 10 s. So transactions and
//     snapshots send an empty request from time to time.
//   - Rows of more than its --max-response-size (10 MB) do not fit into one answer.
//     They are read again in parts, which takes twenty times as long a row.
//   - It takes rows of 5 MB. Longer ones are refused before they are sent.
//   - A statement without an answer within the parameter timeout ends the
//     connection. When it was a commit, its outcome is unknown.
//
// Bulk writes wait for the next statement and travel with it, in one request. So
// their error is the error of the next statement, or of the commit.
package remote

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/libsql/internal/address"
	"github.com/varvedb/varve/store/libsql/internal/guard"
)

// Statements for transactions. READONLY is libSQL's extension: the server may
// answer from a replica, but it does not keep a snapshot from writing.
const (
	beginWrite = "BEGIN IMMEDIATE"
	beginRead  = "BEGIN TRANSACTION READONLY"
	commit     = "COMMIT"
	rollback   = "ROLLBACK"
)

var capabilities = driver.Capabilities{
	TextNUL:       false,
	Analyze:       false,
	WALCheckpoint: false,
	MaxConditions: 2000, // as in the embedded engine
	SQLDepth:      30,
	MultiProcess:  true,
	Durabilities:  []driver.Durability{driver.Durable},
	Gaps: []driver.Gap{
		{Name: "text-nul", Reason: "as in the embedded engine; such text is refused"},
		{Name: "deep-sql", Reason: "as in the embedded engine: its parser refuses conditions nested deeper than about 30 levels, with ErrUnsupported"},
		{Name: "analyze", Reason: "the server refuses the statement"},
		{Name: "server-settings", Reason: "durability, memory and checkpoints are the server's; of its statistics only the size is known"},
		{Name: "server-limits", Reason: "rows of more than 5 MB are refused; a write transaction of more than 5 s is ended, and rolled back whole, when another client wants to write"},
		{Name: "lease", Reason: "the server has no lock that ends with a client, so nothing keeps a second server from writing the same store"},
		{Name: "one-client", Reason: "cannot be linked with store/libsql, so this program opens servers and no files"},
	},
}

var info = driver.Info{Name: "libsql", Dialect: driver.SQLite, Library: "github.com/varvedb/varve/store/libsql/remote"}

func init() {
	driver.Register(driver.Driver{
		Name:         info.Name,
		Open:         open,
		Params:       params,
		Capabilities: capabilities,
		Info:         info,
	})
}

// engine is an open database on a server.
type engine struct {
	sqlstore.SQLite
	link    *connector
	version string
	level   driver.Durability
}

func open(ctx context.Context, u *url.URL, opts driver.Options) (driver.Engine, error) {
	at, err := address.Parse(u)
	switch {
	case err != nil:
		return nil, err
	case at.Server == nil:
		return nil, fmt.Errorf("%w: this program opens libSQL's servers and no files; one that imports github.com/varvedb/varve/store/libsql "+
			"in its place opens files", driver.ErrUnsupported)
	case opts.Checkpoint != "":
		return nil, driver.Of(driver.ErrURL, fmt.Errorf("parameter checkpoint: %w: the server checkpoints by itself; leave it out", driver.ErrUnsupported))
	}
	link, err := newConnector(at.Server, opts.WithDefaults())
	if err != nil {
		return nil, driver.Of(driver.ErrURL, err)
	}
	return connect(ctx, link, opts.WithDefaults())
}

func connect(ctx context.Context, link *connector, opts driver.Options) (driver.Engine, error) {
	db, err := sqlstore.New(ctx, sqlstore.Config{
		Info:         info,
		Capabilities: capabilities,
		Options:      opts,
		Pool:         sql.OpenDB(link),
		Remote:       func(native any) sqlstore.Remote { return native.(*conn) },
		BeginWrite:   beginWrite,
		AfterBegin:   func(ctx context.Context, c *sqlstore.Conn) error { return c.Flush(ctx) }, // and waits for the lock
		BeginRead:    beginRead,
		Pin:          "SELECT 1 FROM sqlite_master",
		Codec:        sqlstore.OrderedBlob{},
		Bulk:         &bulk{sqlstore.MultiRow{Run: (*sqlstore.Conn).Defer}, link.maxRow},
		IsBroken:     guard.IsBroken,
	})
	if err != nil {
		return nil, err
	}
	e := &engine{SQLite: sqlstore.SQLite{DB: db}, link: link}
	if err := e.start(ctx, opts.Durability); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// start reads the server's properties, and refuses a server with a lower
// durability than requested.
func (e *engine) start(ctx context.Context, want driver.Durability) error {
	err := e.WithWriter(ctx, func(c *sqlstore.Conn) (err error) {
		if e.version, err = c.QueryText(ctx, "SELECT sqlite_version()"); err != nil {
			return err
		}
		e.level, err = level(ctx, c)
		return err
	})
	switch {
	case err != nil:
		return err
	case want == e.level:
		return nil
	case want == driver.Durable:
		return fmt.Errorf("durability %q: %w: the libSQL server %s keeps %q; open it with durability=%s, or set durability_mode to \"strong\" in the server's configuration of the namespace",
			want, driver.ErrUnsupported, e.link.server, e.level, e.level)
	}
	return fmt.Errorf("durability %q: %w: the libSQL server %s keeps %q, which is its affair", want, driver.ErrUnsupported, e.link.server, e.level)
}

// level returns the durability of a commit, from the settings of a new
// connection; no statement can change them. It uses SELECT, because the server
// treats a PRAGMA as a write, and refuses it with a read-only token.
func level(ctx context.Context, c *sqlstore.Conn) (driver.Durability, error) {
	synchronous, err := c.QueryText(ctx, "SELECT * FROM pragma_synchronous")
	if err != nil {
		return "", fmt.Errorf("read back synchronous: %w", err)
	}
	switch synchronous {
	case "2", "3":
		return driver.Durable, nil
	case "1":
		return driver.Relaxed, nil
	}
	return driver.Unsafe, nil
}

// Capabilities implements driver.Engine.
func (e *engine) Capabilities() driver.Capabilities {
	c := e.DB.Capabilities()
	c.Durabilities = []driver.Durability{e.level}
	return c
}

// Info implements driver.Engine. The version is the server's SQLite version.
func (e *engine) Info() driver.Info {
	i := e.DB.Info()
	i.Version = e.version
	return i
}

// readBack lists the pragmas for Settings. A server may refuse any of them.
var readBack = []string{"journal_mode", "synchronous", "page_size", "encoding"}

// Settings implements driver.Engine. It leaves out settings that the server
// does not report.
func (e *engine) Settings(ctx context.Context) ([]driver.Setting, error) {
	list := []driver.Setting{{Name: "server", Value: e.link.server}}
	err := e.WithWriter(ctx, func(c *sqlstore.Conn) error {
		now, err := level(ctx, c)
		if err != nil {
			return err
		}
		list = append(list, driver.Setting{Name: "durability", Value: string(now)})
		for _, name := range readBack {
			value, err := c.QueryText(ctx, "SELECT * FROM pragma_"+name)
			switch {
			case guard.IsBroken(err) || ctx.Err() != nil:
				return fmt.Errorf("read back %s: %w", name, err)
			case err == nil:
				list = append(list, driver.Setting{Name: name, Value: value})
			}
		}
		return nil
	})
	return list, err
}

// Stats implements driver.Engine: the size of the database, if the server
// reports it.
func (e *engine) Stats(ctx context.Context) (s driver.Stats, err error) {
	err = e.WithSpare(ctx, func(c *sqlstore.Conn) error {
		text, err := c.QueryText(ctx, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
		if guard.IsBroken(err) || ctx.Err() != nil {
			return err
		}
		if size, err := strconv.ParseInt(text, 10, 64); err == nil {
			s.DatabaseBytes = &size
		}
		return nil
	})
	return s, err
}

// Close implements driver.Engine.
func (e *engine) Close() error {
	err := e.DB.Close()
	e.link.client.CloseIdleConnections()
	return err
}
