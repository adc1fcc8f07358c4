package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/varvedb/varve/internal/pgembed"
	"github.com/varvedb/varve/store/driver"
)

// startServer starts the server of a directory.
func startServer(ctx context.Context, t target, opts driver.Options) (*pgembed.Server, error) {
	if st, err := os.Stat(t.dir); err == nil && !st.IsDir() {
		return nil, fmt.Errorf("%q is a file; the store of a server that Varve starts is a directory", t.dir)
	}
	if _, err := os.Stat(filepath.Join(t.dir, "data", "PG_VERSION")); opts.ReadOnly && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %q", driver.ErrNotExist, t.dir)
	} else if opts.ReadOnly && err != nil {
		return nil, err
	}
	return pgembed.Start(ctx, pgembed.Config{
		Dir:      t.dir,
		BinDir:   t.binDir,
		Settings: serverSettings(opts),
	})
}

// serverSettings are the settings of an embedded server that are not
// PostgreSQL's defaults, or that a comparison depends on.
func serverSettings(opts driver.Options) []driver.Setting {
	fsync := onOff(opts.Durability != driver.Unsafe)
	set := []driver.Setting{
		// Durability. Pages written in part by a power failure are mended from
		// their copy in the log, so full_page_writes goes with fsync.
		{Name: "fsync", Value: fsync},
		{Name: "full_page_writes", Value: fsync},
		{Name: "synchronous_commit", Value: onOff(opts.Durability == driver.Durable)},
		// SQLite calls fsync; fdatasync, the default, would do less.
		{Name: "wal_sync_method", Value: "fsync"},
		// This server has no replicas, so the log only needs the records for
		// recovery.
		{Name: "wal_level", Value: "minimal"},
		{Name: "max_wal_senders", Value: "0"},

		// Readers, writer, statistics, and a few for people with psql.
		{Name: "max_connections", Value: strconv.Itoa(opts.Readers + 10)},

		// Compiling a plan takes longer than running most of ours.
		{Name: "jit", Value: "off"},
		// A random read costs about as much as a sequential one on flash and in
		// memory; 4, the default, is for rotating disks.
		{Name: "random_page_cost", Value: "1.1"},

		// Closing a version is an update of an indexed column, never a HOT one,
		// so tables and indexes grow until vacuum has been there. The defaults
		// wait for a fifth of a table to be dead. And they look once a minute,
		// while a query over a new table without statistics may take seconds.
		{Name: "autovacuum", Value: "on"},
		{Name: "track_counts", Value: "on"}, // autovacuum goes by these counts
		{Name: "autovacuum_naptime", Value: "5s"},
		{Name: "autovacuum_max_workers", Value: "2"},
		{Name: "autovacuum_vacuum_scale_factor", Value: "0.05"},
		{Name: "autovacuum_vacuum_insert_scale_factor", Value: "0.1"},
		{Name: "autovacuum_analyze_scale_factor", Value: "0.05"},
		// Giving the end of a table back to the file system locks out readers.
		{Name: "vacuum_truncate", Value: "off"},
		// It reads the clock twice for each page read, and no client asks for
		// the times.
		{Name: "track_io_timing", Value: "off"},
	}
	return append(set, memorySettings(opts.Memory)...)
}

// memorySettings shares out the memory budget. Half is the cache of pages, as
// it is with SQLite. The rest is for the processes' own use: up to five sorts
// and hash tables at a time, building an index, and vacuum.
func memorySettings(budget int64) []driver.Setting {
	share := func(part, atLeast int64) string {
		return strconv.FormatInt(max(budget/part, atLeast)>>10, 10) + "kB"
	}
	return []driver.Setting{
		{Name: "shared_buffers", Value: share(2, 1<<20)},
		{Name: "work_mem", Value: share(32, 1<<20)},
		{Name: "maintenance_work_mem", Value: share(8, 4<<20)},
		{Name: "autovacuum_work_mem", Value: share(16, 4<<20)},
		// The planner's estimate of the cache. The budget, not the memory of
		// the machine: plans should not depend on the host.
		{Name: "effective_cache_size", Value: share(1, 8<<20)},
	}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
