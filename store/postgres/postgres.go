// Package postgres is the PostgreSQL engine, through github.com/jackc/pgx/v5.
// Import it for its side effect:
//
//	import _ "github.com/varvedb/varve/store/postgres"
//
// A URL names a running server or a directory:
//
//	postgres://user:password@host:5432/db?sslmode=verify-full
//	postgres://user@/db?host=/var/run/postgresql   through a Unix socket
//	postgres:///var/lib/node/pg   postgres:pg      a directory
//
// A host in the URL, or the parameter host, means a server; anything else is
// the directory of a server that Open starts and Close stops. Settings that the
// URL of a server leaves out are taken from the environment (PGUSER,
// PGPASSWORD, ~/.pgpass, …) as PostgreSQL's own programs do. An embedded server
// ignores the environment.
//
// Everything lives in the session's current schema, so that several stores and
// other tables can share a database; the parameter schema chooses one.
//
// # Writers
//
// A write transaction holds an advisory lock of the database and schema, so
// that the writers of all processes follow one another. It runs under READ
// COMMITTED: behind the lock each statement sees the commits of earlier
// writers.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/varvedb/varve/internal/dbfile"
	"github.com/varvedb/varve/internal/pgembed"
	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

const name = "postgres"

func init() {
	driver.Register(driver.Driver{
		Name:         name,
		Open:         open,
		Scratch:      scratch,
		Params:       params,
		Capabilities: capabilities(false), // what every URL can have; a directory can have more
		Info:         info(""),
	})
}

func info(version string) driver.Info {
	return driver.Info{Name: name, Dialect: driver.Postgres, Library: "github.com/jackc/pgx/v5", Version: version}
}

// engine is an open database.
type engine struct {
	*sqlstore.DB
	session *session
	conn    *pgx.ConnConfig
	server  *pgembed.Server // nil when the server is not ours
	files   *dbfile.Watch   // of our server's directory
	version string
	since   counters // as they were at Open

	announcement, self string // see announcement
}

func open(ctx context.Context, u *url.URL, opts driver.Options) (driver.Engine, error) {
	t, err := parseTarget(u, opts.Params)
	if err = cmp.Or(checkOptions(opts), err); err != nil {
		return nil, driver.Of(driver.ErrURL, err)
	}
	if !t.embedded() {
		return connect(ctx, t, opts, nil)
	}
	server, err := startServer(ctx, t, opts)
	if err != nil {
		return nil, err
	}
	e, err := connect(ctx, t, opts, server)
	if err != nil {
		return nil, errors.Join(err, server.Stop(context.WithoutCancel(ctx)))
	}
	return e, nil
}

