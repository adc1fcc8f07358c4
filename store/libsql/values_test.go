package libsql

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

func TestValuesComeBack(t *testing.T) {
	texts := []string{"", "x", "0", "7e3", "ä € 🜁", "'quoted' ?; --", "2020-01-01", "2020-01-01T00:00:00Z", "2020-01-01 00:00", strings.Repeat("long ", 1000)}
	blobs := [][]byte{{}, {0}, []byte("a\x00b"), bytes.Repeat([]byte{0, 255, 'x', '\n'}, 1<<18)}
	ints := []int64{0, 1, -1, math.MinInt64, math.MaxInt64}
	uints := []uint64{0, 1, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64 - 1, math.MaxUint64}
	e := mustOpen(t, newPath(t), driver.Options{})
	write(t, e, func(tx driver.Tx) {
		mustExec(t, tx, "CREATE TABLE v (n INTEGER PRIMARY KEY, kind TEXT, x)")
		n := int64(0)
		put := func(kind string, x any) {
			n++
			require.EqualValues(t, 1, mustExec(t, tx, "INSERT INTO v VALUES (?, ?, ?)", n, kind, x))
		}
		for _, x := range texts {
			put("text", x)
		}
		for _, x := range blobs {
			put("blob", x)
		}
		for _, x := range ints {
			put("int", x)
		}
		for _, x := range uints {
			put("uint", x)
		}
		put("nil", []byte(nil))
	})
	r := snapshot(t, e)
	require.Equal(t, texts, column[string](t, r, "SELECT CAST(x AS BLOB) FROM v WHERE kind = 'text' ORDER BY n"))
	require.Equal(t, blobs, column[[]byte](t, r, "SELECT x FROM v WHERE kind = 'blob' ORDER BY n"))
	require.Equal(t, ints, column[int64](t, r, "SELECT x FROM v WHERE kind = 'int' ORDER BY n"))
	require.Equal(t, uints, column[uint64](t, r, "SELECT x FROM v WHERE kind = 'uint' ORDER BY n"))
	require.Equal(t, []string{"blob"}, column[string](t, r, "SELECT typeof(x) FROM v WHERE kind = 'nil'"))
	require.Equal(t, [][]byte{{}}, column[[]byte](t, r, "SELECT x FROM v WHERE kind = 'nil'"), "no bytes, and no NULL")
	require.Equal(t, []bool{true}, column[bool](t, r, "SELECT EXISTS (SELECT 1 FROM v WHERE x = ?)", texts[6]))
}

func TestUintsKeepTheirOrder(t *testing.T) {
	list := []uint64{math.MaxUint64, 3, math.MaxInt64 + 1, 0, math.MaxInt64, math.MaxInt64 + 2}
	e := mustOpen(t, newPath(t), driver.Options{})
	write(t, e, func(tx driver.Tx) {
		mustExec(t, tx, "CREATE TABLE u (x INTEGER)")
		table := &driver.Table{Name: "u", Columns: []driver.Column{{Name: "x", Type: driver.Uint}}}
		rows := make([]any, len(list))
		for i, x := range list {
			rows[i] = x
		}
		require.NoError(t, tx.Insert(context.Background(), table, rows))
	})
	r := snapshot(t, e)
	require.Equal(t, []uint64{0, 3, math.MaxInt64, math.MaxInt64 + 1, math.MaxInt64 + 2, math.MaxUint64},
		column[uint64](t, r, "SELECT x FROM u ORDER BY x"))
	require.Equal(t, []uint64{math.MaxInt64 + 1, math.MaxInt64 + 2, math.MaxUint64},
		column[uint64](t, r, "SELECT x FROM u WHERE x > ? ORDER BY x", uint64(math.MaxInt64)))
	require.Equal(t, []uint64{math.MaxUint64}, column[uint64](t, r, "SELECT max(x) FROM u"))
	require.Equal(t, []uint64{math.MaxInt64 + 2}, column[uint64](t, r, "SELECT x FROM u WHERE x = ?", uint64(math.MaxInt64+2)))
}

func TestDateLikeTextIsExactOrAnError(t *testing.T) {
	e := mustOpen(t, newPath(t), driver.Options{})
	for _, text := range []string{"2020-01-01", "2020-01-01T10:00:00+02:00", "2020-01-01 10:00:00.5"} {
		write(t, e, func(tx driver.Tx) {
			require.Equal(t, []string{text}, column[string](t, tx, "SELECT CAST(? AS BLOB)", text))
			require.Equal(t, [][]byte{[]byte(text)}, column[[]byte](t, tx, "SELECT CAST(? AS BLOB)", text))
			_, err := columnErr[string](tx, "SELECT ? AS day", text)
			require.ErrorIs(t, err, driver.ErrUnsupported)
			require.ErrorContains(t, err, `"day"`)
			_, err = columnErr[[]byte](tx, "SELECT ?", text)
			require.ErrorIs(t, err, driver.ErrUnsupported)
		})
	}
}

func TestRefusedBeforeAnythingIsWritten(t *testing.T) {
	tests := []struct {
		name, text string
		args       []any
		is         error
	}{
		{"NUL", "INSERT INTO t VALUES (?)", []any{"a\x00b"}, driver.ErrUnsupported},
		{"not UTF-8", "INSERT INTO t VALUES (?)", []any{"\xff"}, driver.ErrUnsupported},
		{"two statements", "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)", nil, driver.ErrUnsupported},
		{"too few arguments", "INSERT INTO t VALUES (?)", nil, nil},
		{"too many arguments", "INSERT INTO t VALUES (?)", []any{int64(1), int64(2)}, nil},
		{"rows", "SELECT 1", nil, nil},
	}
	e := mustOpen(t, newPath(t), driver.Options{})
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			write(t, e, func(tx driver.Tx) {
				mustExec(t, tx, "CREATE TABLE IF NOT EXISTS t (x TEXT)")
				_, err := tx.Exec(context.Background(), tc.text, tc.args...)
				require.Error(t, err)
				if tc.is != nil {
					require.ErrorIs(t, err, tc.is)
				}
				require.Equal(t, []int64{0}, column[int64](t, tx, "SELECT count(*) FROM t"))
			})
		})
	}
}

func TestBulkTextWithNUL(t *testing.T) {
	table := &driver.Table{Name: "t", Columns: []driver.Column{{Name: "x", Type: driver.Text}}}
	e := mustOpen(t, newPath(t), driver.Options{})
	write(t, e, func(tx driver.Tx) {
		mustExec(t, tx, "CREATE TABLE t (x TEXT)")
		err := tx.Insert(context.Background(), table, []any{"a", "b", "c", "\x00"})
		require.ErrorIs(t, err, driver.ErrUnsupported)
		require.Equal(t, []int64{0}, column[int64](t, tx, "SELECT count(*) FROM t"))
	})
}

func TestDoneContext(t *testing.T) {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	e := mustOpen(t, newPath(t), driver.Options{})
	_, err := e.Begin(done)
	require.ErrorIs(t, err, context.Canceled)
	_, err = e.Snapshot(done)
	require.ErrorIs(t, err, context.Canceled)
	write(t, e, func(tx driver.Tx) {
		mustExec(t, tx, "CREATE TABLE t (x INTEGER)")
		_, err := tx.Exec(done, "INSERT INTO t VALUES (1)")
		require.ErrorIs(t, err, context.Canceled)
		_, err = tx.Query(done, "SELECT 1")
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, []int64{0}, column[int64](t, tx, "SELECT count(*) FROM t"), "the transaction goes on")
	})
}
