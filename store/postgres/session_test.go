package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/pgembed"
	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

func readOnly(o *driver.Options) { o.ReadOnly = true }

func withDurability(d driver.Durability) func(*driver.Options) {
	return func(o *driver.Options) { o.Durability = d }
}

func TestDurabilityOfServer(t *testing.T) {
	url := pgtest.NewURL(t)
	for d, want := range map[driver.Durability]string{driver.Durable: "on", driver.Relaxed: "off"} {
		got := settings(t, openTest(t, url, withDurability(d)))
		require.Equal(t, string(d), got["durability"])
		require.Equal(t, want, got["synchronous_commit"])
		require.Equal(t, "on", got["fsync"])
		require.Equal(t, "on", got["full_page_writes"])
		require.Equal(t, "false", got["embedded"])
		require.Contains(t, got["memory"], "not applied")
	}
	_, err := openURL(url, withDurability(driver.Unsafe))
	require.ErrorIs(t, err, driver.ErrUnsupported)
	require.ErrorContains(t, err, "a setting of the whole server")
	_, err = openURL(url, withDurability("eventual"))
	require.ErrorContains(t, err, `unknown durability "eventual"`)
}

// newDatabase makes a database of the shared server, and returns its URL.
func newDatabase(t testing.TB, name, options string) string {
	t.Helper()
	shared := pgtest.NewURL(t)
	pgtest.Exec(t, shared, "CREATE DATABASE "+name+" "+options)
	t.Cleanup(func() { pgtest.Exec(t, shared, "DROP DATABASE "+name+" WITH (FORCE)") })
	return pgtest.WithDatabase(t, shared, name)
}

// TestServerDefaults: durable sets synchronous_commit to on where the server
// has it off, and keeps stronger settings.
func TestServerDefaults(t *testing.T) {
	url := newDatabase(t, "defaults", "")
	for set, want := range map[string]string{"off": "on", "remote_apply": "remote_apply"} {
		pgtest.Exec(t, url, "ALTER DATABASE defaults SET synchronous_commit = "+set)
		e := openTest(t, url, nil)
		require.Equal(t, want, settings(t, e)["synchronous_commit"])
		require.NoError(t, e.Close())
	}
}

