package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// counters are the server's counters and sizes. Checkpoints are counted for the
// whole server, the cache for the database.
type counters struct {
	databaseBytes, walBytes sql.NullInt64
	checkpoints             sql.NullInt64
	checkpointMillis        sql.NullFloat64
	hits, misses            sql.NullInt64
	lagSeconds              sql.NullFloat64
}

// The texts that read counters. Each is a separate statement, because a missing
// permission or an old server must leave only its own counter unknown.
const (
	sizeText = "SELECT pg_database_size(current_database())"
	// What recovery would read: from where the last checkpoint began. The files are
	// longer and mostly kept for reuse.
	walText = "SELECT pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()" +
		" ELSE pg_current_wal_lsn() END, redo_lsn)::bigint FROM pg_control_checkpoint()"
	cacheText = "SELECT blks_hit, blks_read FROM pg_stat_database WHERE datname = current_database()"
	// Writing is spread over most of the time between two checkpoints, so this
	// is how long they took, not how busy the disk was.
	checkpointText = "SELECT num_done, write_time + sync_time FROM pg_stat_checkpointer"
)

// lagText returns the age of the last transaction that a standby has replayed,
// unless it has replayed everything that it received. Of a standby that
// receives nothing only that age is known.
const lagText = `SELECT CASE
	WHEN NOT pg_is_in_recovery() THEN NULL
	WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() AND EXISTS (SELECT 1 FROM pg_stat_wal_receiver) THEN 0
	ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())
END::float8`

// readCounters reads the server's counters.
func (e *engine) readCounters(ctx context.Context) (n counters, err error) {
	err = errors.Join(
		e.readOptional(ctx, sizeText, &n.databaseBytes),
		e.readOptional(ctx, walText, &n.walBytes),
		e.readOptional(ctx, cacheText, &n.hits, &n.misses),
		e.readOptional(ctx, lagText, &n.lagSeconds),
		e.readOptional(ctx, checkpointText, &n.checkpoints, &n.checkpointMillis),
	)
	if err != nil {
		return n, fmt.Errorf("read statistics: %w", err)
	}
	return n, nil
}

// readOptional scans the one row of a statement. It leaves dest alone when the
// user has no right to it (42501), or the server has no such view (42P01),
// column (42703) or function (42883). Behind a pooler it runs in a separate
// transaction, because an error ends the transaction.
func (e *engine) readOptional(ctx context.Context, text string, dest ...any) error {
	return e.WithSpare(ctx, func(c *sqlstore.Conn) error {
		rows, err := c.QueryOnce(ctx, text)
		switch code(err) {
		case "42501", "42P01", "42703", "42883":
			return nil
		}
		if err != nil {
			return err
		}
		if rows.Next() {
			err = rows.Scan(dest...)
		}
		return errors.Join(err, rows.Err(), rows.Close())
	})
}

// Stats implements driver.Engine. Counts are since Open.
func (e *engine) Stats(ctx context.Context) (driver.Stats, error) {
	n, err := e.readCounters(ctx)
	if err != nil {
		return driver.Stats{}, err
	}
	s := driver.Stats{
		DatabaseBytes: known(n.databaseBytes),
		WALBytes:      known(n.walBytes),
		Checkpoints:   since(n.checkpoints, e.since.checkpoints),
		CacheHits:     since(n.hits, e.since.hits),
		CacheMisses:   since(n.misses, e.since.misses),
	}
	if n.checkpointMillis.Valid {
		took := time.Duration(max(n.checkpointMillis.Float64-e.since.checkpointMillis.Float64, 0) * float64(time.Millisecond))
		s.CheckpointTime = &took
	}
	if n.lagSeconds.Valid {
		lag := time.Duration(max(n.lagSeconds.Float64, 0) * float64(time.Second))
		s.ReplicaLag = &lag
	}
	if e.server != nil {
		s.EnginePIDs = e.server.PIDs()
	}
	return s, nil
}

func known(n sql.NullInt64) *int64 {
	if !n.Valid {
		return nil
	}
	return &n.Int64
}

// since returns how much a counter grew; one that was reset starts at zero.
func since(now, then sql.NullInt64) *int64 {
	if !now.Valid {
		return nil
	}
	grown := max(now.Int64-then.Int64, 0)
	return &grown
}
