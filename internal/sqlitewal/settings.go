// Package sqlitewal has the common parts of the SQLite and libSQL engines
// beyond database/sql: the pragmas of a connection, reading them back, and the
// checkpointer of the write-ahead log. It links neither library, because the
// two cannot be in one binary.
package sqlitewal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

const (
	defaultPageSize = 4 << 10 // of a new database

	// The log sizes at which a checkpoint starts: SQLite's default for
	// wal_autocheckpoint in frames (one page each), and Varve's default in
	// bytes.
	inlineFrames  = 1000
	backgroundLog = 16 << 20
)

// Params documents the URL parameters of this family of engines.
var Params = map[string]string{
	"page_size": "page size in bytes of a new database, a power of two from 512 to 65536 (default 4096)",
	"mmap":      "bytes of the database that each connection maps into memory, at least 0 (default 0)",
}

// Config has the settings of a database.
type Config struct {
	Options  driver.Options
	PageSize int // of a new database; later the actual size
	MMap     int64
}

// NewConfig checks options and parameters and completes them with defaults.
func NewConfig(opts driver.Options) (Config, error) {
	cfg := Config{Options: opts.WithDefaults(), PageSize: defaultPageSize}
	if cfg.Options.Checkpoint == "" {
		cfg.Options.Checkpoint = driver.Background
	}
	cfg.Options.Concurrency = cmp.Or(cfg.Options.Concurrency, runtime.GOMAXPROCS(0))
	if cfg.Options.WALFrames == 0 && cfg.Options.Checkpoint == driver.Inline {
		cfg.Options.WALFrames = inlineFrames
	}
	for _, name := range slices.Sorted(maps.Keys(opts.Params)) {
		if err := cfg.set(name, opts.Params[name]); err != nil {
			return Config{}, driver.Of(driver.ErrURL, fmt.Errorf("parameter %s: %w", name, err))
		}
	}
	return cfg, nil
}

func (cfg *Config) set(name, value string) error {
	n, err := strconv.ParseInt(value, 10, 64)
	switch {
	case Params[name] == "":
		return fmt.Errorf("unknown; known are %v", slices.Sorted(maps.Keys(Params)))
	case err != nil:
		return fmt.Errorf("want a number, got %q", value)
	case name == "page_size":
		if n < 512 || n > 65536 || n&(n-1) != 0 {
			return fmt.Errorf("want a power of two from 512 to 65536, got %d", n)
		}
		cfg.PageSize = int(n)
	case name == "mmap":
		if n < 0 {
			return fmt.Errorf("want bytes, got %d", n)
		}
		cfg.MMap = n
	}
	return nil
}

// synchronous is the pragma's value for each durability level.
var synchronous = map[driver.Durability]string{
	driver.Durable: "FULL",
	driver.Relaxed: "NORMAL",
	driver.Unsafe:  "OFF",
}

// Setup sets the pragmas of a new connection. The order matters: page_size has
// no effect after WAL mode has created the file.
func (cfg *Config) Setup(ctx context.Context, c *sqlstore.Conn, write bool) error {
	for _, text := range cfg.pragmas(c.Seat(), write) {
		if err := cfg.patiently(ctx, func() error { return c.Mapped(setPragma(ctx, c, text)) }); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	if cfg.Options.ReadOnly {
		return nil
	}
	mode, err := c.QueryText(ctx, "PRAGMA journal_mode")
	if err == nil && mode != "wal" {
		err = fmt.Errorf("%w: SQLite's write-ahead log is off (%q); is the database on a network file system? Use a local one", driver.ErrUnsupported, mode)
	}
	return err
}

// patiently retries f while the database is locked. SQLite does not wait by
// itself when two connections convert a new file to WAL mode.
func (cfg *Config) patiently(ctx context.Context, f func() error) error {
	for deadline := time.Now().Add(cfg.Options.LockTimeout); ; {
		err := f()
		if !errors.Is(err, driver.ErrLocked) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(time.Millisecond):
		}
	}
}

