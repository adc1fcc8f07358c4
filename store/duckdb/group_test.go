package duckdb_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// TestRowGroups: new rows go into groups of 4,096 rows, also in a database from
// before, whose larger groups stay.
func TestRowGroups(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "varve.duckdb")
	const before, added = 3 * 8192, 2*4096 + 1
	db, err := sql.Open("duckdb", path)
	require.NoError(t, err)
	_, err = db.Exec("CREATE TABLE t (a BIGINT PRIMARY KEY); INSERT INTO t SELECT range FROM range(?)", before)
	require.NoError(t, err)
	require.NoError(t, db.Close())

	e, err := open(path, driver.Options{})
	require.NoError(t, err)
	var rows []any
	for a := range int64(added) {
		rows = append(rows, before+a)
	}
	table := &driver.Table{Name: "t", Columns: []driver.Column{{Name: "a", Type: driver.Int}}}
	require.NoError(t, write(e, func(ctx context.Context, tx driver.Tx) error { return tx.Insert(ctx, table, rows) }))
	res, err := driver.Checkpoint(ctx, e, true)
	require.NoError(t, err)
	require.False(t, res.Busy)
	sizes := groups(t, e)
	require.EqualValues(t, before, sizes[0])
	require.Greater(t, len(sizes), 2, "the last group takes no more")
	require.LessOrEqual(t, slices.Max(sizes[1:]), int64(4096))
	require.NoError(t, e.Close())

	e, err = open(path, driver.Options{ReadOnly: true})
	require.NoError(t, err)
	r, err := e.View(ctx)
	require.NoError(t, err)
	sum, err := driver.QueryInt(ctx, r, "SELECT CAST(sum(a) AS BIGINT) FROM t")
	require.NoError(t, err)
	require.EqualValues(t, (before+added)*(before+added-1)/2, sum)
	require.NoError(t, r.Close())
	require.NoError(t, e.Close())
}

// groups returns the number of rows of each row group of t, as of the first call:
// the statement is kept, and its answer with it.
func groups(t *testing.T, e driver.Engine) (list []int64) {
	t.Helper()
	ctx := context.Background()
	r, err := e.View(ctx)
	require.NoError(t, err)
	const text = "SELECT CAST(sum(count) AS BIGINT) FROM pragma_storage_info('t') WHERE segment_type = 'BIGINT' GROUP BY row_group_id ORDER BY row_group_id"
	require.NoError(t, driver.QueryRows(ctx, r, text, nil, func(rows driver.Rows) error {
		var n int64
		err := rows.Scan(&n)
		list = append(list, n)
		return err
	}))
	require.NoError(t, r.Close())
	return list
}
