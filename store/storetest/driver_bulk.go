package storetest

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// itemsTable describes a table with every column type.
func itemsTable(name string) *driver.Table {
	return &driver.Table{Name: name, Columns: []driver.Column{
		{Name: "id", Type: driver.Int}, {Name: "u", Type: driver.Uint}, {Name: "s", Type: driver.Text}, {Name: "b", Type: driver.Blob},
		{Name: "state", Type: driver.Int},
	}}
}

// itemRow returns the values of row i of an items table.
func itemRow(i int) []any {
	return []any{int64(i), uint64(i) << 50, fmt.Sprint("item ", i), bytes.Repeat([]byte{byte(i)}, i%7), int64(0)}
}

func itemRows(from, to int) []any {
	var rows []any
	for i := from; i < to; i++ {
		rows = append(rows, itemRow(i)...)
	}
	return rows
}

// runBulk tests Insert and Update.
func runBulk(t *testing.T, h Harness) {
	e := h.open(t, h.NewURL(t), nil).Engine()
	t.Run("insert", func(t *testing.T) {
		for _, n := range []int{0, 1, 17, 5000} {
			t.Run(fmt.Sprint("rows=", n), func(t *testing.T) { testInsert(t, e, n) })
		}
	})
	parts[driver.Engine]{
		{"insert in parts", testInsertParts},
		{"wrong number of values", testWrongValues},
		{"conflict", testConflict},
	}.run(t, e)
	t.Run("update", func(t *testing.T) {
		for _, n := range []int{0, 1, 3, 17, 1500} {
			t.Run(fmt.Sprint("keys=", n), func(t *testing.T) { testUpdate(t, e, n) })
		}
	})
	t.Run("update each type", func(t *testing.T) { testUpdateTypes(t, e) })
}

func testInsert(t *testing.T, e driver.Engine, n int) {
	table := newTable(t, e, true, itemsTable(fmt.Sprint("insert", n)))
	rows := itemRows(0, n)
	inTx(t, e, func(tx driver.Tx) {
		require.NoError(t, tx.Insert(t.Context(), table, rows))
		checkItems(t, tx, table, n)
		clear(rows) // the engine has not kept it
	})
	requireItems(t, e, table, n)
}

// requireItems checks that an items table has rows 0 … n−1.
func requireItems(t *testing.T, e driver.Engine, table *driver.Table, n int) {
	t.Helper()
	inView(t, e, func(q driver.Querier) { checkItems(t, q, table, n) })
}

func checkItems(t *testing.T, q driver.Querier, table *driver.Table, n int) {
	t.Helper()
	rows := must(q.Query(context.Background(), "SELECT id, u, s, b FROM "+table.Name+" ORDER BY id"))(t)
	defer rows.Close()
	i := 0
	for ; rows.Next(); i++ {
		var id int64
		var u uint64
		var s string
		var b []byte
		require.NoError(t, rows.Scan(&id, &u, &s, &b))
		want := itemRow(i)
		require.Equal(t, want[:3], []any{id, u, s})
		require.True(t, bytes.Equal(want[3].([]byte), b), "blob of row %d: %x", i, b)
	}
	require.NoError(t, rows.Err())
	require.Equal(t, n, i)
}

// testInsertParts inserts into one table by several calls, in several
// transactions, and between other statements.
func testInsertParts(t *testing.T, e driver.Engine) {
	table := newTable(t, e, true, itemsTable("parts"))
	other := newNumbers(t, e, "parts_other")
	inTx(t, e, func(tx driver.Tx) {
		insert(t, tx, table, itemRows(0, 3)...)
		insert(t, tx, other, 1, 1)
		require.EqualValues(t, 1, exec(t, tx, "DELETE FROM parts WHERE id = ?", 2))
		insert(t, tx, table, itemRows(2, 9)...) // the deleted key is inserted again
		require.EqualValues(t, 9, countRows(t, tx, table))
	})
	inTx(t, e, func(tx driver.Tx) {
		require.EqualValues(t, 9, exec(t, tx, "UPDATE parts SET state = ?", 1))
		insert(t, tx, table, itemRows(9, 20)...)
	})
	tx := begin(t, e)
	insert(t, tx, table, itemRows(20, 40)...)
	require.NoError(t, tx.Rollback())
	requireItems(t, e, table, 20)
}

func testWrongValues(t *testing.T, e driver.Engine) {
	table := newNumbers(t, e, "wrong")
	update := &driver.Update{Table: "wrong", Set: table.Columns[1], Key: table.Columns}
	tx := begin(t, e)
	require.Error(t, tx.Insert(context.Background(), table, []any{int64(1), int64(2), int64(3)}))
	require.NoError(t, tx.Rollback())
	tx = begin(t, e)
	require.Error(t, tx.Update(context.Background(), update, int64(1), []any{int64(1), int64(2), int64(3)}))
	require.NoError(t, tx.Rollback())
	requireCount(t, e, table, 0)
}

