// Package duckdb is the DuckDB engine, through github.com/duckdb/duckdb-go.
// Import it for its side effect:
//
//	import _ "github.com/varvedb/varve/store/duckdb"
//
// A database file is open in one process at a time, and there once. A commit is
// always durable; a checkpoint follows the commit that fills the log. A statement
// that fails ends its transaction, as in Postgres: only
// Rollback is left.
//
// Next to a database x are its log, x.wal, and while it is open and after a
// crash x.guard, which opening needs when a checkpoint was interrupted; see
// guard.
package duckdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	duckdb "github.com/duckdb/duckdb-go/v2"
	"github.com/duckdb/duckdb-go/v2/mapping"

	"github.com/varvedb/varve/internal/filelease"
	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

var capabilities = driver.Capabilities{
	TextNUL:       true,
	MaxConditions: 32,
	Durabilities:  []driver.Durability{driver.Durable},
	Gaps: []driver.Gap{
		{Name: "durability", Reason: "every commit is synced; relaxed and unsafe are refused"},
		{Name: "checkpoint-policy", Reason: "a checkpoint follows the commit that passes checkpoint_threshold, and one is made at the close; policies are refused, a checkpoint can be asked for"},
		{Name: "multi-process", Reason: "one process has the file open, and only once; another gets a locked error"},
		{Name: "analyze", Reason: "statistics follow every write; the statement would add nothing"},
		{Name: "composite-index", Reason: "an index of several columns keeps keys unique but serves no lookup; those scan, skipping by block ranges"},
		{Name: "index-memory", Reason: "indexes live within the memory budget; when they outgrow it, writes fail until the budget is raised"},
		{Name: "conditions", Reason: "a query of more than 32 comparisons is refused: planning them takes minutes or more memory than the budget"},
		{Name: "streaming", Reason: "a query's whole result is in memory before its first row is read"},
		{Name: "failed-statement", Reason: "a failed or cancelled statement ends its transaction or snapshot; only a rollback is left"},
	},
}

func info() driver.Info {
	return driver.Info{Name: "duckdb", Dialect: driver.DuckDB, Library: "github.com/duckdb/duckdb-go/v2", Version: mapping.LibraryVersion()}
}

func init() {
	driver.Register(driver.Driver{
		Name:         "duckdb",
		Open:         open,
		Params:       params,
		Capabilities: capabilities,
		Info:         info(),
	})
}

// engine is an open DuckDB database.
type engine struct {
	*sqlstore.DB
	*filelease.Numbers
	cfg         config
	file        *file
	checkpoints checkpointer

	closing sync.Once
}

