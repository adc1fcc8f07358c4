package duckdb_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

func update(e driver.Engine, value any, keys ...any) error {
	return write(e, func(ctx context.Context, tx driver.Tx) error { return tx.Update(ctx, closing, value, keys) })
}

func key(i int) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 24, 32), uint64(i)*0x9e3779b97f4a7c15)
}

func manyRows(from, n int) []any {
	var rows []any
	for i := range n {
		rows = append(rows, key(from+i), int64(1), forEver, "name", uint64(from+i))
	}
	return rows
}

func TestInsertAndUpdateSizes(t *testing.T) {
	for _, n := range []int{1, 2, 15, 16, 17, 100, 2047, 2048, 2049, 9000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			e := openNew(t, driver.Options{})
			require.NoError(t, insertCommit(e, manyRows(0, n)))
			require.Equal(t, int64(n), count(t, e))

			var keys []any // every other row, one twice, and one that is not there
			for i := 0; i < n; i += 2 {
				keys = append(keys, key(i), "name", int64(1))
			}
			keys = append(keys, key(0), "name", int64(1), key(-1), "name", int64(1))
			require.NoError(t, update(e, int64(7), keys...))
			r := snapshot(t, e)
			require.Equal(t, int64(n), number(t, r, "SELECT count(*) FROM attributes"))
			require.Equal(t, int64(n+1)/2, number(t, r, "SELECT count(*) FROM attributes WHERE to_block = 7"))
			require.Equal(t, int64(n+1)/2, number(t, r, "SELECT count(*) FROM attributes WHERE to_block = 7 AND value % 2 = 0"))
		})
	}
}

func TestBulkIsOfTheTransaction(t *testing.T) {
	e := openNew(t, driver.Options{})
	ctx := context.Background()
	require.NoError(t, insertCommit(e, manyRows(0, 50)))
	tx, err := e.Begin(ctx)
	require.NoError(t, err)
	require.NoError(t, tx.Insert(ctx, attributes, manyRows(50, 50)))
	require.NoError(t, tx.Insert(ctx, attributes, manyRows(100, 5)))
	require.NoError(t, tx.Update(ctx, closing, int64(9), []any{key(70), "name", int64(1), key(3), "name", int64(1)}))
	require.Equal(t, int64(105), number(t, tx, "SELECT count(*) FROM attributes"))
	require.Equal(t, int64(2), number(t, tx, "SELECT count(*) FROM attributes WHERE to_block = 9"))
	require.Equal(t, int64(50), count(t, e), "a snapshot sees the last commit")
	require.NoError(t, tx.Rollback())
	require.Equal(t, int64(50), count(t, e))
	require.Zero(t, number(t, snapshot(t, e), "SELECT count(*) FROM attributes WHERE to_block = 9"))
}

func TestLargePayloads(t *testing.T) {
	e := openNew(t, driver.Options{})
	payloads := &driver.Table{Name: "payloads", Columns: []driver.Column{{Name: "i", Type: driver.Int}, {Name: "payload", Type: driver.Blob}}}
	var rows []any
	for i := range 48 { // more than is held back before a flush, and than fits the budget twice
		rows = append(rows, int64(i), make([]byte, 1<<20))
	}
	require.NoError(t, write(e, func(ctx context.Context, tx driver.Tx) error {
		_, err := tx.Exec(ctx, "CREATE TABLE payloads (payload BLOB NOT NULL, i BIGINT NOT NULL PRIMARY KEY)")
		require.NoError(t, err)
		return tx.Insert(ctx, payloads, rows)
	}))
	require.Equal(t, int64(48<<20), number(t, snapshot(t, e), "SELECT CAST(sum(octet_length(payload)) AS BIGINT) FROM payloads"))
}

func TestBulkRefusesValues(t *testing.T) {
	for name, c := range map[string]struct {
		column int
		value  any
		is     error
	}{
		"null":          {0, nil, nil},
		"int as uint":   {4, int64(1), nil},
		"uint as int":   {1, uint64(1), nil},
		"bytes as text": {3, []byte("name"), nil},
		"text as bytes": {0, "key", nil},
		"not UTF-8":     {3, "a\xff", driver.ErrUnsupported},
	} {
		for _, n := range []int{1, 100} {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				e := openNew(t, driver.Options{})
				rows := manyRows(0, n)
				rows[len(rows)-len(attributes.Columns)+c.column] = c.value
				err := insertCommit(e, rows)
				require.ErrorContains(t, err, "column "+attributes.Columns[c.column].Name)
				if c.is != nil {
					require.ErrorIs(t, err, c.is)
				}
				require.Zero(t, count(t, e))
			})
		}
	}
	e := openNew(t, driver.Options{})
	require.ErrorContains(t, update(e, uint64(1), key(0), "name", int64(1)), "column to_block")
	require.ErrorContains(t, update(e, int64(1), key(0), "name", "1"), "column from_block")
}

func TestDuplicate(t *testing.T) {
	for _, n := range []int{1, 100} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			e := openNew(t, driver.Options{})
			require.NoError(t, insertCommit(e, manyRows(0, 200)))
			require.ErrorIs(t, insertCommit(e, manyRows(200-1, n)), driver.ErrConflict, "against stored rows")
			twice := append(manyRows(300, n), manyRows(300, 1)...)
			require.ErrorIs(t, insertCommit(e, twice), driver.ErrConflict, "within one call")
			require.ErrorIs(t, write(e, func(ctx context.Context, tx driver.Tx) error {
				require.NoError(t, tx.Insert(ctx, attributes, manyRows(300, n)))
				return tx.Insert(ctx, attributes, manyRows(300, n))
			}), driver.ErrConflict, "within one transaction")
			require.ErrorIs(t, write(e, func(ctx context.Context, tx driver.Tx) error {
				require.NoError(t, tx.Update(ctx, closing, int64(5), []any{key(0), "name", int64(1)}))
				return tx.Insert(ctx, attributes, manyRows(0, n))
			}), driver.ErrConflict, "against an updated row")
			require.Equal(t, int64(200), count(t, e))
			require.NoError(t, insertCommit(e, manyRows(200, n)), "the store is usable")
			require.Equal(t, int64(200+n), count(t, e))
		})
	}
}
