package duckdb_test

import (
	"context"
	"encoding/binary"
	"errors"
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

// TestLargePayloads: more than an appender holds back before it is flushed.
func TestLargePayloads(t *testing.T) {
	e := openNew(t, driver.Options{})
	payloads := &driver.Table{Name: "payloads", Columns: []driver.Column{{Name: "i", Type: driver.Int}, {Name: "payload", Type: driver.Blob}}}
	var rows []any
	for i := range 24 {
		rows = append(rows, int64(i), make([]byte, 1<<20))
	}
	require.NoError(t, write(e, func(ctx context.Context, tx driver.Tx) error {
		_, err := tx.Exec(ctx, "CREATE TABLE payloads (payload BLOB NOT NULL, i BIGINT NOT NULL PRIMARY KEY)")
		require.NoError(t, err)
		return tx.Insert(ctx, payloads, rows)
	}))
	require.Equal(t, int64(24<<20), number(t, snapshot(t, e), "SELECT CAST(sum(octet_length(payload)) AS BIGINT) FROM payloads"))
}

// TestBulkRefusesValues of other types than their columns'. An appender would
// store some as NULL.
func TestBulkRefusesValues(t *testing.T) {
	e := openNew(t, driver.Options{})
	for name, c := range map[string]struct {
		column int
		value  any
	}{
		"null": {0, nil}, "int as uint": {4, int64(1)}, "uint as int": {1, uint64(1)},
		"bytes as text": {3, []byte("name")}, "text as bytes": {0, "key"}, "not UTF-8": {3, "a\xff"},
	} {
		for _, n := range []int{1, 100} {
			rows := manyRows(0, n)
			rows[len(rows)-len(attributes.Columns)+c.column] = c.value
			err := insertCommit(e, rows)
			require.ErrorContains(t, err, "column "+attributes.Columns[c.column].Name, name)
			require.Equal(t, name == "not UTF-8", errors.Is(err, driver.ErrUnsupported), name)
		}
	}
	require.ErrorContains(t, update(e, uint64(1), key(0), "name", int64(1)), "column to_block")
	require.ErrorContains(t, update(e, int64(1), key(0), "name", "1"), "column from_block")
	require.Zero(t, count(t, e))
}

// TestDuplicate: of an appender's errors none has a type.
func TestDuplicate(t *testing.T) {
	e := openNew(t, driver.Options{})
	require.NoError(t, insertCommit(e, manyRows(0, 200)))
	require.ErrorIs(t, insertCommit(e, manyRows(199, 100)), driver.ErrConflict, "against stored rows")
	require.ErrorIs(t, insertCommit(e, append(manyRows(300, 100), manyRows(300, 1)...)), driver.ErrConflict, "within one call")
	require.ErrorIs(t, write(e, func(ctx context.Context, tx driver.Tx) error {
		require.NoError(t, tx.Update(ctx, closing, int64(5), []any{key(0), "name", int64(1)}))
		return tx.Insert(ctx, attributes, manyRows(0, 100))
	}), driver.ErrConflict, "against an updated row")
	require.Equal(t, int64(200), count(t, e))
}