func (cfg *Config) pragmas(seat int, write bool) []string {
	o := cfg.Options
	list := []string{fmt.Sprintf("PRAGMA busy_timeout = %d", o.LockTimeout.Milliseconds())}
	if !o.ReadOnly {
		list = append(list,
			fmt.Sprintf("PRAGMA page_size = %d", cfg.PageSize),
			"PRAGMA journal_mode = WAL",
			"PRAGMA synchronous = "+synchronous[o.Durability],
			fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", cfg.autocheckpoint()),
		)
	}
	list = append(list,
		fmt.Sprintf("PRAGMA cache_size = -%d", cfg.cacheKiB(seat)),
		fmt.Sprintf("PRAGMA mmap_size = %d", cfg.MMap),
		"PRAGMA temp_store = FILE",
	)
	if !write {
		list = append(list, "PRAGMA query_only = ON")
	}
	return list
}

func (cfg *Config) autocheckpoint() int {
	if cfg.Options.Checkpoint == driver.Inline {
		return cfg.Options.WALFrames
	}
	return 0
}

// firstShare is the cache size of the readers that are used first, as a
// multiple of another connection's. It is limited because these readers may be
// views that are kept open.
const firstShare = 4

// cacheKiB divides the memory budget. SQLite has a page cache for each
// connection: the writer gets one half, and the readers that are used first get
// most of the other.
func (cfg *Config) cacheKiB(seat int) int64 {
	o := cfg.Options
	half, first, others := o.Memory/2/1024, min(o.Concurrency, o.Readers), 1 // the spare connection's share
	switch {
	case o.ReadOnly:
		half, others = 2*half, 2
	case seat == sqlstore.Writer:
		return half
	}
	share := half / int64(firstShare*first+o.Readers-first+others)
	if seat >= 0 && seat < first {
		share *= firstShare
	}
	return max(share, 256)
}

// setPragma sets a pragma by a query, because libSQL refuses pragmas in Exec,
// and discards the row that some pragmas return.
func setPragma(ctx context.Context, c *sqlstore.Conn, text string) error {
	rows, err := c.QueryOnce(ctx, text)
	if err != nil {
		return err
	}
	for rows.Next() {
		continue
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return rows.Close()
}

// readBack lists the pragmas that Settings reads.
var readBack = []string{
	"journal_mode", "synchronous", "page_size", "cache_size", "mmap_size",
	"wal_autocheckpoint", "busy_timeout", "temp_store", "auto_vacuum",
	"locking_mode", "encoding",
}

// settings reads the settings back from the writer's connection.
func (cfg *Config) settings(ctx context.Context, db *sqlstore.DB) ([]driver.Setting, error) {
	var list []driver.Setting
	err := db.WithWriter(ctx, func(c *sqlstore.Conn) error {
		for _, name := range readBack {
			value, err := c.QueryText(ctx, "PRAGMA "+name)
			if err != nil {
				return fmt.Errorf("read back %s: %w", name, err)
			}
			list = append(list, driver.Setting{Name: name, Value: value})
		}
		return nil
	})
	if !cfg.Options.ReadOnly { // a reader commits nothing
		list = append(list,
			driver.Setting{Name: "durability", Value: string(cfg.Options.Durability)},
			driver.Setting{Name: "checkpoint", Value: string(cfg.Options.Checkpoint)},
			driver.Setting{Name: "checkpoint_frames", Value: strconv.Itoa(cfg.Options.WALFrames)},
			driver.Setting{Name: "sync_call", Value: "fsync"},
		)
	}
	list = append(list,
		driver.Setting{Name: "memory", Value: strconv.FormatInt(cfg.Options.Memory, 10)},
		// The cache sizes of an active reader, and of a further one.
		driver.Setting{Name: "reader_cache_size", Value: strconv.FormatInt(-cfg.cacheKiB(0), 10)},
		driver.Setting{Name: "further_reader_cache_size", Value: strconv.FormatInt(-cfg.cacheKiB(cfg.Options.Readers), 10)},
		driver.Setting{Name: "readers", Value: strconv.Itoa(cfg.Options.Readers)},
		driver.Setting{Name: "concurrency", Value: strconv.Itoa(cfg.Options.Concurrency)},
	)
	return list, err
}
