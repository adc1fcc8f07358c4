package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/storetest"
)

// citusURL is the variable with the URL of the coordinator of a Citus cluster,
// whose user may make schemas: postgres://user@host/db. With citus=false in it
// the tests run on that server alone.
const citusURL = "POSTGRES_TEST_CITUS_URL"

var citusSchemas atomic.Int64

// newCitusURL returns the URL of a new schema of a real cluster.
func newCitusURL(t testing.TB) string {
	t.Helper()
	base := os.Getenv(citusURL)
	if base == "" {
		t.Skipf("needs a Citus coordinator: give its URL in %s", citusURL)
	}
	name := fmt.Sprintf("citus%d_%d", os.Getpid(), citusSchemas.Add(1))
	u, err := url.Parse(base)
	require.NoError(t, err)
	if !u.Query().Has(paramCitus) {
		base = with(t, base, paramCitus, "true")
	}
	u.RawQuery = ""
	t.Cleanup(func() { pgtest.Exec(t, u.String(), "DROP SCHEMA IF EXISTS "+name+" CASCADE") })
	return with(t, base, "schema", name)
}

// TestCitusConformance runs the suites on a real cluster; few shards make it quick.
func TestCitusConformance(t *testing.T) {
	newCitusURL(t)
	storetest.Run(t, storetest.Harness{NewURL: newCitusURL, Server: true, Checks: 2, Layouts: []string{"arkiv", "compact"}})
}

// fakeCitus is run in a database to make it look like a coordinator's.
//
//go:embed testdata/citus.sql
var fakeCitus string

// newFakeCitus returns the URL of a database with the functions of Citus, which record
// their calls and spread nothing. With what Citus does to a commit and to a view it has
// nothing to do: that is tested by hand, and by TestCitusConformance.
func newFakeCitus(t testing.TB) string {
	t.Helper()
	own := newDatabase(t, fmt.Sprintf("citus_%d", citusSchemas.Add(1)), "")
	pgtest.Exec(t, own, fakeCitus)
	return own
}

// with returns a URL with one more parameter.
func with(t testing.TB, rawURL, name, value string) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	require.NoError(t, err)
	query := u.Query()
	query.Set(name, value)
	u.RawQuery = query.Encode()
	return u.String()
}

// openEntities opens a store, and closes it when the test ends.
func openEntities(t testing.TB, rawURL, layout string) (*store.Entities, error) {
	t.Helper()
	db, err := store.Open(t.Context(), rawURL, nil)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db.Entities(t.Context(), &store.EntityOptions{Layout: layout})
}

// applyOne applies a block with one new entity.
func applyOne(t testing.TB, ents *store.Entities, block uint64) {
	t.Helper()
	_, err := ents.Apply(t.Context(), entity.Block{Number: block, Ops: []entity.Op{{
		Kind: entity.Create, Key: entity.Key{byte(block)}, BTL: 100, Content: []byte("x"), ContentType: "text/plain",
		NumericAttributes: map[string]uint64{"n": block},
	}}})
	require.NoError(t, err)
}

// TestCitusSpreads: a layout's large tables are spread when the store is made, all with
// the shards of the numbers, and each write transaction raises these everywhere.
func TestCitusSpreads(t *testing.T) {
	want := map[string][]string{
		"arkiv": {
			"varve_commit_shards by shard with none",
			"payloads by entity_key with varve_commit_shards",
			"string_attributes by entity_key with varve_commit_shards",
			"numeric_attributes by entity_key with varve_commit_shards",
		},
		"compact": {
			"varve_commit_shards by shard with none",
			"contents by no with varve_commit_shards",
			"entity_keys by id with varve_commit_shards",
			"current_versions by id with varve_commit_shards",
			"closed_versions by id with varve_commit_shards",
		},
	}
	for layout, calls := range want {
		t.Run(layout, func(t *testing.T) {
			plain := newFakeCitus(t)
			ents, err := openEntities(t, with(t, plain, "citus", "true"), layout)
			require.NoError(t, err)
			got := pgtest.Exec(t, plain, "SELECT string_agg(call, E'\\n' ORDER BY n) FROM citus_calls")
			require.Equal(t, calls, strings.Split(got, "\n"))
			require.Equal(t, "4", pgtest.Exec(t, plain, "SELECT shards FROM varve_commit"))
			for block := uint64(1); block <= 3; block++ {
				before := pgtest.Exec(t, plain, "SELECT number FROM varve_commit")
				applyOne(t, ents, block)
				require.NotEqual(t, before, pgtest.Exec(t, plain, "SELECT number FROM varve_commit"))
			}
			require.NoError(t, ents.Flush(t.Context()))
			require.Equal(t, "4", pgtest.Exec(t, plain,
				"SELECT count(*) FROM varve_commit_shards AS s JOIN varve_commit AS c ON c.number = s.number"))
			for block := uint64(1); block <= 3; block++ {
				snap, err := ents.At(t.Context(), block)
				require.NoError(t, err)
				n, err := snap.Count(t.Context(), nil)
				require.NoError(t, err)
				require.Equal(t, block, n)
				require.NoError(t, snap.Close())
			}
		})
	}
}

