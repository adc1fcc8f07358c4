package sqlstore

import (
	"context"
	"errors"
	"strings"
)

// IntegrityCheck runs the PRAGMA of that name of SQLite, which compares every tree with itself and
// every index with its table, and stops after 100 contradictions.
func IntegrityCheck(ctx context.Context, db *DB, report func(problem string) bool) (did string, err error) {
	err = db.WithSpare(ctx, func(c *Conn) (err error) {
		rows, err := c.QueryOnce(ctx, "SELECT CAST(integrity_check AS BLOB) FROM pragma_integrity_check")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			var message []byte // it may quote what is damaged, and need not be UTF-8
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

// Reindex makes every index anew, in SQL that SQLite and its kin know.
func Reindex(ctx context.Context, db *DB) error {
	return db.WithWriter(ctx, func(c *Conn) error { return c.ExecOnce(ctx, "REINDEX") })
}
