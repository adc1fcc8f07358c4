package postgres

import (
	"context"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// amcheckURL is the variable with the URL of a superuser's database on a running
// server that has amcheck in its packages; the embedded one has not.
const amcheckURL = "POSTGRES_TEST_AMCHECK_URL"

// check runs the engine's check.
func check(t *testing.T, e *engine) (did string, problems []string, err error) {
	t.Helper()
	did, err = e.Check(t.Context(), func(problem string) bool {
		problems = append(problems, problem)
		return true
	})
	return did, problems, err
}

// requireUnchecked: the check could not be made, found nothing, and does not say that
// it ran.
func requireUnchecked(t *testing.T, e *engine, code string, ran string) {
	t.Helper()
	did, problems, err := check(t, e)
	require.Error(t, err)
	require.NotErrorIs(t, err, driver.ErrCorrupt)
	var native *pgconn.PgError
	require.ErrorAs(t, err, &native)
	require.Equal(t, code, native.Code, "%v", err)
	require.Empty(t, problems)
	require.NotContains(t, did, ran)
}

func TestCheckNotMade(t *testing.T) {
	rawURL := pgtest.NewURL(t)
	e := openTest(t, rawURL, nil)
	execute(t, e, "CREATE TABLE big AS SELECT n, repeat('x', 100) AS s FROM generate_series(1, 50000) AS n", "CREATE TABLE small (n bigint)")
	did, problems, err := check(t, e)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Contains(t, did, "by reading every table")
	require.Contains(t, did, "amcheck")

	t.Run("statement_timeout", func(t *testing.T) {
		e := openTest(t, rawURL, nil)
		require.NoError(t, e.WithSpare(t.Context(), func(c *sqlstore.Conn) error { return c.ExecOnce(t.Context(), "SET statement_timeout = 1") }))
		requireUnchecked(t, e, codeCancelled, "reading")
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
		requireUnchecked(t, openTest(t, rawURL, nil), "57P01", "reading")
		<-killed
	})
	t.Run("locked", func(t *testing.T) {
		tx, err := e.Begin(t.Context())
		require.NoError(t, err)
		defer tx.Rollback()
		_, err = tx.Exec(t.Context(), "LOCK TABLE small IN ACCESS EXCLUSIVE MODE")
		require.NoError(t, err)
		e := openTest(t, rawURL, func(o *driver.Options) { o.LockTimeout = 1 })
		requireUnchecked(t, e, "55P03", "reading")
	})
	t.Run("not permitted", func(t *testing.T) {
		u := withFew(t, rawURL, "GRANT SELECT ON small TO few")
		e, err := openURL(u, func(o *driver.Options) { o.ReadOnly = true })
		require.NoError(t, err)
		defer func() { require.NoError(t, e.Close()) }()
		requireUnchecked(t, e, codeRefused, "reading")
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

// TestCheckWithoutRights: a store that a user may not read is neither damaged nor no
// store.
func TestCheckWithoutRights(t *testing.T) {
	rawURL := pgtest.NewURL(t)
	db, err := store.Open(t.Context(), rawURL, nil)
	require.NoError(t, err)
	_, err = db.Entities(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, db.Close())
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

// TestCheckLackingIndex: rows that are not in an index are found by amcheck in whatever
// schema the extension is, by a user who may call it; to another it is said that they
// were not looked for.
func TestCheckLackingIndex(t *testing.T) {
	super := os.Getenv(amcheckURL)
	if super == "" {
		t.Skipf("needs a server with amcheck, which the embedded one has not: give the URL of a superuser's database in %s", amcheckURL)
	}
	const schema = "Check-me"
	clean := `DROP SCHEMA IF EXISTS "Check-me" CASCADE; DROP SCHEMA IF EXISTS "am check" CASCADE; DROP EXTENSION IF EXISTS amcheck`
	pgtest.Exec(t, super, clean)
	defer pgtest.Exec(t, super, clean)
	u, err := url.Parse(super)
	require.NoError(t, err)
	query := u.Query()
	query.Set("schema", schema)
	u.RawQuery = query.Encode()
	own := u.String()
	e := openTest(t, own, nil)
	execute(t, e, createAll, `CREATE INDEX "t on n" ON t (n)`)
	write(t, e, func(ctx context.Context, tx driver.Tx) { require.NoError(t, tx.Insert(ctx, all, makeRows(100))) })
	few, err := openURL(withFew(t, own, "GRANT SELECT ON t TO few"), func(o *driver.Options) { o.ReadOnly = true })
	require.NoError(t, err)
	defer func() { require.NoError(t, few.Close()) }()
	requireSound := func(e *engine) {
		t.Helper()
		for range 2 { // what is prepared meets an extension that was made again
			did, problems, err := check(t, e)
			require.NoError(t, err)
			require.Empty(t, problems)
			require.True(t, strings.HasSuffix(did, "; amcheck"), did)
		}
	}
	requireSound(e)
	require.Equal(t, "0", pgtest.Exec(t, super, "SELECT count(*) FROM pg_extension WHERE extname = 'amcheck'"), "it leaves nothing")
	requireUnchecked(t, few, codeRefused, "amcheck")

	execute(t, e, `UPDATE pg_index SET indisready = false, indisvalid = false WHERE indexrelid = '"t on n"'::regclass`)
	execute(t, e, "INSERT INTO t SELECT decode(md5(i::text), 'hex'), i, i, '' FROM generate_series(1000, 1010) AS i")
	execute(t, e, `UPDATE pg_index SET indisready = true, indisvalid = true WHERE indexrelid = '"t on n"'::regclass`)
	requireFound := func(e *engine) {
		t.Helper()
		did, problems, err := check(t, e)
		require.NoError(t, err)
		require.Len(t, problems, 1)
		require.Contains(t, problems[0], "t on n")
		require.Contains(t, did, "amcheck")
	}
	requireFound(e)
	requireUnchecked(t, few, codeRefused, "amcheck")
	pgtest.Exec(t, super, `CREATE SCHEMA "am check"; CREATE EXTENSION amcheck SCHEMA "am check"`)
	requireFound(e)
	requireUnchecked(t, few, "42883", "amcheck") // it may not look into the schema
	pgtest.Exec(t, super, `GRANT USAGE ON SCHEMA "am check" TO few`)
	requireUnchecked(t, few, codeRefused, "amcheck")
	pgtest.Exec(t, super, `GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA "am check" TO few`)
	requireFound(few)
	require.NoError(t, e.Reindex(t.Context()))
	requireSound(e)
	requireSound(few)
}
