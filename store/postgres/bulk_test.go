package postgres

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// makeRows returns n rows of table all, with repeated values.
func makeRows(n int) []any {
	uints := []uint64{0, 1, math.MaxInt64, 1 << 63, math.MaxUint64}
	ints := []int64{0, -1, math.MinInt64, math.MaxInt64}
	texts := []string{"", "a", "日本", "it's", `\N`, "a\tb\n", "\uffff😀"}
	var rows []any
	for i := range n {
		key := fmt.Appendf(nil, "%06d", i)
		rows = append(rows, key, ints[i%len(ints)], uints[i%len(uints)], texts[i%len(texts)])
	}
	return rows
}

// readRows returns the rows of table t by key.
func readRows(t require.TestingT, e driver.Engine) []any {
	ctx := context.Background()
	r, err := e.Snapshot(ctx)
	require.NoError(t, err)
	defer r.Close()
	rows, err := r.Query(ctx, "SELECT k, n, u, s FROM t ORDER BY k")
	require.NoError(t, err)
	defer rows.Close()
	var list []any
	for rows.Next() {
		var k []byte
		var n int64
		var u uint64
		var s string
		require.NoError(t, rows.Scan(&k, &n, &u, &s))
		list = append(list, k, n, u, s)
	}
	require.NoError(t, rows.Err())
	return list
}

// TestInsert writes by array and by COPY.
func TestInsert(t *testing.T) {
	e := openNew(t, nil)
	execute(t, e, createAll)
	for _, n := range []int{1, copyRows - 1, copyRows, 5 * copyRows} {
		rows := makeRows(n)
		write(t, e, func(ctx context.Context, tx driver.Tx) {
			_, err := tx.Exec(ctx, "DELETE FROM t")
			require.NoError(t, err)
			require.NoError(t, tx.Insert(ctx, all, rows))
		})
		require.Equal(t, rows, readRows(t, e))
	}
}

// TestInsertRefused checks errors on both ways of writing.
func TestInsertRefused(t *testing.T) {
	e := openNew(t, nil)
	execute(t, e, createAll)
	for _, n := range []int{1, copyRows} {
		for name, c := range map[string]struct {
			column int
			value  any
			want   error
			text   string
		}{
			"NUL":        {3, "a\x00b", driver.ErrUnsupported, "UTF-8 without U+0000"},
			"not UTF-8":  {3, "a\xffb", driver.ErrUnsupported, "UTF-8"},
			"wrong type": {1, "1", nil, "column n: string is not its type"},
			"no value":   {2, nil, nil, "column u: <nil> is not its type"},
		} {
			t.Run(fmt.Sprintf("%s, %d rows", name, n), func(t *testing.T) {
				rows := makeRows(n)
				rows[len(rows)-4+c.column] = c.value
				requireRefused(t, e, rows, c.want, c.text)
			})
		}
		t.Run(fmt.Sprintf("twice, %d rows", n), func(t *testing.T) {
			requireRefused(t, e, append(makeRows(n), makeRows(1)...), driver.ErrConflict, "t_pkey")
		})
	}
}

func requireRefused(t *testing.T, e *engine, rows []any, want error, text string) {
	t.Helper()
	tx, err := e.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback()
	if err = tx.Insert(t.Context(), all, rows); err == nil {
		err = tx.Commit(t.Context()) // with which it travels
	}
	require.ErrorContains(t, err, text)
	if want != nil {
		require.ErrorIs(t, err, want)
	}
	require.NoError(t, tx.Rollback())
	require.Zero(t, count(t, e, "t"))
}

// TestNilBytes: nil bytes are no bytes, not NULL.
func TestNilBytes(t *testing.T) {
	e := openNew(t, nil)
	execute(t, e, createAll)
	row := []any{[]byte(nil), int64(1), uint64(1), ""}
	for name, insert := range map[string]func(ctx context.Context, tx driver.Tx) error{
		"array": func(ctx context.Context, tx driver.Tx) error { return tx.Insert(ctx, all, row) },
		"copy": func(ctx context.Context, tx driver.Tx) error {
			return tx.Insert(ctx, all, append(makeRows(copyRows), row...))
		},
		"exec": func(ctx context.Context, tx driver.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO t (k, n, u, s) VALUES (?, ?, ?, ?)", row...)
			return err
		},
	} {
		write(t, e, func(ctx context.Context, tx driver.Tx) {
			require.NoError(t, insert(ctx, tx), name)
			n, err := driver.QueryInt(ctx, tx, "SELECT count(*) FROM t WHERE k = ?", []byte(nil))
			require.NoError(t, err, name)
			require.EqualValues(t, 1, n, name)
			_, err = tx.Exec(ctx, "DELETE FROM t")
			require.NoError(t, err, name)
		})
	}
}

// TestCopyReader: the bytes that are read do not depend on the size of a read.
func TestCopyReader(t *testing.T) {
	rows := append(makeRows(500), bytes.Repeat([]byte{7}, 3*copyChunk), int64(1), uint64(2), "long")
	whole, err := io.ReadAll(newCopyReader(all.Columns, rows))
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(whole, []byte("PGCOPY\n\xff\r\n\x00")))
	require.True(t, bytes.HasSuffix(whole, []byte("\xff\xff")))
	bytewise, err := io.ReadAll(iotest.OneByteReader(newCopyReader(all.Columns, rows)))
	require.NoError(t, err)
	require.True(t, bytes.Equal(whole, bytewise))
	require.NoError(t, iotest.TestReader(newCopyReader(all.Columns, rows), whole))
}
