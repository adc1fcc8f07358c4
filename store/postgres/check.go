package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// Check implements driver.Engine. Every table is read, which compares the
// checksums of its pages where the server keeps them, as an embedded one does. On a
// server that has the extension amcheck its functions look at tables and compare
// indexes with them. Nobody need have made the extension where this user may: it is
// made in a transaction that is rolled back.
func (e *engine) Check(ctx context.Context, report func(problem string) bool) (did string, err error) {
	var on string
	err = e.WithSpare(ctx, func(c *sqlstore.Conn) (err error) {
		on, err = c.QueryText(ctx, "SHOW data_checksums")
		return err
	})
	if err != nil {
		return "", err
	}
	var done []string
	err = e.WithSpare(ctx, func(c *sqlstore.Conn) error {
		unread := readTables(ctx, c, report)
		switch {
		case unread == nil:
			done = append(done, "data_checksums "+on+", by reading every table")
		case code(unread) != codeRefused:
			return unread
		}
		available, err := c.QueryText(ctx, "SELECT count(*)::text FROM pg_available_extensions WHERE name = 'amcheck'")
		switch {
		case err != nil:
		case available == "0":
			done = append(done, "no amcheck on this server: its indexes are not compared with the tables")
		default:
			if err = amcheck(ctx, c, report); err == nil {
				done = append(done, "amcheck")
			}
		}
		return errors.Join(unread, err)
	})
	return strings.Join(done, "; "), err
}

// codeRefused is the code of what a user has no right to.
const codeRefused = "42501"

// readTables reads every table. One that the user may not read does not keep it from
// the others.
func readTables(ctx context.Context, c *sqlstore.Conn, report func(problem string) bool) error {
	tables, err := c.QueryTexts(ctx, "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename")
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

// amcheck runs the extension's functions and leaves nothing.
func amcheck(ctx context.Context, c *sqlstore.Conn, report func(problem string) bool) (err error) {
	defer func() {
		err = errors.Join(explainAmcheck(err), c.ExecOnce(context.WithoutCancel(ctx), "ROLLBACK"))
	}()
	if err := beginAmcheck(ctx, c); err != nil {
		return err
	}
	messages, err := c.QueryTexts(ctx, `SELECT c.relname || ': ' || v.msg
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_am AS a ON a.oid = c.relam,
LATERAL verify_heapam(c.oid) AS v
WHERE c.relkind = 'r' AND a.amname = 'heap' AND n.nspname = current_schema()`)
	for _, m := range messages {
		if !report(m) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	indexes, err := c.QueryTexts(ctx, `SELECT i.indexrelid::text
FROM pg_index AS i
JOIN pg_class AS c ON c.oid = i.indexrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_am AS a ON a.oid = c.relam
WHERE i.indisvalid AND c.relkind = 'i' AND a.amname = 'btree' AND n.nspname = current_schema()`)
	for _, index := range indexes {
		if err == nil {
			err = c.ExecOnce(ctx, "SAVEPOINT one")
		}
		if err != nil {
			return err
		}
		// With true every row must be in the index, not only the other way round.
		if _, err = c.QueryText(ctx, fmt.Sprintf("SELECT bt_index_check(%s, true)::text", index)); errors.Is(err, driver.ErrCorrupt) {
			if !report(err.Error()) {
				return nil
			}
			err = c.ExecOnce(ctx, "ROLLBACK TO SAVEPOINT one")
		}
	}
	return err
}

// beginAmcheck begins a transaction in which the extension's functions are found,
// whatever schema it is in.
func beginAmcheck(ctx context.Context, c *sqlstore.Conn) error {
	made, err := c.QueryText(ctx, "SELECT count(*)::text FROM pg_extension WHERE extname = 'amcheck'")
	if err != nil {
		return err
	}
	begin := []string{"BEGIN"}
	if made == "0" {
		begin = []string{"BEGIN READ WRITE", "CREATE EXTENSION amcheck"}
	}
	for _, text := range append(begin, `SELECT set_config('search_path', concat_ws(', ', nullif(current_setting('search_path'), ''), quote_ident(n.nspname)), true)
FROM pg_extension AS e
JOIN pg_namespace AS n ON n.oid = e.extnamespace
WHERE e.extname = 'amcheck'`) {
		if err := c.ExecOnce(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// explainAmcheck adds what to do where the extension cannot be used: it is not made and
// this user may not make it (42501), or a standby cannot (0A000, 25006); or the user
// may not call it (42501) or not look into its schema (42883); or its library is gone
// (58P01).
func explainAmcheck(err error) error {
	switch code(err) {
	case codeRefused, "0A000", "25006", "42883", "58P01":
		return fmt.Errorf("indexes were not compared with tables by amcheck: %w; a superuser has to CREATE EXTENSION amcheck, on the primary, "+
			"and to grant this user USAGE on its schema and EXECUTE on bt_index_check(regclass, boolean) and verify_heapam", err)
	}
	return err
}

// Reindex implements driver.Engine.
func (e *engine) Reindex(ctx context.Context) error {
	return e.WithWriter(ctx, func(c *sqlstore.Conn) error {
		tables, err := c.QueryTexts(ctx, "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename")
		for _, table := range tables {
			if err == nil {
				err = reindex(ctx, c, table)
			}
		}
		return err
	})
}

// reindex makes the indexes of one table anew. On a connection that is shared a
// transaction is open already.
func reindex(ctx context.Context, c *sqlstore.Conn, table string) error {
	script := liftTimeouts + "; REINDEX TABLE " + table
	if !c.Shared() {
		script = "BEGIN; " + script + "; COMMIT"
	}
	err := c.ExecOnce(ctx, script)
	if err != nil && !c.Shared() {
		err = errors.Join(err, c.ExecOnce(context.WithoutCancel(ctx), "ROLLBACK"))
	}
	return err
}
