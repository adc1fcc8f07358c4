package duckdb_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// Each of these planned wrongly, or failed, when it had been prepared while the
// table held small numbers only.
var growing = []string{
	"SELECT block FROM grown WHERE name = 'a' ORDER BY block DESC LIMIT 1",
	"SELECT block FROM grown WHERE block = ?",
	"SELECT block FROM grown WHERE block >= ? ORDER BY name",
	"SELECT max(block) FROM grown",
	"SELECT CAST(sum(block) AS BIGINT) - (SELECT coalesce(CAST(sum(block) AS BIGINT), 0) FROM grown WHERE block < ?) FROM grown",
	"SELECT block FROM grown GROUP BY block ORDER BY 1 DESC",
	"SELECT a.block FROM grown AS a JOIN grown AS b ON a.block = b.block ORDER BY a.block DESC LIMIT 1",
	"SELECT block FROM grown WHERE block IN (SELECT max(block) FROM grown)",
	"SELECT DISTINCT block FROM grown WHERE NOT (block < ?)",
	"SELECT block FROM grown AS g WHERE EXISTS (SELECT 1 FROM grown AS h WHERE h.block = g.block AND h.block > 0) ORDER BY block DESC",
}

// A statement prepared while a table is small must see its later rows, in the
// transaction that writes them as in others.
func TestPreparedBeforeTheTableGrew(t *testing.T) {
	e := openNew(t, driver.Options{Readers: 1})
	require.NoError(t, write(e, func(ctx context.Context, tx driver.Tx) error {
		_, err := tx.Exec(ctx, "CREATE TABLE grown (block BIGINT NOT NULL, name VARCHAR NOT NULL)")
		return err
	}))
	check := func(q driver.Querier, block int64, where string) {
		for _, text := range growing {
			var args []any
			for _, c := range text {
				if c == '?' {
					args = append(args, block)
				}
			}
			require.Equal(t, block, number(t, q, text, args...), "%s: %s", where, text)
		}
	}
	for i, block := range []int64{1, 2, 200, 1001, 70000, 1 << 40} {
		require.NoError(t, write(e, func(ctx context.Context, tx driver.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO grown VALUES (?, ?)", block, fmt.Sprint("x", i))
			require.NoError(t, err)
			_, err = tx.Exec(ctx, "UPDATE grown SET name = 'a'")
			check(tx, block, "writer")
			return err
		}))
		r := snapshot(t, e)
		check(r, block, "snapshot")
		require.NoError(t, r.Close())
		if i%2 == 1 {
			_, err := driver.Checkpoint(context.Background(), e, false)
			require.NoError(t, err)
		}
	}
}