func open(ctx context.Context, u *url.URL, opts driver.Options) (driver.Engine, error) {
	path, err := driver.FilePath(u)
	if err != nil {
		return nil, err
	}
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, driver.Of(driver.ErrURL, err)
	}
	f, connector, err := connect(ctx, path, cfg)
	if err != nil {
		return nil, err
	}
	e := &engine{cfg: cfg, file: f, Numbers: &filelease.Numbers{Path: f.path + "-durable", Mode: f.guard.mode}}
	e.DB, err = sqlstore.New(ctx, sqlstore.Config{
		Info:         info(),
		Capabilities: capabilities,
		Options:      cfg.Options,
		Pool:         sql.OpenDB(connector),
		BeginWrite:   "BEGIN TRANSACTION",
		BeginRead:    "BEGIN TRANSACTION READ ONLY", // fixes its view at once: immediate_transaction_mode
		Codec:        codec{},
		Bulk:         &bulk{},
		MapError:     mapError,
		BeforeWrite:  e.beforeWrite,
		BeforeCommit: e.beforeCommit,
		AfterWrite:   e.afterWrite,
	})
	if err != nil {
		f.release()
		return nil, err
	}
	if err := e.prepare(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// lockPoll is the time between two attempts to open a locked file.
const lockPoll = 20 * time.Millisecond

// connect takes the file and starts the engine on it. While another process or
// another Engine of this one holds the file, it waits for the lock timeout.
func connect(ctx context.Context, path string, cfg config) (*file, *duckdb.Connector, error) {
	deadline := time.Now().Add(cfg.Options.LockTimeout)
	for {
		f, connector, err := tryConnect(path, cfg)
		if !errors.Is(err, driver.ErrLocked) || !time.Now().Before(deadline) {
			return f, connector, err
		}
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

func tryConnect(path string, cfg config) (*file, *duckdb.Connector, error) {
	f, err := takeFile(path, cfg)
	if err != nil {
		return nil, nil, err
	}
	connector, err := f.start(cfg)
	if errors.Is(err, driver.ErrCorrupt) {
		// Another process may have been killed since it was looked at.
		connector, err = f.start(cfg)
	}
	if err != nil {
		f.release()
		return nil, nil, err
	}
	return f, connector, nil
}

// start starts the engine on a file that is whole, or can be made so.
func (f *file) start(cfg config) (*duckdb.Connector, error) {
	err := f.check(cfg.Options.ReadOnly)
	if err == nil && !cfg.Options.ReadOnly {
		err = f.mend()
	}
	if err != nil {
		return nil, err
	}
	connector, err := newConnector(f.path, &cfg)
	if err != nil {
		return nil, mapError(err)
	}
	return connector, nil
}

// prepare makes a database that was just opened ready for writing.
func (e *engine) prepare(ctx context.Context) error {
	if e.cfg.Options.ReadOnly {
		return nil
	}
	e.startCheckpointer()
	return e.WithWriter(ctx, func(c *sqlstore.Conn) error {
		if err := e.file.protect(ctx, c); err != nil {
			return err
		}
		return bindIndexes(ctx, c)
	})
}

// bindIndexes makes the engine load every index. Until something has made it,
// a DELETE does not see an index made by CREATE UNIQUE INDEX in an earlier run,
// and an INSERT of the same key in the same transaction is refused as a
// duplicate (DuckDB 1.5.5).
func bindIndexes(ctx context.Context, c *sqlstore.Conn) error {
	tables, err := c.QueryTexts(ctx, "SELECT DISTINCT table_name FROM duckdb_indexes() "+
		"WHERE database_name = current_database() AND schema_name = current_schema() ORDER BY table_name")
	for _, table := range tables {
		if err == nil {
			err = c.ExecOnce(ctx, "INSERT INTO "+quote(table)+" SELECT * FROM "+quote(table)+" LIMIT 0")
		}
	}
	if err != nil {
		return fmt.Errorf("load indexes: %w", err)
	}
	return nil
}

// beforeWrite runs before each write transaction.
func (e *engine) beforeWrite(ctx context.Context, c *sqlstore.Conn) error {
	if e.logAbove(logCap * e.cfg.CheckpointThreshold) {
		e.ExpireReaders(time.Now().Add(-e.cfg.Options.MaxReaderAge))
	}
	return e.file.protect(ctx, c)
}

// beforeCommit refuses what DuckDB would not commit though it said so: at COMMIT it rolls a
// transaction back in which a statement failed, unless it was the parser that found it wrong.
func (e *engine) beforeCommit(ctx context.Context, c *sqlstore.Conn) error {
	if failed := c.Failed(); failed != nil {
		if _, err := c.QueryText(ctx, "SELECT 1"); err != nil {
			return fmt.Errorf("rolled back, because a statement had failed: %w", failed)
		}
	}
	return e.file.watch.Check()
}

// Probe implements driver.Prober.
func (e *engine) Probe(context.Context) error { return e.file.watch.Check() }

// Lease implements driver.Leaser. No other process can have the file open; the
// lease separates the users of one engine in this process.
func (e *engine) Lease(context.Context) (driver.Lease, error) {
	return filelease.Take(e.file.path, e.cfg.Options.ReadOnly)
}

// Leave implements driver.Keeper. Should the statement fail, Close writes the part of
// the log into the database that the engine could read.
func (e *engine) Leave() {
	ctx := context.Background()
	_ = e.WithWriter(ctx, func(c *sqlstore.Conn) error {
		e.file.guard.stays = true
		return c.ExecOnce(ctx, "PRAGMA disable_checkpoint_on_shutdown")
	})
}

// Close implements driver.Engine.
func (e *engine) Close() (err error) {
	e.closing.Do(func() {
		e.stopCheckpointer()
		if err = e.DB.Close(); err == nil {
			err = errors.Join(e.file.unguard(), e.Numbers.Close())
		}
		e.file.release()
	})
	return err
}
