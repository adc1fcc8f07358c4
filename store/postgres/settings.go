package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// readBack are the settings shown, as SHOW names them.
var readBack = []string{
	"server_version",
	"fsync", "full_page_writes", "synchronous_commit", "wal_sync_method", "synchronous_standby_names",
	"wal_level", "wal_compression", "wal_buffers", "max_wal_size", "checkpoint_timeout", "checkpoint_completion_target", "commit_delay",
	"shared_buffers", "effective_cache_size", "work_mem", "maintenance_work_mem", "autovacuum_work_mem", "huge_pages_status",
	"io_method", "max_connections", "max_parallel_workers_per_gather", "random_page_cost", "jit", "plan_cache_mode",
	"autovacuum", "autovacuum_naptime", "autovacuum_max_workers", "autovacuum_vacuum_scale_factor",
	"autovacuum_vacuum_insert_scale_factor", "autovacuum_analyze_scale_factor", "vacuum_truncate", "track_io_timing",
	"data_checksums", "server_encoding", "default_transaction_read_only", "lock_timeout", "search_path",
}

// settingsText returns one row for each setting that the server knows, in
// order, then the properties of the database.
var settingsText = func() string {
	var b strings.Builder
	b.WriteString("SELECT name, value FROM (VALUES ")
	for i, name := range readBack {
		fmt.Fprintf(&b, "(%d, '%s', current_setting('%s', true)), ", i, name, name)
	}
	b.WriteString("(1000, 'datcollate', (SELECT datcollate::text FROM pg_database WHERE datname = current_database())), ")
	b.WriteString("(1001, 'schema', current_schema()::text)) AS s (n, name, value) WHERE value IS NOT NULL ORDER BY n")
	return b.String()
}()

// Settings implements driver.Engine.
func (e *engine) Settings(ctx context.Context) ([]driver.Setting, error) {
	opts := e.session.opts
	var list []driver.Setting
	err := e.WithSpare(ctx, func(c *sqlstore.Conn) error {
		list = []driver.Setting{
			{Name: "durability", Value: string(opts.Durability)},
			{Name: "embedded", Value: strconv.FormatBool(e.server != nil)},
			{Name: "memory", Value: e.memory()},
		}
		rows, err := c.QueryOnce(ctx, settingsText)
		if err != nil {
			return err
		}
		for rows.Next() {
			var s driver.Setting
			if err := rows.Scan(&s.Name, &s.Value); err != nil {
				return errors.Join(err, rows.Close())
			}
			list = append(list, s)
		}
		return errors.Join(rows.Err(), rows.Close())
	})
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	return list, nil
}

// memory is the budget in bytes, or that there is none.
func (e *engine) memory() string {
	if e.server == nil {
		return "not applied: it is the server's own"
	}
	return strconv.FormatInt(e.session.opts.Memory, 10)
}
