package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/varvedb/varve/internal/sqlstore"
)

// Check implements driver.Checker. Every table is read, which compares the
// checksums of its pages where the server keeps them, as an embedded one does. On a
// server that has the extension amcheck, and where it may be made, its functions
// look at tables and indexes in a transaction that is rolled back. Without it the
// pages of indexes are compared as queries read them.
func (e *engine) Check(ctx context.Context, report func(problem string) bool) (did string, err error) {
	err = e.onSpare(ctx, func(c *sqlstore.Conn) error {
		on, err := c.QueryText(ctx, "SHOW data_checksums")
		if err != nil {
			return err
		}
		did = "data_checksums " + on + ", by reading every table"
		tables, err := list(ctx, c, "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename")
		for _, table := range tables {
			if err == nil {
				_, err = c.QueryText(ctx, "SELECT count(t.*::text)::text FROM "+table+" AS t")
			}
		}
		if err != nil {
			return err
		}
		available, err := c.QueryText(ctx, "SELECT count(*)::text FROM pg_available_extensions WHERE name = 'amcheck'")
		if err != nil || available == "0" {
			return err
		}
		did += "; amcheck"
		return amcheck(ctx, c, report)
	})
	return did, err
}

// amcheck runs the extension's functions and leaves nothing.
func amcheck(ctx context.Context, c *sqlstore.Conn, report func(problem string) bool) (err error) {
	for _, text := range []string{"BEGIN READ WRITE", "CREATE EXTENSION IF NOT EXISTS amcheck"} {
		if err := c.ExecOnce(ctx, text); err != nil {
			// No right to make it: what can be read was read.
			return c.ExecOnce(context.WithoutCancel(ctx), "ROLLBACK")
		}
	}
	defer func() { err = errors.Join(err, c.ExecOnce(context.WithoutCancel(ctx), "ROLLBACK")) }()
	messages, err := list(ctx, c, `SELECT c.relname || ': ' || v.msg FROM pg_class AS c, LATERAL verify_heapam(c.oid) AS v
WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace`)
	for _, m := range messages {
		if !report(m) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	indexes, err := list(ctx, c, `SELECT i.indexrelid::text FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
JOIN pg_am AS a ON a.oid = c.relam WHERE a.amname = 'btree' AND c.relnamespace = current_schema()::regnamespace`)
	for _, index := range indexes {
		if err != nil {
			return err
		}
		_, err = c.QueryText(ctx, fmt.Sprintf("SELECT bt_index_check(%s, true)::text", index))
	}
	return err
}

// Reindex implements driver.Reindexer.
func (e *engine) Reindex(ctx context.Context) error {
	return e.WithWriter(ctx, func(c *sqlstore.Conn) error {
		tables, err := list(ctx, c, "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename")
		for _, table := range tables {
			if err == nil {
				err = c.ExecOnce(ctx, "REINDEX TABLE "+table)
			}
		}
		return err
	})
}

func list(ctx context.Context, c *sqlstore.Conn, text string) (values []string, err error) {
	rows, err := c.QueryOnce(ctx, text)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var value string
		if err := rows.Scan(&value); err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, c.Mapped(rows.Err())
}