// TestCitusTorn: a commit that is not on all machines is not read, and no write
// follows it. Once the machines agree, waiting readers and writers go on.
func TestCitusTorn(t *testing.T) {
	plain := newFakeCitus(t)
	spread := with(t, plain, "citus", "true")
	ents, err := openEntities(t, with(t, spread, "lock_timeout", "2s"), "arkiv")
	require.NoError(t, err)
	patient, err := openEntities(t, with(t, spread, "lock_timeout", "1m"), "arkiv")
	require.NoError(t, err)
	applyOne(t, patient, 1)
	for _, change := range []string{"1", "-1"} {
		one := "UPDATE varve_commit_shards SET number = number + %s WHERE shard = (SELECT shard FROM varve_commit_shards ORDER BY shard LIMIT 1)"
		pgtest.Exec(t, plain, fmt.Sprintf(one, change))
		_, err = ents.At(t.Context(), store.Head)
		require.ErrorIs(t, err, driver.ErrLocked)
		require.ErrorContains(t, err, "not all machines")
		_, err = ents.Apply(t.Context(), entity.Block{Number: 2})
		require.ErrorIs(t, err, driver.ErrLocked)

		heads := make(chan error, 1)
		go func() {
			_, err := patient.Head(t.Context())
			heads <- err
		}()
		pgtest.Exec(t, plain, fmt.Sprintf(one, "-("+change+")"))
		require.NoError(t, <-heads)
		head, err := patient.Head(t.Context())
		require.NoError(t, err)
		require.Equal(t, uint64(1), head.Number)
	}
	applyOne(t, patient, 2)
}

// TestCitusSilent: machines that do not answer are not said to differ.
func TestCitusSilent(t *testing.T) {
	plain := newFakeCitus(t)
	ents, err := openEntities(t, with(t, with(t, plain, "citus", "true"), "lock_timeout", "300ms"), "arkiv")
	require.NoError(t, err)
	holder, err := pgconn.Connect(t.Context(), plain)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, holder.Close(context.Background())) })
	_, err = holder.Exec(t.Context(), "BEGIN; LOCK TABLE varve_commit_shards").ReadAll()
	require.NoError(t, err)
	_, err = ents.At(t.Context(), store.Head)
	require.ErrorIs(t, err, driver.ErrLocked)
	require.ErrorContains(t, err, "could not be asked")
	require.NotContains(t, err.Error(), "not all machines")
}

// TestCitusRefused: what cannot be opened is refused with what to do.
func TestCitusRefused(t *testing.T) {
	refused := func(t *testing.T, rawURL, layout string, sentinel error, parts ...string) {
		t.Helper()
		_, err := openEntities(t, rawURL, layout)
		require.ErrorIs(t, err, sentinel)
		for _, part := range parts {
			require.ErrorContains(t, err, part)
		}
	}
	plain := newFakeCitus(t)
	spread := with(t, plain, "citus", "true")
	refused(t, spread, "simple", store.ErrUnsupported, "layout simple on several machines")
	refused(t, with(t, pgtest.NewURL(t), "citus", "true"), "", store.ErrUnsupported, "CREATE EXTENSION citus", "leave the parameter out")

	_, err := openEntities(t, with(t, plain, "schema", "here"), "compact")
	require.NoError(t, err)
	refused(t, with(t, spread, "schema", "here"), "compact", store.ErrLayout, "not spread", "leave that parameter out")
	_, err = openEntities(t, with(t, spread, "schema", "there"), "compact")
	require.NoError(t, err)
	refused(t, with(t, plain, "schema", "there"), "", store.ErrUnsupported, "add citus=true")

	pgtest.Exec(t, plain, "SET allow_system_table_mods = on; UPDATE citus_workers SET result = 'fsync off, full_page_writes on'")
	refused(t, spread, "", store.ErrUnsupported, "w1:5432 says fsync off")
	pgtest.Exec(t, plain, "SET allow_system_table_mods = on; UPDATE pg_dist_local_group SET groupid = 2")
	refused(t, spread, "", store.ErrUnsupported, "worker 2", "coordinator")
	pgtest.Exec(t, plain, "SET allow_system_table_mods = on; UPDATE pg_dist_local_group SET groupid = 0; UPDATE pg_extension SET extversion = '12.1-1' WHERE extname = 'citus'")
	refused(t, spread, "", store.ErrUnsupported, "Citus 12.1-1", "13 or later")

	for _, rawURL := range []string{with(t, plain, "citus", "maybe"), "postgres:///" + t.TempDir() + "?citus=true"} {
		_, err := store.Open(t.Context(), rawURL, nil)
		require.ErrorContains(t, err, "citus")
	}
}
