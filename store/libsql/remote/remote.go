// Package remote is the libSQL engine for databases on a server, through
// github.com/tursodatabase/libsql-client-go. Import it for its side effect:
//
//	import _ "github.com/varvedb/varve/store/libsql/remote"
//
// It opens libsql:https://host:port, and likewise http, ws and wss, and
// libsql://host, which is https. It cannot be linked together with
// store/libsql, the engine for files, since both client libraries register
// themselves with database/sql as "libsql"; with store/sqlite it can.
//
// It has not met a real server yet: its tests speak to servers of their own,
// made after the client. Treat it as untried.
//
// The token is the URL parameter authToken or, without that, the environment
// variable LIBSQL_AUTH_TOKEN. It is in no error and in no setting. Over http and
// ws it travels in clear.
//
// # What a server does otherwise
//
//   - Durability, memory and checkpoints are the server's own.
//   - A server ends a transaction, and so a snapshot, that lasts too long for it
//     or that has been idle. Calls then fail; a new transaction gets a new stream.
//   - A statement without an answer within the parameter timeout ends the
//     connection. When that was a commit its outcome is unknown.
package remote

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/libsql/internal/address"
	"github.com/varvedb/varve/store/libsql/internal/guard"
)

// Statements that begin transactions. READONLY is libSQL's own; with it the
// server may answer from a replica.
const (
	beginWrite = "BEGIN IMMEDIATE"
	beginRead  = "BEGIN TRANSACTION READONLY"
)

var capabilities = driver.Capabilities{
	TextNUL:       false,
	Analyze:       true,
	WALCheckpoint: false,
	MultiProcess:  true,
	Durabilities:  []driver.Durability{driver.Durable},
	Gaps: []driver.Gap{
		{Name: "untried", Reason: "has not met a real server yet, only servers made for its tests"},
		{Name: "text-nul", Reason: "as in the embedded engine; such text is refused"},
		{Name: "deep-sql", Reason: "as in the embedded engine: its parser refuses conditions nested deeper than about 30 levels"},
		{Name: "server-settings", Reason: "durability, memory and checkpoints are the server's; of its statistics only the size is known"},
		{Name: "server-limits", Reason: "the server ends long or idle transactions, snapshots among them"},
		{Name: "lease", Reason: "the server has no lock that ends with a client, so nothing keeps a second server from writing the same store"},
		{Name: "late-close", Reason: "the client library ends its stream beside Close over Go's shared HTTP client, so a goroutine and an idle connection can outlast Close; " +
			"a WebSocket server that breaks the protocol in the handshake leaves a socket and a goroutine behind"},
		{Name: "one-client", Reason: "cannot be linked with store/libsql, so this program opens servers and no files"},
	},
}

var info = driver.Info{Name: "libsql", Dialect: driver.SQLite, Library: "github.com/tursodatabase/libsql-client-go"}

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
	*sqlstore.DB
	server  string // scheme and host
	version string
}

func open(ctx context.Context, u *url.URL, opts driver.Options) (driver.Engine, error) {
	at, err := address.Parse(u)
	switch {
	case err != nil:
		return nil, err
	case at.Server == nil:
		return nil, fmt.Errorf("open %q: %w: this program links the client of libSQL servers; "+
			"a program that imports github.com/varvedb/varve/store/libsql in its place opens files", at.Path, driver.ErrUnsupported)
	}
	if err := checkOptions(opts); err != nil {
		return nil, err
	}
	link, err := newConnector(at.Server, opts.WithDefaults())
	if err != nil {
		return nil, err
	}
	return connect(ctx, link, opts.WithDefaults())
}

func connect(ctx context.Context, link *connector, opts driver.Options) (driver.Engine, error) {
	db, err := sqlstore.New(ctx, sqlstore.Config{
		Info:         info,
		Capabilities: capabilities,
		Options:      opts,
		Pool:         sql.OpenDB(link),
		BeginWrite:   beginWrite,
		BeginRead:    beginRead,
		Pin:          "SELECT 1 FROM sqlite_master",
		Codec:        sqlstore.OrderedBlob{},
		Bulk:         &sqlstore.MultiRow{},
		IsBroken:     guard.IsBroken,
	})
	if err != nil {
		return nil, err
	}
	e := &engine{DB: db, server: link.server}
	if err := e.WithWriter(ctx, func(c *sqlstore.Conn) error {
		e.version, err = c.QueryText(ctx, "SELECT sqlite_version()")
		return err
	}); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// checkOptions refuses what only an engine on this machine can do.
func checkOptions(opts driver.Options) error {
	switch {
	case opts.Durability != "" && opts.Durability != driver.Durable:
		return fmt.Errorf("durability %q: %w: it is the server's affair", opts.Durability, driver.ErrUnsupported)
	case opts.Checkpoint != "":
		return fmt.Errorf("checkpoint policy %q: %w: it is the server's affair", opts.Checkpoint, driver.ErrUnsupported)
	}
	return nil
}

// Info implements driver.Engine. The version is that of the SQLite in the server.
func (e *engine) Info() driver.Info {
	i := e.DB.Info()
	i.Version = e.version
	return i
}

// readBack lists the pragmas that Settings asks for. A server may refuse any.
var readBack = []string{"journal_mode", "synchronous", "page_size", "encoding"}

// Settings implements driver.Engine. It leaves out what the server does not
// tell.
func (e *engine) Settings(ctx context.Context) ([]driver.Setting, error) {
	list := []driver.Setting{
		{Name: "server", Value: e.server},
		{Name: "durability", Value: string(driver.Durable)},
		{Name: "durability_kept_by", Value: "server"}, // which does not tell how
	}
	err := e.WithWriter(ctx, func(c *sqlstore.Conn) error {
		for _, name := range readBack {
			value, err := c.QueryText(ctx, "PRAGMA "+name)
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

// Stats implements driver.Engine: the size of the database, if the server tells.
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
	http.DefaultClient.CloseIdleConnections() // the client library uses that one
	return err
}
