package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// session is what every connection is set to and checked for.
type session struct {
	opts     driver.Options
	schema   string // asked for, or ""
	settings string // statements that set the session
}

// readerPlans is plan_cache_mode of readers. A query's best plan depends on its
// values: a prepared statement's sixth run may get a generic plan, and of a
// query for a common and a rare attribute that took 1.5 s where the plan for
// the values takes 0.1. The writer's statements are short and always use the
// same index, and keep their plans.
const readerPlans = "force_custom_plan"

func newSession(opts driver.Options, schema string) *session {
	s := &session{opts: opts, schema: schema}
	list := []string{
		"SET client_encoding = 'UTF8'",
		"SET lock_timeout = " + strconv.FormatInt(min(max(opts.LockTimeout.Milliseconds(), 1), math.MaxInt32), 10),
		// Only where the server knows it; see serverSettings.
		"SELECT set_config('jit', 'off', false) WHERE current_setting('jit', true) IS NOT NULL",
	}
	if opts.Durability == driver.Durable {
		// A server may be set to more than on, to wait for a standby.
		list = append(list, "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit', true) = 'off'")
	} else {
		list = append(list, "SET synchronous_commit = off")
	}
	if opts.ReadOnly {
		list = append(list, "SET default_transaction_read_only = on")
	}
	if schema != "" {
		list = append(list, "SET search_path = "+pgx.Identifier{schema}.Sanitize())
	}
	s.settings = strings.Join(list, "; ")
	return s
}

// setup implements sqlstore.Config.Setup.
func (s *session) setup(ctx context.Context, c *sqlstore.Conn, write bool) error {
	text := s.settings
	if !write {
		text += "; SELECT set_config('plan_cache_mode', '" + readerPlans + "', false) WHERE current_setting('plan_cache_mode', true) IS NOT NULL"
	}
	if err := c.ExecOnce(ctx, text); err != nil {
		return fmt.Errorf("set up the session: %w", err)
	}
	got, err := readState(ctx, c)
	if err != nil {
		return err
	}
	if err := s.checkServer(got); err != nil {
		return err
	}
	if got.schema != "" {
		return nil
	}
	return s.makeSchema(ctx, c)
}

// state is what a session reads back. A setting that the server does not know
// is empty: there are servers that speak Postgres's protocol and sync always.
type state struct {
	fsync, fullPageWrites, synchronousCommit string
	encoding                                 string
	schema                                   string // where tables are made; "" if nowhere
}

func readState(ctx context.Context, c *sqlstore.Conn) (st state, err error) {
	const text = `SELECT coalesce(current_setting('fsync', true), ''),
	coalesce(current_setting('full_page_writes', true), ''),
	coalesce(current_setting('synchronous_commit', true), ''),
	coalesce(current_setting('server_encoding', true), ''),
	coalesce(current_schema(), '')`
	rows, err := c.QueryOnce(ctx, text)
	if err != nil {
		return st, fmt.Errorf("read back the session: %w", err)
	}
	if rows.Next() {
		err = rows.Scan(&st.fsync, &st.fullPageWrites, &st.synchronousCommit, &st.encoding, &st.schema)
	}
	return st, errors.Join(err, rows.Err(), rows.Close())
}

// checkServer refuses a server that does not do what the durability level and
// the contract's text need.
func (s *session) checkServer(got state) error {
	if got.encoding != "" && got.encoding != "UTF8" {
		return fmt.Errorf("%w: a database with encoding %s; make one with ENCODING 'UTF8'", driver.ErrUnsupported, got.encoding)
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
		return fmt.Errorf("make schema %q: %w", s.schema, err)
	}
	got, err := readState(ctx, c)
	if err == nil && got.schema == "" {
		err = fmt.Errorf("schema %q cannot be used; GRANT USAGE, CREATE on it to this user", s.schema)
	}
	return err
}

// lockWriters takes the advisory lock of the current schema until the
// transaction ends. The first key, "varv" in ASCII, sets our locks apart from
// those of other programs in the database; the second is the schema's id.
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
