package postgres

import (
	"context"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/store/driver"
)

// openURL opens a database as store.Open does, with the URL's query as the engine's own parameters.
func openURL(rawURL string, change func(*driver.Options)) (*engine, error) {
	return openContext(context.Background(), rawURL, change)
}

func openContext(ctx context.Context, rawURL string, change func(*driver.Options)) (*engine, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	opts := driver.Options{Params: map[string]string{}}
	for name, values := range u.Query() {
		opts.Params[name] = values[0]
	}
	u.RawQuery = ""
	if change != nil {
		change(&opts)
	}
	e, err := open(ctx, u, opts.WithDefaults())
	if err != nil {
		return nil, err
	}
	return e.(*engine), nil
}

// openTest opens a URL and closes the database when the test ends.
func openTest(t testing.TB, rawURL string, change func(*driver.Options)) *engine {
	t.Helper()
	e, err := openURL(rawURL, change)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// openNew opens a new database on the shared server.
func openNew(t testing.TB, change func(*driver.Options)) *engine {
	t.Helper()
	return openTest(t, pgtest.NewURL(t), change)
}

// all has a column of each type.
var all = &driver.Table{Name: "t", Columns: []driver.Column{
	{Name: "k", Type: driver.Blob},
	{Name: "n", Type: driver.Int},
	{Name: "u", Type: driver.Uint},
	{Name: "s", Type: driver.Text},
}}

const createAll = `CREATE TABLE t (k bytea NOT NULL PRIMARY KEY, n bigint NOT NULL, u bigint NOT NULL, s text COLLATE "C" NOT NULL)`

// write runs f in a committed transaction.
func write(t testing.TB, e driver.Engine, f func(ctx context.Context, tx driver.Tx)) {
	t.Helper()
	ctx := context.Background()
	tx, err := e.Begin(ctx)
	require.NoError(t, err)
	defer tx.Rollback()
	f(ctx, tx)
	require.NoError(t, tx.Commit(ctx))
}

// execute runs statements in a committed transaction.
func execute(t testing.TB, e driver.Engine, statements ...string) {
	t.Helper()
	write(t, e, func(ctx context.Context, tx driver.Tx) {
		for _, text := range statements {
			_, err := tx.Exec(ctx, text)
			require.NoError(t, err)
		}
	})
}

// count returns the rows of a table in a new snapshot.
func count(t testing.TB, e driver.Engine, table string) int64 {
	t.Helper()
	r, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	n, err := driver.QueryInt(t.Context(), r, "SELECT count(*) FROM "+table)
	require.NoError(t, err)
	return n
}

// settings returns the settings by name.
func settings(t testing.TB, e driver.Engine) map[string]string {
	t.Helper()
	list, err := e.Settings(context.Background())
	require.NoError(t, err)
	values := map[string]string{}
	for _, s := range list {
		require.NotContains(t, values, s.Name)
		values[s.Name] = s.Value
	}
	return values
}

func schemaOf(t testing.TB, e driver.Engine) string {
	t.Helper()
	return settings(t, e)["schema"]
}
