package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// paramCitus asks for a store whose tables are spread over the workers of a Citus
// coordinator.
const paramCitus = "citus"

// citusMajor is the first version in which a worker's transaction takes over the
// isolation level of the coordinator's. Before it, a snapshot's views could change.
const citusMajor = 13

// citusSettings are set in every session. One connection to each worker,
// because each connection has its own view, which begins with its first
// statement. And no bound for intermediate results of joins, because an export
// joins the whole store.
var citusSettings = []string{"citus.max_adaptive_executor_pool_size = 1", "citus.max_intermediate_result_size = -1"}

// cluster is a database whose large tables lie on the workers of the server that it
// connects to, the coordinator.
//
// Citus commits on the workers one after the other, after the coordinator, and
// begins a transaction's views when a statement first comes to a machine. So a
// snapshot may see the coordinator before a commit and a worker after it, even
// when the commit is over. A number detects this: each write transaction raises
// it on every shard and on the coordinator, and a snapshot begins by reading
// all of them. When they are equal, all views have begun and are of one commit;
// otherwise the snapshot begins again. A writer checks in the same way whether
// the last commit has come to all machines, whichever process made it and
// however it ended. The schemas make the tables (spread.sql).
type cluster struct {
	*engine
	spread atomic.Bool // the tables are there
}

