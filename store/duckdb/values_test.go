package duckdb_test

import (
	"bytes"
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

var things = &driver.Table{Name: "things", Columns: []driver.Column{
	{Name: "i", Type: driver.Int}, {Name: "u", Type: driver.Uint}, {Name: "s", Type: driver.Text}, {Name: "b", Type: driver.Blob},
}}

type thing struct {
	i int64
	u uint64
	s string
	b []byte
}

// samples are in the order of u, of s and of b alike.
func samples() []thing {
	return []thing{
		{math.MinInt64, 0, "", []byte{}},
		{-1, 1, "\x00", []byte{0}},
		{0, 1<<53 + 1, "\x00a", []byte{0, 0}},
		{1, math.MaxInt64, "a", []byte{0, 1}},
		{2, 1 << 63, "a\x00", []byte("a")},
		{3, 1<<63 + 1, "a\x00a\x00b", bytes.Repeat([]byte{'a', 0}, 1<<19)},
		{4, math.MaxUint64 - 1, "a\x01", []byte{'b', 0xff}},
		{math.MaxInt64, math.MaxUint64, "ä…𐍈", []byte{0xff, 0xff}},
	}
}

// The ways in: rows by bulk, few (a statement) and many (an appender), and
// arguments.
func TestValuesRoundTrip(t *testing.T) {
	for name, copies := range map[string]int{"few": 1, "many": 40} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			e := openAt(t, newPath(t), driver.Options{})
			list := samples()
			require.NoError(t, write(e, func(ctx context.Context, tx driver.Tx) error {
				_, err := tx.Exec(ctx, "CREATE TABLE things (i BIGINT NOT NULL, u UBIGINT NOT NULL, s VARCHAR NOT NULL, b BLOB NOT NULL)")
				require.NoError(t, err)
				_, err = tx.Exec(ctx, "CREATE INDEX things_s ON things (s)")
				require.NoError(t, err)
				var rows []any
				for range copies {
					for _, v := range list {
						rows = append(rows, v.i, v.u, v.s, v.b)
					}
				}
				return tx.Insert(ctx, things, rows)
			}))
			r := snapshot(t, e)
			for _, order := range []string{"u", "s", "b", "u DESC"} {
				var got []thing
				rows, err := r.Query(ctx, "SELECT DISTINCT i, u, s, b FROM things ORDER BY "+order)
				require.NoError(t, err)
				for rows.Next() {
					var v thing
					require.NoError(t, rows.Scan(&v.i, &v.u, &v.s, &v.b))
					got = append(got, v)
				}
				require.NoError(t, rows.Err())
				require.NoError(t, rows.Close())
				require.Len(t, got, len(list))
				for k := range got {
					want := list[k]
					if order == "u DESC" {
						want = list[len(list)-1-k]
					}
					require.Equal(t, want.i, got[k].i, order)
					require.Equal(t, want.u, got[k].u, order)
					require.Equal(t, want.s, got[k].s, order)
					require.True(t, bytes.Equal(want.b, got[k].b), order)
					require.NotNil(t, got[k].b)
				}
			}
			for k, v := range list {
				above := int64(copies * (len(list) - 1 - k))
				for column, arg := range map[string]any{"u": v.u, "s": v.s, "b": v.b} {
					require.Equal(t, int64(copies), number(t, r, "SELECT count(*) FROM things WHERE "+column+" = ?", arg), "%s %d", column, k)
					require.Equal(t, int64(copies), number(t, r, "SELECT count(*) FROM things WHERE "+column+" IN (?, ?)", arg, arg), "%s %d", column, k)
					require.Equal(t, above, number(t, r, "SELECT count(*) FROM things WHERE "+column+" > ?", arg), "%s %d", column, k)
					require.Equal(t, above, number(t, r, "SELECT count(*) FROM things WHERE NOT ("+column+" <= ?)", arg), "%s %d", column, k)
				}
			}
		})
	}
}

func TestArgumentsRoundTrip(t *testing.T) {
	e := openNew(t, driver.Options{})
	r := snapshot(t, e)
	for _, v := range samples() {
		rows, err := r.Query(context.Background(), "SELECT CAST(? AS BIGINT), CAST(? AS UBIGINT), CAST(? AS VARCHAR), CAST(? AS BLOB), true", v.i, v.u, v.s, v.b)
		require.NoError(t, err)
		require.True(t, rows.Next())
		var got thing
		var text []byte
		var yes bool
		require.NoError(t, rows.Scan(&got.i, &got.u, &text, &got.b, &yes))
		require.NoError(t, rows.Close())
		require.True(t, yes)
		require.Equal(t, v.s, string(text))
		require.Equal(t, v.i, got.i)
		require.Equal(t, v.u, got.u)
		require.True(t, bytes.Equal(v.b, got.b))
	}
}

func TestScannedBytesAreTheCallers(t *testing.T) {
	e := openNew(t, driver.Options{})
	require.NoError(t, insertCommit(e, append(row("first long enough not to be inlined", 1, 1), row("second long enough not to be inlined", 1, 1)...)))
	rows, err := snapshot(t, e).Query(context.Background(), "SELECT entity_key FROM attributes ORDER BY 1")
	require.NoError(t, err)
	defer rows.Close()
	var first, second []byte
	require.True(t, rows.Next())
	require.NoError(t, rows.Scan(&first))
	require.True(t, rows.Next())
	require.NoError(t, rows.Scan(&second))
	require.Equal(t, "first long enough not to be inlined", string(first))
	require.Equal(t, "second long enough not to be inlined", string(second))
}

// The driver hands addresses to C, and the runtime forbids those of bytes within
// a Go object that holds pointers.
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