// TestServerWithoutSync: a durability that the server lacks is not promised.
func TestServerWithoutSync(t *testing.T) {
	dir := madeDir(t)
	server, err := pgembed.Start(t.Context(), pgembed.Config{Dir: dir, Settings: []driver.Setting{{Name: "full_page_writes", Value: "off"}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	for _, d := range []driver.Durability{driver.Durable, driver.Relaxed} {
		_, err = openURL(pgtest.URL(server, pgembed.Database), withDurability(d))
		require.ErrorIs(t, err, driver.ErrUnsupported)
		require.ErrorContains(t, err, "full_page_writes=off")
	}
}

func TestSchema(t *testing.T) {
	url := pgtest.NewURL(t)
	missing := strings.Replace(url, "schema=", "schema=Another+", 1)
	name := "Another " + schemaOf(t, openTest(t, url, nil))
	t.Cleanup(func() { pgtest.Exec(t, url, "DROP SCHEMA IF EXISTS "+pgx.Identifier{name}.Sanitize()+" CASCADE") })

	_, err := openURL(missing, readOnly)
	require.ErrorIs(t, err, driver.ErrNotExist)
	e := openTest(t, missing, nil)
	require.Equal(t, name, schemaOf(t, e))
	execute(t, e, createAll)
	require.Zero(t, count(t, openTest(t, missing, readOnly), "t"))

	r, err := openTest(t, url, nil).Snapshot(t.Context())
	require.NoError(t, err)
	_, err = r.Query(t.Context(), "SELECT k FROM t")
	require.ErrorContains(t, err, "does not exist", "another schema's table")
	require.NoError(t, r.Close())
}

func TestNoSchema(t *testing.T) {
	url := newDatabase(t, "noschema", "")
	pgtest.Exec(t, url, "DROP SCHEMA public")
	_, err := openURL(url, nil)
	require.ErrorContains(t, err, "add the parameter schema")
}

func TestEncoding(t *testing.T) {
	url := newDatabase(t, "ascii", "ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
	_, err := openURL(url, nil)
	require.ErrorIs(t, err, driver.ErrUnsupported)
	require.ErrorContains(t, err, "encoding SQL_ASCII")
}

func TestReadOnlyServer(t *testing.T) {
	url := pgtest.NewURL(t)
	execute(t, openTest(t, url, nil), createAll)
	e := openTest(t, url, readOnly)
	require.Equal(t, "on", settings(t, e)["default_transaction_read_only"])
	require.Zero(t, count(t, e, "t"))
	_, err := e.Begin(t.Context())
	require.ErrorIs(t, err, driver.ErrReadOnly)
}

// TestSessionSettings: a lock timeout below the server's unit does not become none.
func TestSessionSettings(t *testing.T) {
	e := openNew(t, func(o *driver.Options) { o.LockTimeout = time.Microsecond })
	got := settings(t, e)
	require.Equal(t, "1ms", got["lock_timeout"])
	require.Equal(t, "off", got["jit"])
	require.Equal(t, "auto", got["plan_cache_mode"])
}

// TestPlanByValue: with the hint a statement gets a plan for its arguments, and the
// setting ends with the transaction.
func TestPlanByValue(t *testing.T) {
	e := openNew(t, func(o *driver.Options) { o.Readers = 1 })
	const mode = "SELECT current_setting('plan_cache_mode')"
	read := func(byValue bool) (value string) {
		r, err := e.View(t.Context())
		require.NoError(t, err)
		require.NoError(t, driver.Statement{Text: mode, PlanByValue: byValue}.Row(t.Context(), r, nil, &value))
		require.NoError(t, r.Close())
		return value
	}
	require.Equal(t, "auto", read(false))
	require.Equal(t, "force_custom_plan", read(true))
	require.Equal(t, "auto", read(false))
	require.Equal(t, "force_custom_plan", read(true))
}

func TestStats(t *testing.T) {
	e := openNew(t, nil)
	require.True(t, e.Capabilities().MultiProcess)
	execute(t, e, createAll)
	s, err := e.Stats(t.Context())
	require.NoError(t, err)
	require.Positive(t, *s.WALBytes)
	for _, told := range []any{s.Checkpoints, s.CheckpointTime, s.CacheHits, s.CacheMisses} {
		require.NotNil(t, told)
	}
	require.Empty(t, s.EnginePIDs, "the server is not ours")
}

// TestLogUsed: log written since the last checkpoint is in use, and files that
// the server keeps for reuse are not.
func TestLogUsed(t *testing.T) {
	url := pgtest.NewURL(t)
	e := openTest(t, url, nil)
	used := func() int64 {
		s, err := e.Stats(t.Context())
		require.NoError(t, err)
		return *s.WALBytes
	}
	pgtest.Exec(t, url, "CREATE TABLE filled AS SELECT repeat(md5(n::text), 60) FROM generate_series(1, 5000) AS n")
	require.Greater(t, used(), int64(4<<20))
	pgtest.Exec(t, url, "CHECKPOINT")
	require.Less(t, used(), int64(1<<20), "a file of the log is 16 MB")
}

// asPoor makes a user who has no rights but to a URL's schema, and returns their URL.
func asPoor(t testing.TB, url string) string {
	t.Helper()
	name := pgx.Identifier{schemaOf(t, openTest(t, url, nil))}.Sanitize()
	pgtest.Exec(t, url, "CREATE ROLE poor LOGIN; GRANT ALL ON SCHEMA "+name+" TO poor")
	t.Cleanup(func() { pgtest.Exec(t, url, "DROP OWNED BY poor CASCADE; DROP ROLE poor") })
	return strings.Replace(url, "varve@", "poor@", 1)
}

// TestStatsWithoutRights: a user who may not see the log's directory is told as much.
func TestStatsWithoutRights(t *testing.T) {
	e := openTest(t, asPoor(t, pgtest.NewURL(t)), nil)
	execute(t, e, createAll)
	s, err := e.Stats(t.Context())
	require.NoError(t, err)
	require.Positive(t, *s.WALBytes)
	require.NotNil(t, s.DatabaseBytes)
	require.NotEmpty(t, settings(t, e))
}

// TestRefused: a user without rights is told which it needs.
func TestRefused(t *testing.T) {
	poor := asPoor(t, pgtest.NewURL(t))
	public := pgtest.WithDatabase(t, poor, pgembed.Database)
	db, err := store.Open(t.Context(), public, nil)
	require.NoError(t, err)
	_, err = db.Entities(t.Context(), nil)
	require.ErrorContains(t, err, "a new store needs CREATE ON SCHEMA")
	require.ErrorContains(t, err, "the parameter schema")
	require.NoError(t, db.Close())
	_, err = store.Open(t.Context(), public+"&schema=missing", nil)
	require.ErrorContains(t, err, "it needs CREATE ON DATABASE")
}
