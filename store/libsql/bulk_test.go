package libsql

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

var (
	attributes = &driver.Table{Name: "attributes", Columns: []driver.Column{
		{Name: "entity", Type: driver.Blob}, {Name: "name", Type: driver.Text}, {Name: "value", Type: driver.Uint},
		{Name: "from_block", Type: driver.Int}, {Name: "to_block", Type: driver.Uint},
	}}
	closing = &driver.Update{Table: "attributes", Set: attributes.Columns[4],
		Key: []driver.Column{attributes.Columns[0], attributes.Columns[1], attributes.Columns[3]}}
)

const createAttributes = `CREATE TABLE attributes (entity BLOB NOT NULL, name TEXT NOT NULL, value INTEGER NOT NULL,
	from_block INTEGER NOT NULL, to_block INTEGER NOT NULL, PRIMARY KEY (entity, name, from_block))`

// attributeRows returns n rows and their keys.
func attributeRows(n int) (rows, keys []any) {
	for i := range n {
		entity, name := fmt.Appendf(nil, "entity %d", i/7), fmt.Sprintf("name %d", i%7)
		rows = append(rows, entity, name, ^uint64(i), int64(5), uint64(1)<<63)
		keys = append(keys, entity, name, int64(5))
	}
	return rows, keys
}

func TestBulk(t *testing.T) {
	ctx := context.Background()
	e := mustOpen(t, newPath(t), driver.Options{})
	for _, n := range []int{0, 1, 5, 63, 64, 1024, 3001} {
		rows, keys := attributeRows(n)
		write(t, e, func(tx driver.Tx) {
			mustExec(t, tx, "DROP TABLE IF EXISTS attributes")
			mustExec(t, tx, createAttributes)
			require.NoError(t, tx.Insert(ctx, attributes, rows))
			require.Equal(t, []int64{int64(n)}, column[int64](t, tx, "SELECT count(*) FROM attributes WHERE to_block = ?", uint64(1)<<63))

			half := slices.Clone(keys[:n/2*3])
			half = append(half, []byte("nobody"), "name", int64(5))
			require.NoError(t, tx.Update(ctx, closing, uint64(9), half))
			require.Equal(t, []int64{int64(n / 2)}, column[int64](t, tx, "SELECT count(*) FROM attributes WHERE to_block = ?", uint64(9)))
			if n > 0 {
				require.Equal(t, []uint64{^uint64(n - 1)}, column[uint64](t, tx, "SELECT min(value) FROM attributes"))
			}
		})
	}
}

// TestUpdateUsesTheIndex checks the plan of the update that sqlstore.MultiRow
// writes for keys with an index.
func TestUpdateUsesTheIndex(t *testing.T) {
	text := "UPDATE attributes SET to_block = ? FROM (VALUES " + strings.Repeat("(?, ?, ?), ", 63) + "(?, ?, ?)) AS k " +
		"WHERE entity = k.column1 AND name = k.column2 AND from_block = k.column3"
	_, keys := attributeRows(64)
	e := mustOpen(t, newPath(t), driver.Options{})
	write(t, e, func(tx driver.Tx) { mustExec(t, tx, createAttributes) })
	rows, err := snapshot(t, e).Query(context.Background(), "EXPLAIN QUERY PLAN "+text, append([]any{uint64(9)}, keys...)...)
	require.NoError(t, err)
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int64
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		plan = append(plan, detail)
	}
	require.NoError(t, rows.Err())
	require.Contains(t, plan, "SEARCH attributes USING COVERING INDEX sqlite_autoindex_attributes_1 (entity=? AND name=? AND from_block=?)")
}

func TestConflictLeavesTheStoreUsable(t *testing.T) {
	ctx := context.Background()
	e := mustOpen(t, newPath(t), driver.Options{})
	write(t, e, func(tx driver.Tx) { mustExec(t, tx, createAttributes) })
	rows, _ := attributeRows(100)
	tx, err := e.Begin(ctx)
	require.NoError(t, err)
	require.NoError(t, tx.Insert(ctx, attributes, rows))
	err = tx.Insert(ctx, attributes, rows[:20])
	require.ErrorIs(t, err, driver.ErrConflict)
	var native *nativeError
	require.ErrorAs(t, err, &native)
	require.Equal(t, "libsql: UNIQUE constraint failed: attributes.entity, attributes.name, attributes.from_block", native.Error())
	require.NoError(t, tx.Rollback())
	write(t, e, func(tx driver.Tx) {
		require.Equal(t, []int64{0}, column[int64](t, tx, "SELECT count(*) FROM attributes"))
		require.NoError(t, tx.Insert(ctx, attributes, rows))
	})
	require.Equal(t, []int64{100}, column[int64](t, snapshot(t, e), "SELECT count(*) FROM attributes"))
}
