package postgres

import (
	"context"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// check runs the engine's check.
func check(t *testing.T, e *engine) (did string, problems []string, err error) {
	t.Helper()
	did, err = e.Check(t.Context(), func(problem string) bool {
		problems = append(problems, problem)
		return true
	})
	return did, problems, err
}

// requireUnchecked: the check could not be made, found nothing, and does not say that it ran.
func requireUnchecked(t *testing.T, e *engine, want string) {
	t.Helper()
	did, problems, err := check(t, e)
	require.Error(t, err)
	require.NotErrorIs(t, err, driver.ErrCorrupt)
	require.Equal(t, want, code(err), "%v", err)
	require.Empty(t, problems)
	require.Empty(t, did)
}

func TestCheckNotMade(t *testing.T) {
	rawURL := pgtest.NewURL(t)
	e := openTest(t, rawURL, nil)
	execute(t, e, "CREATE TABLE big AS SELECT n, repeat('x', 100) AS s FROM generate_series(1, 50000) AS n", "CREATE TABLE small (n bigint)")
	did, problems, err := check(t, e)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Contains(t, did, "by reading every table")
	require.Contains(t, did, "pg_amcheck")

	t.Run("statement_timeout", func(t *testing.T) {
		e := openTest(t, rawURL, nil)
		require.NoError(t, e.WithSpare(t.Context(), func(c *sqlstore.Conn) error { return c.ExecOnce(t.Context(), "SET statement_timeout = 1") }))
		requireUnchecked(t, e, codeCancelled)
	})
	t.Run("terminated", func(t *testing.T) {
		tx, err := e.Begin(t.Context())
		require.NoError(t, err)
		defer tx.Rollback()
		_, err = tx.Exec(t.Context(), "LOCK TABLE small IN ACCESS EXCLUSIVE MODE")
		require.NoError(t, err)
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			const text = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
			for pgtest.Exec(t, rawURL, text) == "" && t.Context().Err() == nil {
			}
		}()
		requireUnchecked(t, openTest(t, rawURL, nil), "57P01")
		<-killed
	})
	t.Run("locked", func(t *testing.T) {
		tx, err := e.Begin(t.Context())
		require.NoError(t, err)
		defer tx.Rollback()
		_, err = tx.Exec(t.Context(), "LOCK TABLE small IN ACCESS EXCLUSIVE MODE")
		require.NoError(t, err)
		requireUnchecked(t, openTest(t, rawURL, func(o *driver.Options) { o.LockTimeout = 1 }), "55P03")
	})
	t.Run("not permitted", func(t *testing.T) {
		u := withFew(t, rawURL, "GRANT SELECT ON small TO few")
		requireUnchecked(t, openTest(t, u, func(o *driver.Options) { o.ReadOnly = true }), codeRefused)
	})
	t.Run("context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		did, err := e.Check(ctx, func(string) bool { return true })
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, driver.ErrCorrupt)
		require.Empty(t, did)
	})
}

// TestReindexAlone: Citus has its workers run all that comes with a REINDEX.
func TestReindexAlone(t *testing.T) {
	e := openNew(t, nil)
	execute(t, e, `CREATE FUNCTION alone(n int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS
		$$ BEGIN ASSERT current_query() NOT LIKE '%;%', current_query(); RETURN true; END $$`,
		"CREATE TABLE one AS SELECT 1 AS n", "CREATE INDEX ON one (alone(n))")
	require.NoError(t, e.Reindex(t.Context()))
}

// TestCheckWithoutRights: a store that a user may not read is neither damaged nor no store.
func TestCheckWithoutRights(t *testing.T) {
	rawURL := pgtest.NewURL(t)
	_, err := openEntities(t, rawURL, "")
	require.NoError(t, err)
	for _, grant := range []string{"SELECT 1", "GRANT SELECT ON varve_meta TO few", "GRANT SELECT ON varve_meta, varve_blocks, contents TO few"} {
		db, err := store.Open(t.Context(), withFew(t, rawURL, grant), &store.Options{ReadOnly: true})
		require.NoError(t, err)
		report, err := db.Check(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, store.NotChecked, report.Outcome)
		require.Empty(t, report.Findings)
		require.ErrorContains(t, report.Err(), "permission denied")
		require.NoError(t, db.Close())
	}
}

// withFew returns the URL of a user with few rights in a schema.
func withFew(t *testing.T, rawURL, grant string) string {
	t.Helper()
	drop := "DO $$ BEGIN IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'few') THEN DROP OWNED BY few; DROP ROLE few; END IF; END $$"
	pgtest.Exec(t, rawURL, drop)
	t.Cleanup(func() { pgtest.Exec(t, rawURL, drop) })
	pgtest.Exec(t, rawURL, "CREATE ROLE few LOGIN; DO $$ BEGIN EXECUTE 'GRANT USAGE ON SCHEMA ' || quote_ident(current_schema()) || ' TO few'; END $$")
	pgtest.Exec(t, rawURL, grant)
	u, err := url.Parse(rawURL)
	require.NoError(t, err)
	u.User = url.User("few")
	return u.String()
}
