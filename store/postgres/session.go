package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// session is what every connection is set to and checked for.
type session struct {
	opts        driver.Options
	schema      string // asked for, or ""
	citus       bool   // see cluster
	application string // name in the server's statistics
}

// settings returns the statements that set a session or, with local, the transaction in
// which they run.
func (s *session) settings(local bool) []string {
	set, readOnly := "SET ", "SET default_transaction_read_only = on"
	if local {
		set, readOnly = "SET LOCAL ", "SET LOCAL transaction_read_only = on"
	}
	config := func(name, value, condition string) string {
		return fmt.Sprintf("SELECT set_config('%s', '%s', %t) WHERE current_setting('%[1]s', true) %[4]s", name, value, local, condition)
	}
	list := []string{
		set + "client_encoding = 'UTF8'",
		set + "lock_timeout = " + strconv.FormatInt(min(max(s.opts.LockTimeout.Milliseconds(), 1), math.MaxInt32), 10),
		// Only where the server knows it; see readState.
		config("jit", "off", "IS NOT NULL"),
	}
	if s.application != "" {
		list = append(list, set+"application_name = "+pgx.Identifier{s.application}.Sanitize())
	}
	if s.opts.Durability == driver.Durable {
		// A server may be set to more than on, to wait for a standby.
		list = append(list, config("synchronous_commit", "on", "= 'off'"))
	} else {
		list = append(list, set+"synchronous_commit = off")
	}
	if s.opts.ReadOnly {
		list = append(list, readOnly)
	}
	if s.schema != "" {
		list = append(list, set+"search_path = "+pgx.Identifier{s.schema}.Sanitize())
	}
	for _, setting := range citusSettings {
		if s.citus {
			list = append(list, set+setting)
		}
	}
	return list
}

// setup implements sqlstore.Config.Setup.
func (s *session) setup(ctx context.Context, c *sqlstore.Conn, _ bool) error {
	pooled, err := behindPooler(ctx, c)
	if err != nil {
		return fmt.Errorf("look for a pooler: %w", err)
	}
	settings := s.settings(pooled)
	if c.Seat() == sqlstore.Spare { // for long statements, never for clients' queries
		settings = append(settings, lift(pooled))
	}
	if pooled {
		c.Share(settings)
	} else if err := c.ExecOnce(ctx, strings.Join(settings, "; ")); err != nil {
		return fmt.Errorf("set up the session: %w", err)
	}
	return c.InSession(ctx, func(c *sqlstore.Conn) error { return s.check(ctx, c) })
}

// behindPooler reports whether a pooler is between, before any setting is made. A
// server tells a client which process serves it, so that the client can cancel
// statements. A pooler must invent that number, and the process itself knows
// the real one. Whether a pooler keeps a session for one client cannot be known
// for sure: one that does not may have a single connection, or happen to give
// the same one again. So no pooler is trusted with a session.
func behindPooler(ctx context.Context, c *sqlstore.Conn) (pooled bool, err error) {
	pid, err := c.QueryText(ctx, "SELECT pg_backend_pid()")
	if err != nil {
		return false, err
	}
	err = withConn(c, func(conn *pgx.Conn) error {
		pooled = pid != strconv.FormatUint(uint64(conn.PgConn().PID()), 10)
		return nil
	})
	return pooled, err
}

// check reads the session back, and makes the schema if it has to.
func (s *session) check(ctx context.Context, c *sqlstore.Conn) error {
	got, err := readState(ctx, c)
	if err != nil {
		return err
	}
	if err := s.checkServer(got); err != nil {
		return err
	}
	if got.schema != "" && (s.schema == "" || got.schema == s.schema) {
		return nil
	}
	return s.makeSchema(ctx, c)
}

// state is the settings that a session reads back. A setting that the server
// does not know is empty: there are servers that speak Postgres's protocol and
// always sync.
type state struct {
	fsync, fullPageWrites, synchronousCommit string
	encoding                                 string
	schema                                   string // where tables are made; "" if nowhere
	spread                                   bool   // tables lie on several machines; see cluster
}

