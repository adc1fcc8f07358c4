package libsql

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
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

// recorder keeps the text of what is written on a connection.
type recorder struct {
	nativeConn
	texts []string
}

func (r *recorder) ExecContext(ctx context.Context, text string, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	r.texts = append(r.texts, text)
	return r.nativeConn.ExecContext(ctx, text, args)
}

// TestUpdateUsesTheIndex: whatever an update's number of keys, the rows of each are
// looked up. From some 100 keys on SQLite 3.45 takes their list for millions and reads
// the table once instead, with the keys of one entity compared row by row.
func TestUpdateUsesTheIndex(t *testing.T) {
	ctx := context.Background()
	db, err := store.Open(ctx, "libsql://"+newPath(t), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	es, err := db.Entities(ctx, &store.EntityOptions{Layout: "arkiv"})
	require.NoError(t, err)
	many := entity.Op{Kind: entity.Create, Key: entity.Key{1}, BTL: 100,
		StringAttributes: map[string]string{}, NumericAttributes: map[string]uint64{}}
	for i := range 1500 {
		many.StringAttributes[fmt.Sprint("text ", i)] = "x"
		many.NumericAttributes[fmt.Sprint("number ", i)] = uint64(i)
	}
	_, err = es.Apply(ctx, entity.Block{Number: 1, Ops: []entity.Op{many}})
	require.NoError(t, err)

	var r recorder
	e := db.Engine().(*engine)
	require.NoError(t, e.WithWriter(ctx, func(c *sqlstore.Conn) error {
		return c.Raw(func(native any) error {
			r.nativeConn = native.(*conn).native
			native.(*conn).native = &r
			return nil
		})
	}))
	_, err = es.Apply(ctx, entity.Block{Number: 2, Ops: []entity.Op{{Kind: entity.ChangeOwner, Key: many.Key, Owner: entity.Address{2}}}})
	require.NoError(t, err)

	view, updates := snapshot(t, e), 0
	for _, text := range slices.Compact(r.texts) {
		if !strings.HasPrefix(text, "UPDATE OR FAIL ") {
			continue
		}
		updates++
		table := strings.Fields(text)[3]
		lines := plan(t, view, text)
		require.True(t, slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "SEARCH "+table+" ") }), "%.200s: %q", text, lines)
	}
	require.Equal(t, 5, updates, "many keys at once, and single ones, of each kind of attribute; and the payload")
}

// plan returns how a statement is done, whatever its values.
func plan(t *testing.T, q driver.Querier, text string) (lines []string) {
	rows, err := q.Query(context.Background(), "EXPLAIN QUERY PLAN "+text, make([]any, strings.Count(text, "?"))...)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int64
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		lines = append(lines, detail)
	}
	require.NoError(t, rows.Err())
	return lines
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
