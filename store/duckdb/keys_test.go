package duckdb_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/statement"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
)

// TestKeysAreOnce: of keys that are written again, within a statement, a transaction
// or later, the table without an index has each once, as that of older stores has.
func TestKeysAreOnce(t *testing.T) {
	ctx := context.Background()
	layout, err := schemas.Entities("compact", "duckdb")
	require.NoError(t, err)
	tables := map[string]string{
		"before": "CREATE TABLE entity_keys (hash BIGINT NOT NULL, id BIGINT NOT NULL, PRIMARY KEY (hash, id))",
	}
	for _, text := range layout.Tables {
		if strings.HasPrefix(text, "CREATE TABLE entity_keys ") {
			tables["now"] = text
		}
	}
	require.Len(t, tables, 2)
	for name, text := range tables {
		t.Run(name, func(t *testing.T) {
			e := openNew(t, driver.Options{})
			require.NoError(t, write(e, func(ctx context.Context, tx driver.Tx) error {
				_, err := tx.Exec(ctx, text)
				return err
			}))
			sql, r, all := statement.New(layout.Statements), rand.New(rand.NewPCG(1, 2)), map[[2]int64]bool{}
			for range 20 {
				require.NoError(t, write(e, func(ctx context.Context, tx driver.Tx) error {
					for range 2 {
						var rows []any
						for range 1 + r.IntN(400) {
							// Several entities have one hash, and hashes are of both signs.
							hash, id := (r.Int64N(300)-150)<<54, r.Int64N(20)
							rows, all[[2]int64{hash, id}] = append(rows, hash, id), true
						}
						if err := sql.ExecIn(ctx, tx, "insert_missing_keys", 2, rows); err != nil {
							return err
						}
					}
					return nil
				}))
				if r.IntN(4) == 0 {
					_, err := driver.Checkpoint(ctx, e, false)
					require.NoError(t, err)
				}
				view, found, n := snapshot(t, e), map[[2]int64]bool{}, 0
				require.NoError(t, sql.Each(ctx, view, "keys", nil, func(rows driver.Rows) error {
					var key [2]int64
					n++
					err := rows.Scan(&key[0], &key[1])
					found[key] = true
					return err
				}))
				require.NoError(t, view.Close())
				require.Equal(t, all, found)
				require.Equal(t, len(all), n, "some keys are there twice")
			}
		})
	}
}
