package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// Check implements driver.Checker. Every table is read, which compares the checksums of its
// pages where the server keeps them, as an embedded one does.
func (e *engine) Check(ctx context.Context, report func(problem string) bool) (did string, err error) {
	err = e.WithSpare(ctx, func(c *sqlstore.Conn) error {
		on, err := c.QueryText(ctx, "SHOW data_checksums")
		if err == nil {
			err = readTables(ctx, c, report)
		}
		if err == nil {
			did = "data_checksums " + on + ", by reading every table; " +
				"indexes are not compared with the tables, which pg_amcheck does"
		}
		return err
	})
	return did, err
}

// tablesText lists the tables.
const tablesText = "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename"

// codeRefused is the code of a missing permission.
const codeRefused = "42501"

// readTables reads every table. One that the user may not read does not keep it from
// the others.
func readTables(ctx context.Context, c *sqlstore.Conn, report func(problem string) bool) error {
	tables, err := c.QueryTexts(ctx, tablesText)
	var refused []error
	for _, table := range tables {
		if err != nil {
			return err
		}
		_, err = c.QueryText(ctx, "SELECT count(t.*::text)::text FROM "+table+" AS t")
		switch {
		case code(err) == codeRefused:
			refused, err = append(refused, err), nil
		case errors.Is(err, driver.ErrCorrupt):
			if !report(fmt.Sprintf("table %s: %v", table, err)) {
				return nil
			}
			err = nil
		}
	}
	return errors.Join(append(refused, err)...)
}

// Reindex implements driver.Reindexer.
func (e *engine) Reindex(ctx context.Context) error {
	return e.WithWriter(ctx, func(c *sqlstore.Conn) error {
		tables, err := c.QueryTexts(ctx, tablesText)
		for i := 0; i < len(tables) && err == nil; i++ {
			err = reindex(ctx, c, tables[i])
		}
		return err
	})
}

// reindex rebuilds the indexes of one table. A shared connection has a
// transaction open already. Citus sends everything in the message of a REINDEX
// to its workers, so it is sent alone.
func reindex(ctx context.Context, c *sqlstore.Conn, table string) (err error) {
	scripts := []string{"BEGIN; " + liftTimeouts, "REINDEX TABLE " + table, "COMMIT"}
	if c.Shared() {
		scripts = []string{liftTimeouts, scripts[1]}
	}
	for i := 0; i < len(scripts) && err == nil; i++ {
		err = c.ExecOnce(ctx, scripts[i])
	}
	if err != nil && !c.Shared() {
		err = errors.Join(err, c.ExecOnce(context.WithoutCancel(ctx), "ROLLBACK"))
	}
	return err
}
