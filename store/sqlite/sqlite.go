// Package sqlite is the SQLite engine, through github.com/mattn/go-sqlite3.
// Import it for its side effect:
//
//	import _ "github.com/varvedb/varve/store/sqlite"
//
// It cannot be linked together with store/libsql: both carry the SQLite C code
// under the same symbols.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	sqlite3 "github.com/mattn/go-sqlite3"

	"github.com/varvedb/varve/internal/filelease"
	"github.com/varvedb/varve/internal/sqlitewal"
	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// minVersion is the first SQLite without the WAL-reset bug, which can corrupt a
// database when a checkpoint runs beside a writer (https://www.sqlite.org/wal.html).
const minVersion = 3051003

var capabilities = driver.Capabilities{
	TextNUL:       true,
	Analyze:       true,
	WALCheckpoint: true,
	MaxConditions: 2000, // the time to plan grows with the square: 1,000 take 0.3 s
	MultiProcess:  true,
	Durabilities:  []driver.Durability{driver.Durable, driver.Relaxed, driver.Unsafe},
}

func info() driver.Info {
	version, _, _ := sqlite3.Version()
	return driver.Info{Name: "sqlite", Dialect: driver.SQLite, Library: "github.com/mattn/go-sqlite3", Version: version}
}

func init() {
	sql.Register("varve-sqlite", &sqlite3.SQLiteDriver{ConnectHook: registerFunctions})
	driver.Register(driver.Driver{
		Name:         "sqlite",
		Open:         open,
		Params:       sqlitewal.Params,
		Capabilities: capabilities,
		Info:         info(),
	})
}

// engine is an open SQLite database.
type engine struct {
	*sqlstore.DB
	*sqlitewal.Checkpointer
	cfg  sqlitewal.Config
	path string
}

func open(ctx context.Context, u *url.URL, opts driver.Options) (driver.Engine, error) {
	if version, number, _ := sqlite3.Version(); number < minVersion {
		return nil, fmt.Errorf("%w: SQLite %s can corrupt a database in WAL mode; link 3.51.3 or later", driver.ErrUnsupported, version)
	}
	path, err := driver.FilePath(u)
	if err != nil {
		return nil, err
	}
	cfg, err := sqlitewal.NewConfig(opts)
	if err != nil {
		return nil, err
	}
	if err := sqlitewal.CheckFile(path, opts.ReadOnly); err != nil {
		return nil, err
	}
	pool, err := sql.Open("varve-sqlite", dsn(path, opts.ReadOnly))
	if err != nil {
		return nil, err
	}
	checkpointer := sqlitewal.NewCheckpointer(cfg, false)
	db, err := sqlstore.New(ctx, sqlstore.Config{
		Info:         info(),
		Capabilities: capabilities,
		Options:      cfg.Options,
		Pool:         pool,
		Setup:        cfg.Setup,
		Direct:       true,
		BeginWrite:   "BEGIN IMMEDIATE",
		BeginRead:    "BEGIN",
		Pin:          "SELECT 1 FROM sqlite_master",
		Codec:        sqlstore.OrderedBlob{},
		Bulk:         &sqlstore.MultiRow{},
		MapError:     mapError,
		BeforeWrite:  checkpointer.BeforeWrite,
		AfterWrite:   checkpointer.AfterWrite,
	})
	if err != nil {
		return nil, err
	}
	e := &engine{DB: db, Checkpointer: checkpointer, cfg: cfg, path: path}
	if err := checkpointer.Start(db, path); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func dsn(path string, readOnly bool) string {
	mode := "rwc"
	if readOnly {
		mode = "ro"
	}
	if readOnly && sqlitewal.OnReadOnly(path) {
		mode += "&immutable=1"
	}
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: "mode=" + mode}
	return u.String()
}

// Lease implements driver.Leaser.
func (e *engine) Lease(context.Context) (driver.Lease, error) { return filelease.Take(e.path) }

// Close implements driver.Engine.
func (e *engine) Close() error {
	e.Stop()
	return errors.Join(e.DB.Close(), e.Release())
}
