package sqlstore

import (
	"context"
	"errors"
	"strings"
)

// SQLite adds to a DB the maintenance that SQLite and its relatives do by SQL.
type SQLite struct{ *DB }

// Check implements driver.Checker. It runs PRAGMA integrity_check, which checks
// every tree, and every index against its table, and stops after 100
// contradictions.
func (db SQLite) Check(ctx context.Context, report func(problem string) bool) (did string, err error) {
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

// Reindex implements driver.Reindexer.
func (db SQLite) Reindex(ctx context.Context) error {
	return db.WithWriter(ctx, func(c *Conn) error { return c.ExecOnce(ctx, "REINDEX") })
}
