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