// newCluster checks that a server is a coordinator. It closes the engine when it is not.
func newCluster(ctx context.Context, e *engine) (driver.Engine, error) {
	if err := e.checkCoordinator(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return &cluster{engine: e}, nil
}

// workersText lists workers that do not answer or could lose committed rows.
// Their synchronous_commit does not matter, because prepared transactions are
// always synced.
const workersText = `SELECT coalesce(string_agg(nodename || ':' || nodeport || ' says ' || result, ', '), '')
FROM run_command_on_workers($$SELECT 'fsync ' || current_setting('fsync') || ', full_page_writes ' || current_setting('full_page_writes')$$)
WHERE NOT success OR result <> 'fsync on, full_page_writes on'`

// checkCoordinator refuses a server that is no coordinator, or whose workers do not keep
// what they commit.
func (e *engine) checkCoordinator(ctx context.Context) error {
	var version, group, workers string
	err := e.WithSpare(ctx, func(c *sqlstore.Conn) (err error) {
		version, err = c.QueryText(ctx, "SELECT coalesce(min(extversion), '') FROM pg_extension WHERE extname = 'citus'")
		if err == nil && version != "" {
			group, err = c.QueryText(ctx, "SELECT coalesce(min(groupid), 0)::text FROM pg_dist_local_group")
		}
		if err == nil && group == "0" {
			workers, err = c.QueryText(ctx, workersText)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("look for Citus: %w", err)
	}
	major, _, _ := strings.Cut(version, ".")
	switch n, _ := strconv.Atoi(major); {
	case version == "":
		return fmt.Errorf("%w: %s=true on a database without Citus; CREATE EXTENSION citus in it and add the workers (citus_add_node), or leave the parameter out",
			driver.ErrUnsupported, paramCitus)
	case n < citusMajor:
		return fmt.Errorf("%w: Citus %s; update it to %d or later", driver.ErrUnsupported, version, citusMajor)
	case group != "0":
		return fmt.Errorf("%w: the server is worker %s of a Citus cluster; connect to its coordinator", driver.ErrUnsupported, group)
	case workers != "":
		return fmt.Errorf("%w: each worker has to answer with fsync and full_page_writes on; %s", driver.ErrUnsupported, workers)
	}
	return nil
}

// Capabilities implements driver.Engine.
func (c *cluster) Capabilities() driver.Capabilities {
	caps := c.engine.Capabilities()
	caps.Spreads = true
	caps.Gaps = append(caps.Gaps[:len(caps.Gaps):len(caps.Gaps)],
		driver.Gap{Name: "citus-coordinator", Reason: "every process connects to the coordinator, readers too; a worker is refused"},
		driver.Gap{Name: "citus-layouts", Reason: "only the tables of compact and of the arkiv family are spread; another layout is refused"},
		driver.Gap{Name: "citus-events", Reason: "events stay with the coordinator, and beside spread tables each append is a commit of all machines; so are the tables of permissions, whose recursive queries Citus refuses"},
		driver.Gap{Name: "citus-doubt", Reason: "when a machine fails while it commits, writers and new snapshots get ErrLocked until Citus has ended the commit (citus.recover_2pc_interval, a minute)"},
		driver.Gap{Name: "citus-moves", Reason: "stop writers while shards are moved, and split none: a moved shard gives an open snapshot a new view"},
		driver.Gap{Name: "citus-check", Reason: "check compares indexes with tables on the coordinator alone, and sizes are the coordinator's"},
	)
	return caps
}

// Begin implements driver.Engine.
func (c *cluster) Begin(ctx context.Context) (driver.Tx, error) {
	return agreed(ctx, c, "begin", c.engine.Begin, c.raise, driver.Tx.Rollback)
}

// BeginPrefetching implements driver.Prefetcher. Nothing is sent ahead, because the
// numbers are compared first.
func (c *cluster) BeginPrefetching(ctx context.Context, _ []driver.Prefetch) (driver.Tx, error) {
	return c.Begin(ctx)
}

// raise gives a write transaction its number, on every machine that had the last one.
func (c *cluster) raise(ctx context.Context, tx driver.Tx) (same bool, err error) {
	if there, err := c.there(ctx, tx); !there || err != nil {
		return true, err
	}
	var number, shards int64
	err = driver.QueryRow(ctx, tx, "UPDATE varve_commit SET number = number + 1 RETURNING number, shards", nil, &number, &shards)
	if err != nil {
		return false, err
	}
	n, err := tx.Exec(ctx, "UPDATE varve_commit_shards SET number = ? WHERE number = ?", number, number-1)
	return n == shards, err
}

// Snapshot implements driver.Engine.
func (c *cluster) Snapshot(ctx context.Context) (driver.Reader, error) { return c.View(ctx) }

// View implements driver.Engine. To compare fixes the view, on all machines.
func (c *cluster) View(ctx context.Context) (driver.Reader, error) {
	return agreed(ctx, c, "begin read", c.engine.View, c.compare, driver.Reader.Close)
}

// Snapshots implements driver.Engine.
func (c *cluster) Snapshots(ctx context.Context, n int) ([]driver.Reader, error) {
	begin := func(ctx context.Context) ([]driver.Reader, error) { return c.engine.Snapshots(ctx, n) }
	compare := func(ctx context.Context, list []driver.Reader) (same bool, err error) {
		same = true
		for i := 0; i < n && same && err == nil; i++ {
			same, err = c.compare(ctx, list[i])
		}
		return same, err
	}
	return agreed(ctx, c, "begin read", begin, compare, driver.CloseReaders)
}

// compare begins a snapshot's views and reports whether they are of one commit.
func (c *cluster) compare(ctx context.Context, r driver.Reader) (same bool, err error) {
	if there, err := c.there(ctx, r); !there || err != nil {
		return true, err
	}
	var number, shards, found, lowest, highest int64
	err = driver.QueryRow(ctx, r, "SELECT number, shards FROM varve_commit", nil, &number, &shards)
	if err == nil {
		err = driver.QueryRow(ctx, r, "SELECT count(*), coalesce(min(number), -1), coalesce(max(number), -1) FROM varve_commit_shards", nil,
			&found, &lowest, &highest)
	}
	return found == shards && lowest == number && highest == number, err
}

// there reports whether the tables of numbers exist. They are made with the
// others.
func (c *cluster) there(ctx context.Context, q driver.Querier) (bool, error) {
	if c.spread.Load() {
		return true, nil
	}
	n, err := driver.QueryInt(ctx, q, "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'varve_commit'")
	if _, writes := q.(driver.Tx); err == nil && n > 0 && !writes {
		c.spread.Store(true) // a snapshot sees committed tables only
	}
	return n > 0, err
}

// Waits of agreed.
const (
	firstWait   = time.Millisecond
	longestWait = 64 * time.Millisecond
)

// agreed begins a view again and again until it finds the same number on all
// machines, or the lock timeout passes. While a writer works it often takes a
// second try.
func agreed[T any](ctx context.Context, c *cluster, what string, begin func(context.Context) (T, error),
	same func(context.Context, T) (bool, error), end func(T) error) (v T, err error) {
	limit := c.session.opts.LockTimeout
	started := time.Now()
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		began, err := begin(ctx)
		if err != nil {
			return v, err
		}
		// On a worker, which does not know of the session's lock_timeout, it may have to
		// wait for a commit in doubt.
		inner, cancel := context.WithTimeout(ctx, limit)
		is, err := same(inner, began)
		late := inner.Err() != nil && ctx.Err() == nil || time.Since(started) > limit
		cancel()
		switch {
		case is && err == nil:
			return began, nil
		case late:
			found := "not all machines of the cluster show the same commit"
			if err != nil {
				found = "the machines of the cluster could not be asked for their commits"
			}
			err = errors.Join(fmt.Errorf("%w: %s after %s; see that every worker runs; "+
				"a commit in doubt is ended by Citus within citus.recover_2pc_interval", driver.ErrLocked, found, limit), err)
		}
		err = errors.Join(err, end(began))
		if err != nil {
			return v, fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return v, fmt.Errorf("%s: %w", what, ctx.Err())
		case <-time.After(wait):
		}
	}
}
