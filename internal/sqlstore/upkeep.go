package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/varvedb/varve/store/driver"
)

// The methods of driver.Upkeep, for engines that have nothing of their own for them.

func (db *DB) unsupported(what string) error {
	return fmt.Errorf("%s on %s: %w", what, db.cfg.Info.Name, driver.ErrUnsupported)
}

// Checkpoint implements driver.Upkeep.
func (db *DB) Checkpoint(context.Context, bool) (driver.CheckpointResult, error) {
	return driver.CheckpointResult{}, db.unsupported("checkpoint")
}

// Tune implements driver.Upkeep.
func (db *DB) Tune(context.Context, []*driver.Table) error { return nil }

// Lease implements driver.Upkeep.
func (db *DB) Lease(context.Context) (driver.Lease, error) { return nil, db.unsupported("lease") }

// Probe implements driver.Upkeep.
func (db *DB) Probe(context.Context) error { return nil }

// Ended implements driver.Upkeep.
func (db *DB) Ended() <-chan struct{} { return nil }

// Check implements driver.Upkeep: it runs the PRAGMA integrity_check of SQLite and its kin, which
// compares every tree with itself and every index with its table, and stops after 100 contradictions.
func (db *DB) Check(ctx context.Context, report func(problem string) bool) (did string, err error) {
	if db.cfg.Info.Dialect != driver.SQLite {
		return "", nil
	}
	err = db.WithSpare(ctx, func(c *Conn) (err error) {
		rows, err := c.QueryOnce(ctx, "SELECT CAST(integrity_check AS BLOB) FROM pragma_integrity_check")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			var message []byte // it may quote damaged values, and need not be UTF-8
			if err := rows.Scan(&message); err != nil {
				return err
			}
			if text := strings.ToValidUTF8(string(message), "?"); text != "ok" && !report(text) {
				break
			}
		}
		if err := c.Mapped(rows.Err()); err != nil {
			return err
		}
		did = "integrity_check"
		return nil
	})
	return did, err
}

// Reindex implements driver.Upkeep, in SQL that SQLite and its kin know.
func (db *DB) Reindex(ctx context.Context) error {
	if db.cfg.Info.Dialect != driver.SQLite {
		return db.unsupported("reindex")
	}
	return db.WithWriter(ctx, func(c *Conn) error { return c.ExecOnce(ctx, "REINDEX") })
}
