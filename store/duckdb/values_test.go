package duckdb_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

var things = &driver.Table{Name: "things", Columns: []driver.Column{
	{Name: "i", Type: driver.Int}, {Name: "u", Type: driver.Uint}, {Name: "s", Type: driver.Text}, {Name: "b", Type: driver.Blob},
}}

// TestAppendedValues come back as they were, in the order of each column.
func TestAppendedValues(t *testing.T) {
	list := []any{
		int64(math.MinInt64), uint64(0), "", []byte{},
		int64(-1), uint64(1), "\x00", []byte{0},
		int64(0), uint64(1<<53 + 1), "\x00a", []byte{0, 0},
		int64(1), uint64(math.MaxInt64), "a", []byte{0, 1},
		int64(2), uint64(1 << 63), "a\x00", []byte("a"),
		int64(3), uint64(1<<63 + 1), "a\x00a\x00b", bytes.Repeat([]byte{'a', 0}, 1<<19),
		int64(4), uint64(math.MaxUint64 - 1), "a\x01", []byte{'b', 0xff},
		int64(math.MaxInt64), uint64(math.MaxUint64), "ä…𐍈", []byte{0xff, 0xff},
	}
	e := openAt(t, newPath(t), driver.Options{})
	require.NoError(t, write(e, func(ctx context.Context, tx driver.Tx) error {
		_, err := tx.Exec(ctx, "CREATE TABLE things (i BIGINT NOT NULL, u UBIGINT NOT NULL, s VARCHAR NOT NULL, b BLOB NOT NULL)")
		require.NoError(t, err)
		return tx.Insert(ctx, things, slices.Repeat(list, 3)) // more than one statement has as arguments
	}))
	for _, order := range []string{"i", "u", "s", "b"} {
		rows, err := snapshot(t, e).Query(t.Context(), "SELECT DISTINCT i, u, s, b FROM things ORDER BY "+order)
		require.NoError(t, err)
		var got []any
		for rows.Next() {
			var i int64
			var u uint64
			var s string
			var b []byte
			require.NoError(t, rows.Scan(&i, &u, &s, &b))
			got = append(got, i, u, s, b)
		}
		require.NoError(t, errors.Join(rows.Err(), rows.Close()))
		require.True(t, reflect.DeepEqual(list, got), order)
	}
}

// The driver hands addresses to C, and the runtime forbids the address of bytes
// within a Go object that has pointers.
func TestBytesWithinAnObject(t *testing.T) {
	type object struct {
		name *string
		key  [8]byte
	}
	for _, n := range []int{1, 100} {
		e := openNew(t, driver.Options{})
		var rows, keys []any
		for i := range n {
			o := &object{name: new(string)}
			o.key[0] = byte(i)
			rows = append(rows, o.key[:], int64(1), forEver, "name", uint64(i))
			keys = append(keys, o.key[:], "name", int64(1))
		}
		require.NoError(t, insertCommit(e, rows))
		require.NoError(t, update(e, int64(5), keys...))
		require.Equal(t, int64(1), number(t, snapshot(t, e), "SELECT count(*) FROM attributes WHERE entity_key = ? AND to_block = 5", rows[0]))
	}
}
