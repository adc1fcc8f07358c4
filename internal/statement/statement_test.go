package statement_test

import (
	"context"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/statement"
	"github.com/varvedb/varve/store/driver"
	_ "github.com/varvedb/varve/store/sqlite"
)

// TestLists: each item of a list of any length is written once, and found.
func TestLists(t *testing.T) {
	ctx := context.Background()
	d, ok := driver.Lookup("sqlite")
	require.True(t, ok)
	options := driver.Options{Durability: driver.Unsafe}.WithDefaults()
	engine, err := d.Open(ctx, &url.URL{Scheme: "sqlite", Path: filepath.Join(t.TempDir(), "varve.db")}, options)
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	s := statement.New(map[string]string{
		"create": "CREATE TABLE t (a INTEGER, b INTEGER)",
		"insert": "INSERT INTO t VALUES {(?, ?)}",
		"find":   "SELECT a FROM t WHERE a IN ({?}) AND b > ?",
		"count":  "SELECT count(*) FROM t",
		"empty":  "DELETE FROM t",
		"wrong":  "SELECT nothing FROM t",
	})
	tx, err := engine.Begin(ctx)
	require.NoError(t, err)
	defer tx.Rollback()
	require.NoError(t, s.Exec(ctx, tx, "create"))
	for _, n := range []int{0, 1, 3, 4, 5, 64, 255, 256, 257, 700} {
		require.NoError(t, s.Exec(ctx, tx, "empty"))
		var rows, keys []any
		for i := range n {
			rows = append(rows, int64(i), int64(i%2))
			keys = append(keys, int64(i))
		}
		require.NoError(t, s.ExecIn(ctx, tx, "insert", 2, rows))
		all, err := s.Int(ctx, tx, "count")
		require.NoError(t, err)
		require.EqualValues(t, n, all)
		found := map[int64]bool{}
		require.NoError(t, s.EachIn(ctx, tx, "find", keys, []any{int64(0)}, func(rows driver.Rows) error {
			var a int64
			err := rows.Scan(&a)
			found[a] = true
			return err
		}))
		require.Len(t, found, n/2)
	}
	err = s.Each(ctx, tx, "wrong", nil, nil)
	require.ErrorContains(t, err, "wrong: ", "the statement's name is said")
}