// connect opens the database on a running server.
func connect(ctx context.Context, t target, opts driver.Options, server *pgembed.Server) (driver.Engine, error) {
	if server == nil && opts.Durability == driver.Unsafe {
		return nil, driver.Of(driver.ErrURL, fmt.Errorf("%w: durability unsafe on a running server, where fsync is a setting of the whole server; choose relaxed or durable",
			driver.ErrUnsupported))
	}
	cfg, err := t.connConfig(server)
	if err != nil {
		return nil, err
	}
	// As a parameter of the connection a pooler would let others have it.
	s := &session{opts: opts, schema: t.schema, citus: t.citus, application: cfg.RuntimeParams["application_name"]}
	delete(cfg.RuntimeParams, "application_name")
	files := &dbfile.Watch{}
	if t.embedded() {
		data := filepath.Join(t.dir, "data")
		if err := errors.Join(files.Add(data), files.Add(filepath.Join(data, "PG_VERSION"))); err != nil {
			return nil, err
		}
	}
	db, err := sqlstore.New(ctx, sqlstore.Config{
		Info:         info(""),
		Capabilities: capabilities(server != nil),
		Options:      opts,
		Pool:         stdlib.OpenDB(*cfg),
		Remote:       newRemote,
		LiftTimeouts: liftTimeouts,
		Setup:        s.setup,
		BeginWrite:   "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
		BeginRead:    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
		Pin:          "SELECT 1", // the view is fixed by the first query, not by BEGIN
		AfterBegin:   lock,
		BeforeCommit: func(_ context.Context, c *sqlstore.Conn) error { return errors.Join(files.Check(), lost(c)) },
		IsBroken:     isBroken,
		Codec:        codec{},
		Bulk:         &bulk{},
		MapError:     mapError,
	})
	if err != nil {
		return nil, err
	}
	e := &engine{DB: db, session: s, conn: cfg, server: server, files: files}
	e.announcement, e.self = announcement()
	if err := e.begin(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if t.citus {
		return newCluster(ctx, e)
	}
	return e, nil
}

// begin reads the values that later calls compare or show.
func (e *engine) begin(ctx context.Context) error {
	err := e.WithSpare(ctx, func(c *sqlstore.Conn) (err error) {
		e.version, err = c.QueryText(ctx, "SHOW server_version")
		return err
	})
	if err != nil {
		return fmt.Errorf("read the server's version: %w", err)
	}
	e.since, err = e.readCounters(ctx)
	return err
}

// BeginPrefetching implements driver.Prefetcher.
func (e *engine) BeginPrefetching(ctx context.Context, expected []driver.Prefetch) (driver.Tx, error) {
	return e.BeginExpecting(ctx, expected)
}

// Info implements driver.Engine.
func (e *engine) Info() driver.Info { return info(e.version) }

// Ended implements driver.Ender. A server of its own operator is restarted by
// the operator; its lost state is read again, because other clients may have
// written meanwhile.
func (e *engine) Ended() <-chan struct{} {
	if e.server == nil {
		return nil
	}
	return e.server.Ended()
}

// Probe implements driver.Prober.
func (e *engine) Probe(context.Context) error { return e.files.Check() }

// Close implements driver.Engine.
func (e *engine) Close() error {
	err := e.DB.Close()
	if e.server != nil {
		err = errors.Join(err, e.server.Stop(context.Background()))
	}
	return err
}

// checkOptions refuses what this engine cannot do.
func checkOptions(opts driver.Options) error {
	if opts.Checkpoint != "" || opts.WALFrames != 0 {
		return fmt.Errorf("%w: Postgres runs its checkpoints itself; leave checkpoint and checkpoint_frames out", driver.ErrUnsupported)
	}
	_, err := driver.ParseDurability(string(opts.Durability))
	return err
}

// capabilities returns the capabilities of an embedded server or of any other.
func capabilities(embedded bool) driver.Capabilities {
	c := driver.Capabilities{
		Analyze:      true,
		MultiProcess: !embedded,
		Durabilities: []driver.Durability{driver.Durable, driver.Relaxed},
		Gaps: []driver.Gap{
			{Name: "text-nul", Reason: "Postgres text cannot hold U+0000; such text is refused before anything is written"},
			{Name: "long-values", Reason: "an index entry has at most 2704 bytes, after compression; a longer attribute in an indexed table is refused"},
			{Name: "statistics", Reason: "until its tables have been analyzed a query of several conditions can take a thousand times as long; autovacuum sees to it, on an embedded server within seconds"},
			{Name: "checkpoint-policy", Reason: "Postgres runs its checkpoints itself; any policy but the default is refused"},
			{Name: "reader-age", Reason: "a snapshot holds back vacuum but no checkpoint, so max_reader_age ends none"},
			{Name: "failed-statement", Reason: "after a failed or cancelled statement a transaction can only be rolled back and a snapshot only be closed"},
		},
	}
	if embedded {
		c.Durabilities = append(c.Durabilities, driver.Unsafe)
		c.Gaps = append(c.Gaps,
			driver.Gap{Name: "linux-only", Reason: "the embedded server needs Linux; elsewhere name a running server"},
			driver.Gap{Name: "one-process", Reason: "one process at a time can have a directory open; a running server takes many"},
		)
		return c
	}
	c.Gaps = append(c.Gaps,
		driver.Gap{Name: "durability-unsafe", Reason: "fsync is a setting of the whole server; on one that is not embedded unsafe is refused"},
		driver.Gap{Name: "memory", Reason: "a running server's memory is its administrator's; the budget is ignored"},
		driver.Gap{Name: "pooler", Reason: "behind a pooler, whatever its mode, each transaction is set up anew and each statement planned anew, so that nothing is left in a session that others use too; connect to the server itself where you can"},
	)
	return c
}