// testConflict: a duplicate key is ErrConflict. The transaction is rolled back,
// and the engine still works.
func testConflict(t *testing.T, e driver.Engine) {
	ctx := context.Background()
	table := newNumbers(t, e, "conflicts", 1, 1)
	attempts := map[string]func(tx driver.Tx) error{
		"insert":        func(tx driver.Tx) error { return tx.Insert(ctx, table, []any{int64(2), int64(2), int64(1), int64(3)}) },
		"insert, twice": func(tx driver.Tx) error { return tx.Insert(ctx, table, []any{int64(3), int64(2), int64(3), int64(3)}) },
		"exec": func(tx driver.Tx) error {
			insert(t, tx, table, 2, 2)
			_, err := tx.Exec(ctx, "INSERT INTO conflicts (id, n) VALUES (?, ?)", int64(1), int64(3))
			return err
		},
	}
	for name, attempt := range attempts {
		t.Run(name, func(t *testing.T) {
			tx := begin(t, e)
			err := attempt(tx)
			if err == nil {
				err = tx.Commit(ctx) // an engine may notice at the commit
			}
			require.ErrorIs(t, err, driver.ErrConflict)
			require.NoError(t, tx.Rollback())
			inView(t, e, func(q driver.Querier) {
				require.Equal(t, []int64{1}, selectColumn[int64](t, q, "SELECT n FROM conflicts"))
			})
			inTx(t, e, func(tx driver.Tx) { exec(t, tx, "UPDATE conflicts SET n = ?", 1) })
		})
	}
}

// testUpdate updates n rows by a key of three columns. Some of the keys select
// nothing.
func testUpdate(t *testing.T, e driver.Engine, n int) {
	table := newTable(t, e, true, itemsTable(fmt.Sprint("update", n)))
	update := &driver.Update{Table: table.Name, Set: table.Columns[4], Key: []driver.Column{table.Columns[3], table.Columns[2], table.Columns[0]}}
	var keys []any
	for i := range n {
		row := itemRow(2 * i)
		keys = append(keys, row[3], row[2], row[0])
		if i%5 == 0 {
			keys = append(keys, row[3], "no such item", row[0])
		}
	}
	commitRows(t, e, table, itemRows(0, 2*n+3)...)
	inTx(t, e, func(tx driver.Tx) {
		require.NoError(t, tx.Update(context.Background(), update, int64(7), keys))
		clear(keys) // the engine has not kept it
	})
	inView(t, e, func(q driver.Querier) {
		require.EqualValues(t, 2*n+3, countRows(t, q, table))
		set := selectColumn[int64](t, q, "SELECT id FROM "+table.Name+" WHERE state = ? ORDER BY id", 7)
		require.Len(t, set, n)
		for i, id := range set {
			require.EqualValues(t, 2*i, id)
		}
	})
}

// testUpdateTypes updates a column of each type, by a key of one column.
func testUpdateTypes(t *testing.T, e driver.Engine) {
	table := newTable(t, e, false, itemsTable("update_types"))
	key := func(i int) []driver.Column { return table.Columns[i : i+1] }
	updates := []struct {
		update *driver.Update
		value  any
		keys   []any
	}{
		{&driver.Update{Table: table.Name, Set: table.Columns[1], Key: key(0)}, uint64(1<<63 + 5), []any{int64(1), int64(77)}},
		{&driver.Update{Table: table.Name, Set: table.Columns[2], Key: key(1)}, "new", []any{uint64(1<<63 + 5)}},
		{&driver.Update{Table: table.Name, Set: table.Columns[3], Key: key(2)}, []byte{1, 0, 2}, []any{"new", "old"}},
		{&driver.Update{Table: table.Name, Set: table.Columns[4], Key: key(3)}, int64(-9), []any{[]byte{1, 0, 2}, []byte{}}},
	}
	inTx(t, e, func(tx driver.Tx) {
		insert(t, tx, table, itemRows(1, 4)...)
		for _, u := range updates {
			require.NoError(t, tx.Update(context.Background(), u.update, u.value, u.keys))
		}
	})
	inView(t, e, func(q driver.Querier) {
		require.Equal(t, []int64{-9, 0, 0}, selectColumn[int64](t, q, "SELECT state FROM update_types ORDER BY id"))
		require.Equal(t, []uint64{1<<63 + 5}, selectColumn[uint64](t, q, "SELECT u FROM update_types WHERE s = ?", "new"))
	})
}