func readState(ctx context.Context, c *sqlstore.Conn) (st state, err error) {
	const text = `SELECT coalesce(current_setting('fsync', true), ''),
	coalesce(current_setting('full_page_writes', true), ''),
	coalesce(current_setting('synchronous_commit', true), ''),
	coalesce(current_setting('server_encoding', true), ''),
	coalesce(current_schema(), ''),
	to_regclass('varve_commit_shards') IS NOT NULL`
	rows, err := c.QueryOnce(ctx, text)
	if err != nil {
		return st, fmt.Errorf("read back the session: %w", err)
	}
	if rows.Next() {
		err = rows.Scan(&st.fsync, &st.fullPageWrites, &st.synchronousCommit, &st.encoding, &st.schema, &st.spread)
	}
	return st, errors.Join(err, rows.Err(), rows.Close())
}

// checkServer refuses a server that lacks a setting which the durability level
// or the contract needs.
func (s *session) checkServer(got state) error {
	if got.encoding != "" && got.encoding != "UTF8" {
		return fmt.Errorf("%w: a database with encoding %s; make one with ENCODING 'UTF8'", driver.ErrUnsupported, got.encoding)
	}
	if got.spread && !s.citus {
		return fmt.Errorf("%w: the tables in schema %q lie on several machines; add %s=true to the URL", driver.ErrUnsupported, got.schema, paramCitus)
	}
	if s.opts.Durability == driver.Unsafe {
		return nil
	}
	for _, setting := range []struct{ name, value string }{
		{"fsync", got.fsync},
		{"full_page_writes", got.fullPageWrites},
	} {
		if setting.value == "off" {
			return fmt.Errorf("%w: durability %s on a server with %s=off; turn it on in postgresql.conf",
				driver.ErrUnsupported, s.opts.Durability, setting.name)
		}
	}
	if s.opts.Durability == driver.Durable && got.synchronousCommit == "off" {
		return fmt.Errorf("%w: durability durable: the server keeps synchronous_commit off", driver.ErrUnsupported)
	}
	return nil
}

// makeSchema makes the schema asked for when there is none to work in.
func (s *session) makeSchema(ctx context.Context, c *sqlstore.Conn) error {
	switch {
	case s.schema == "":
		return fmt.Errorf("the server's search_path names no schema that exists; add the parameter %s to the URL", paramSchema)
	case s.opts.ReadOnly:
		return fmt.Errorf("schema %q: %w", s.schema, driver.ErrNotExist)
	}
	// Two processes may do it at once; then one is refused, and it exists.
	err := c.ExecOnce(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{s.schema}.Sanitize())
	if err != nil && !errors.Is(err, driver.ErrConflict) {
		if code(err) == codeRefused {
			err = fmt.Errorf("%w: it needs CREATE ON DATABASE, or that somebody makes the schema for it, with USAGE and CREATE", err)
		}
		return fmt.Errorf("make schema %q: %w", s.schema, err)
	}
	got, err := readState(ctx, c)
	if err == nil && got.schema != s.schema {
		err = fmt.Errorf("schema %q cannot be used; GRANT USAGE, CREATE on it to this user", s.schema)
	}
	return err
}

// lockWriters takes the advisory lock of the current schema until the
// transaction ends. The first key, "varv" in ASCII, separates our locks from
// the locks of other programs in the database; the second is the schema's id.
const lockWriters = `SELECT pg_advisory_xact_lock(1986097782, oid::int4)
FROM pg_namespace
WHERE nspname = current_schema()`

// lock implements sqlstore.Config.AfterBegin: it keeps out the writers of other
// processes. Waiting ends with the context or the session's lock_timeout.
func lock(ctx context.Context, c *sqlstore.Conn) error {
	n, err := c.Exec(ctx, lockWriters)
	if err == nil && n != 1 {
		err = errors.New("the session's schema is gone")
	}
	return err
}

// lost returns the reason why a transaction cannot be committed, as far as the
// client knows it. Postgres answers COMMIT in a transaction with a failed statement by rolling back,
// without an error.
func lost(c *sqlstore.Conn) error {
	err := withConn(c, func(conn *pgx.Conn) error {
		switch {
		case conn.IsClosed():
			return sql.ErrConnDone
		case conn.PgConn().TxStatus() == 'E':
			return errors.New("an earlier statement failed; the transaction was rolled back")
		}
		return nil
	})
	if errors.Is(err, sql.ErrConnDone) {
		return errors.New("the connection was lost and with it the transaction")
	}
	return err
}

// withConn runs f on pgx's own connection.
func withConn(c *sqlstore.Conn, f func(*pgx.Conn) error) error {
	return c.Raw(func(native any) error {
		conn, ok := native.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("connection of type %T", native)
		}
		return f(conn.Conn())
	})
}
