package postgres

import (
	"encoding/binary"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/internal/statement"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// TestFindPages: a search for many values reads the pages with these values,
// and not the table, however large the run of a merge is before statistics are
// gathered, and however many pages the caller would take.
func TestFindPages(t *testing.T) {
	const run, least = 20_000, 2_000 // pages
	ctx := t.Context()
	url := pgtest.NewURL(t)
	db, err := store.Open(ctx, url, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	_, err = db.Entities(ctx, &store.EntityOptions{Layout: "compact"})
	require.NoError(t, err)
	schema, err := schemas.Entities("compact", string(driver.Postgres))
	require.NoError(t, err)
	sql := statement.New(schema.Statements)
	key := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

	for _, counted := range []bool{false, true} {
		pgtest.Exec(t, url, "INSERT INTO postings SELECT 1, int4send(n), decode(repeat('00', 1900), 'hex') FROM generate_series(1, "+strconv.Itoa(run)+") AS n ON CONFLICT DO NOTHING")
		if counted {
			pgtest.Exec(t, url, "ANALYZE postings")
		}
		for _, values := range []int{1, 3, 12, 64, 256} {
			var args []any
			for i := range values {
				at := uint32(i * run / values)
				args = append(args, int64(1), key(at), key(at+1))
			}
			r, err := db.Engine().Snapshot(ctx)
			require.NoError(t, err)
			n := pgtest.Pages(t, r, sql.List("find_pages", values), append(args, int64(math.MaxInt64))...)
			require.NoError(t, r.Close())
			t.Logf("%d values, counted %t: %d pages", values, counted, n)
			require.Less(t, n, int64(least), "for %d values", values)
		}
	}
}
