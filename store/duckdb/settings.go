package duckdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// readBack lists the settings that Settings reads from the engine.
var readBack = []string{
	"memory_limit", "threads",
	"immediate_transaction_mode", "disabled_optimizers", "storage_compatibility_version",
	"default_block_size", "preserve_insertion_order", "default_order",
	"default_null_order", "default_collation", "autoinstall_known_extensions",
	"autoload_known_extensions",
}

// Settings implements driver.Engine.
func (e *engine) Settings(ctx context.Context) ([]driver.Setting, error) {
	var list []driver.Setting
	err := e.WithSpare(ctx, func(c *sqlstore.Conn) error {
		for _, name := range readBack {
			value, err := c.QueryText(ctx, "SELECT CAST(current_setting('"+name+"') AS VARCHAR)")
			if err != nil {
				return fmt.Errorf("read back %s: %w", name, err)
			}
			list = append(list, driver.Setting{Name: name, Value: value})
		}
		format, err := c.QueryText(ctx, "SELECT tags['storage_version'] FROM duckdb_databases() WHERE database_name = current_database()")
		if err != nil {
			return fmt.Errorf("read back the file's format: %w", err)
		}
		list = append(list, driver.Setting{Name: "storage_version", Value: format})
		return nil
	})
	o := e.cfg.Options
	return append(list,
		driver.Setting{Name: "durability", Value: string(o.Durability)},
		driver.Setting{Name: "sync_call", Value: "fsync"},
		driver.Setting{Name: "checkpoint", Value: string(driver.Background)},
		driver.Setting{Name: "checkpoint_threshold", Value: strconv.FormatInt(e.cfg.CheckpointThreshold, 10)},
		driver.Setting{Name: "memory", Value: strconv.FormatInt(o.Memory, 10)},
		driver.Setting{Name: "readers", Value: strconv.Itoa(o.Readers)},
		driver.Setting{Name: "concurrency", Value: strconv.Itoa(o.Concurrency)},
	), err
}

// Stats implements driver.Engine.
func (e *engine) Stats(context.Context) (driver.Stats, error) {
	if err := e.CheckOpen(); err != nil {
		return driver.Stats{}, err
	}
	database, err := size(e.file.path)
	if err != nil {
		return driver.Stats{}, err
	}
	log, err := size(e.file.log())
	if errors.Is(err, fs.ErrNotExist) { // a checkpoint has emptied it
		log, err = 0, nil
	}
	count, took := e.checkpoints.count.Load(), time.Duration(e.checkpoints.nanos.Load())
	return driver.Stats{DatabaseBytes: &database, WALBytes: &log, Checkpoints: &count, CheckpointTime: &took}, err
}

func size(path string) (int64, error) {
	st, err := os.Stat(path) // opens nothing: see taken
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}
