package duckdb

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/varvedb/varve/store/driver"
)

// params documents the URL parameters of this engine.
var params = map[string]string{
	"threads":              "threads that run queries, at least 1, shared by all connections (default one for each CPU, and no more than one for each 125 MB of memory)",
	"checkpoint_threshold": "bytes of the log from which a checkpoint follows a commit, at least 65536 (default 16 MiB)",
	"storage_version":      "format of a new file, v1.5.0 say, or latest (default v1.0.0, which every release since reads and which takes less time and memory to write)",
	"temp_directory":       "directory for what does not fit the memory budget (default beside the database, its name with .tmp)",
}

const (
	// The next write waits for a checkpoint. So checkpoints come often and are
	// short (docs/engines.md). The value is DuckDB's own.
	checkpointThreshold    = 16 << 20
	minCheckpointThreshold = 64 << 10

	// defaultStorage is the format of new files, DuckDB's own default too. Later ones are
	// an eighth smaller, but their checkpoints take longer and more memory: commits of
	// compact took 1.6 times the processor time (DuckDB 1.5.5), the longest several times as
	// long, and with payloads of 50 KB 64 MiB did not do. A file keeps the format it has.
	defaultStorage = "v1.0.0"

	// minMemory is the smallest budget, in bytes, that is accepted. Below it
	// the indexes of a few hundred thousand rows already do not fit.
	minMemory = 64 << 20

	// threadMemory is the least for each thread, in bytes, by DuckDB's documentation:
	// https://duckdb.org/docs/current/guides/performance/environment
	threadMemory = 125_000_000
)

// config is the settings of a database.
type config struct {
	Options             driver.Options
	Threads             int
	CheckpointThreshold int64 // bytes
	StorageVersion      string
	TempDirectory       string
}

// newConfig checks options and parameters and completes them with defaults.
func newConfig(opts driver.Options) (config, error) {
	cfg := config{Options: opts.WithDefaults(), CheckpointThreshold: checkpointThreshold, StorageVersion: defaultStorage}
	cfg.Threads = max(1, min(runtime.NumCPU(), int(cfg.Options.Memory/threadMemory)))
	cfg.Options.Concurrency = cmp.Or(cfg.Options.Concurrency, runtime.GOMAXPROCS(0))
	switch o := cfg.Options; {
	case o.Durability != driver.Durable:
		return config{}, fmt.Errorf("durability %s: %w: DuckDB syncs every commit; leave it at %s", o.Durability, driver.ErrUnsupported, driver.Durable)
	case o.Checkpoint != "" || o.WALFrames != 0:
		return config{}, fmt.Errorf("checkpoint policy: %w: DuckDB checkpoints by itself; leave the policy out and set checkpoint_threshold", driver.ErrUnsupported)
	case o.Memory < minMemory:
		return config{}, fmt.Errorf("memory of %d MiB: %w: DuckDB keeps indexes in it and needs at least %d MiB", o.Memory>>20, driver.ErrUnsupported, minMemory>>20)
	}
	for _, name := range slices.Sorted(maps.Keys(opts.Params)) {
		if err := cfg.set(name, opts.Params[name]); err != nil {
			return config{}, fmt.Errorf("parameter %s: %w", name, err)
		}
	}
	return cfg, nil
}

func (cfg *config) set(name, value string) error {
	switch name {
	case "threads":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return fmt.Errorf("want a number of threads, at least 1, got %q", value)
		}
		cfg.Threads = n
	case "checkpoint_threshold":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < minCheckpointThreshold {
			return fmt.Errorf("want bytes, at least %d, got %q", minCheckpointThreshold, value)
		}
		cfg.CheckpointThreshold = n
	case "storage_version":
		if value == "" {
			return fmt.Errorf("want a version, such as v1.5.0, or latest, got none")
		}
		cfg.StorageVersion = value
	case "temp_directory":
		if value == "" {
			return fmt.Errorf("want a directory, got none")
		}
		cfg.TempDirectory = value
	default:
		return fmt.Errorf("unknown; known are %v", slices.Sorted(maps.Keys(params)))
	}
	return nil
}

// staleOptimizer plans by the values that a table has when a statement is
// prepared. Statements are prepared once and kept while the table grows, and
// DuckDB 1.5.5 still keeps their plans: a sort over a column that had 8-bit
// values then returns block 134 for block 1670. Compressed materialization
// sorts in this way, has no statistics without the optimizer, and stays on.
// Planning for each execution would cost more: 0.1 ms of 0.2 for the smallest
// query, a tenth of a typical one.
const staleOptimizer = "statistics_propagation"

// rowGroup is how many rows DuckDB keeps together. A checkpoint writes the last
// group of a table with an index again, whole and out of memory. With DuckDB's own
// 122,880 rows that were up to 688 MB of payloads of 5.6 KB, with 8,192 rows 46 MB,
// with 4,096 rows it is 23 MB. Fewer rows would make every checkpoint look at more
// groups (docs/engines.md).
const rowGroup = 4096

// attached is the name by which statements see the database.
const attached = "varve"

// attach returns the statement that opens a database: the size of row groups is an
// option of ATTACH alone. The type keeps DuckDB from looking for an extension that
// knows the file.
func (cfg *config) attach(path string) string {
	access := "READ_WRITE"
	if cfg.Options.ReadOnly {
		access = "READ_ONLY"
	}
	return "ATTACH '" + strings.ReplaceAll(path, "'", "''") + "' AS " + attached +
		" (TYPE duckdb, " + access + ", ROW_GROUP_SIZE " + strconv.Itoa(rowGroup) + ")"
}

// dsn returns the connection string of an engine that has a database in memory, next
// to which it attaches the file at a path. Extensions are never looked for or
// fetched: nothing that Varve runs needs one.
func (cfg *config) dsn(path string) string {
	values := url.Values{
		"memory_limit":                  {bytesText(cfg.Options.Memory)},
		"threads":                       {strconv.Itoa(cfg.Threads)},
		"checkpoint_threshold":          {bytesText(logCap * cfg.CheckpointThreshold)},
		"immediate_transaction_mode":    {"true"}, // BEGIN fixes the view; else the first read of a table does
		"disabled_optimizers":           {staleOptimizer},
		"storage_compatibility_version": {cfg.StorageVersion},
		"temp_directory":                {cmp.Or(cfg.TempDirectory, path+".tmp")},
		// What needs an order asks for it; keeping any other takes memory:
		// https://duckdb.org/docs/current/guides/performance/oom
		"preserve_insertion_order":     {"false"},
		"autoinstall_known_extensions": {"false"},
		"autoload_known_extensions":    {"false"},
		"allow_community_extensions":   {"false"},
		"allow_persistent_secrets":     {"false"},
	}
	return "?" + values.Encode()
}

func bytesText(n int64) string { return strconv.FormatInt(n, 10) + "B" }
