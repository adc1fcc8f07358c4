package duckdb

import (
	"context"
	"errors"
	"os"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// Check implements driver.Checker. DuckDB has no check, but a checksum on every
// block that is compared when the block is read; so every column of every table
// is read.
func (e *engine) Check(ctx context.Context, _ func(problem string) bool) (did string, err error) {
	err = e.WithSpare(ctx, func(c *sqlstore.Conn) error {
		// One view of all, because a checkpoint may number the rows again.
		if err := c.ExecOnce(ctx, "BEGIN TRANSACTION READ ONLY"); err != nil {
			return err
		}
		tables, err := c.QueryTexts(ctx, "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() ORDER BY table_name")
		for _, table := range tables {
			if err == nil {
				err = e.readTable(ctx, c, quote(table))
			}
		}
		return errors.Join(err, c.ExecOnce(context.WithoutCancel(ctx), "ROLLBACK"))
	})
	if err != nil {
		return "", err
	}
	return "block checksums, by reading all of them that tables have", nil
}

// pageShare is how many pages of rows fill the memory. DuckDB needs more than
// twice a page, because it doubles the room for long values as it reads them.
const pageShare = 8

// readTable reads every column of a table, page by page, because DuckDB holds
// 2,048 whole rows at once: 8,000 payloads of 16 KB did not fit a memory of 96
// MiB. It estimates the length of a row as if the database had only this table.
func (e *engine) readTable(ctx context.Context, c *sqlstore.Conn, table string) error {
	st, err := os.Stat(e.file.path)
	if err != nil {
		return err
	}
	rows, err := driver.QueryInt(ctx, c, "SELECT count(*) FROM "+table)
	page := max(1, rows/(1+pageShare*st.Size()/e.cfg.Options.Memory))
	for row := int64(-1); err == nil; row += page - 1 {
		row, err = driver.QueryInt(ctx, c, "SELECT coalesce(min(rowid), -1) FROM "+table+" WHERE rowid > ?", row)
		if err != nil || row < 0 {
			break
		}
		_, err = driver.QueryInt(ctx, c, "SELECT count(hash(t)) FROM "+table+" AS t WHERE rowid BETWEEN ? AND ?", row, row+page-1)
	}
	return err
}
